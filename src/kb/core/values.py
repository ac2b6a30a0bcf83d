"""Documents, notes and jobs: frozen values that all packages share. The REST API answers with the same values."""

from dataclasses import dataclass
from typing import Literal, get_args

from kb.core.types import Json
from kb.core.wire import absent

DocType = Literal[
    "note",
    "pdf",
    "docx",
    "pptx",
    "xlsx",
    "html",
    "markdown",
    "text",
    "code",
    "image",
    "svg",
    "notebook",
    "epub",
    "odt",
    "ods",
    "odp",
    "xls",
    "xlsb",
    "conversation",
    "rtf",
    "archive",
    "mail",
    "mailbox",
    "doc",
    "ppt",
]
JobKind = Literal["note", "file", "reindex", "bulk"]
JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
LedgerState = Literal["ok", "ocr", "empty", "failed"]
View = Literal["full", "summary"]
FailureCode = Literal[
    "encrypted",
    "corrupt",
    "too_complex",
    "no_text",
    "ocr_failed",
    "timeout",
    "out_of_memory",
    "crashed",
    "unsupported_format",
    "conflict",
    "internal",
]
Method = Literal["text_extraction", "ocr", "image_analysis", "mixed"]
# What an addition did. "unchanged": the document had all of it. "kept": the note was edited in kb and keeps its text.
AddOutcome = Literal["added", "updated", "unchanged", "kept"]

WORKBOOKS: tuple[DocType, ...] = ("xlsx", "ods", "xls", "xlsb")  # they have sheets of cells
CONTAINERS: tuple[DocType, ...] = ("archive", "mail", "mailbox")  # files in them are documents of their own
DOC_TYPES: tuple[DocType, ...] = get_args(DocType)
LEDGER_STATES: tuple[LedgerState, ...] = get_args(LedgerState)
MAX_NOTE_BYTES = 2**20
MAX_WAIT_SECONDS = 300


@dataclass(frozen=True)
class Anchor:
    """Where a passage stands; only what applies is there."""

    page: int | None = absent()
    slide: int | None = absent()
    sheet: str | None = absent()
    heading: str | None = absent()  # the heading path, outermost first, joined by " > "
    start: int | None = absent()  # characters into the document's extracted text
    end: int | None = absent()
    metadata: bool | None = absent()  # true: made from the document's metadata, which is not in that text
    chapter: str | None = absent()  # of a book: its title, or its number if it has none
    cell: int | None = absent()  # of a notebook, from 1
    rows: str | None = absent()  # of a table, from 1: "12-40"
    member: str | None = absent()  # of an archive: its path
    message: str | None = absent()  # of a mailbox
    symbol: str | None = absent()  # of a program: the path of names, joined by dots; of several definitions, by ", "
    picture: int | None = absent()  # that was read by OCR: its number on the slide, sheet, chapter or in the document


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """What became of one part (page, slide, sheet) of a document."""

    part: str  # "page 3", "slide 2", "sheet Costs", "text"
    state: LedgerState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    id: int
    index: int
    text: str
    anchor: Anchor
    hidden: bool | None = absent()  # true when some of the text cannot be seen in the original


@dataclass(frozen=True, slots=True)
class Document:
    id: int  # never reused
    uid: str
    title: str
    filename: str | None  # None for a note
    source_path: str | None
    doc_type: DocType
    media_type: str
    size_bytes: int
    content_hash: str  # sha256 of the original bytes
    tags: list[str]
    metadata: Json
    chunk_count: int
    version: int  # counts contents, not tag changes
    created_at: str
    updated_at: str | None  # None until the first mutation
    processing_method: Method
    ledger: list[LedgerEntry]
    parent: int | None = absent()  # the document that this one was found in: an archive, a mail, a mailbox
    member: str | None = absent()  # its path in there
    text: str | None = absent()  # a note's text, exactly as written
    chunks: list[Chunk] | None = absent()


@dataclass(frozen=True, slots=True)
class DocumentList:
    documents: list[Document]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class DocumentSummary:
    """What a list shows of a document: the states of its parts are counted, not named."""

    id: int
    uid: str
    title: str
    filename: str | None  # None for a note
    source_path: str | None
    doc_type: DocType
    media_type: str
    size_bytes: int
    tags: list[str]
    chunk_count: int
    version: int
    created_at: str
    updated_at: str | None  # None until the first mutation
    processing_method: Method
    ledger_counts: dict[LedgerState, int]  # parts in each state that occurs
    parent: int | None = absent()  # the document that this one was found in
    member: str | None = absent()  # its path in there
    content_hash: str | None = absent()  # of one document; a list leaves these two out
    metadata: Json | None = absent()
    deleted_at: str | None = absent()  # of a document in the trash
    expires_at: str | None = absent()  # when it is removed from there, for good


@dataclass(frozen=True, slots=True)
class DocumentSummaryList:
    documents: list[DocumentSummary]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class LedgerPage:
    ledger: list[LedgerEntry]
    total: int  # entries in the states that were asked for
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class Removed:
    document_id: int
    filename: str | None
    chunks_removed: int
    expires_at: str | None = absent()  # until then it can be brought back from the trash


@dataclass(frozen=True, slots=True)
class TrashList:
    documents: list[DocumentSummary]  # the latest deletion first
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True)
class DocumentLink:
    """Of a link, the document that it leads to; of a backlink, the one that it stands in."""

    document_id: int | None  # None: there is no such document
    title: str | None
    target: str  # as it is written in the text, with heading or block


@dataclass(frozen=True, slots=True)
class DocumentLinks:
    links: list[DocumentLink]  # in the order of the text, each target once
    backlinks: list[DocumentLink]  # at most 1,000, by title
    backlinks_more: int | None = absent()  # how many further ones there are


@dataclass(frozen=True, slots=True)
class Emptied:
    documents_removed: int


@dataclass(frozen=True, slots=True)
class Cleared:
    documents_removed: int
    chunks_removed: int
    bytes_freed: int
    trash_removed: int | None = absent()  # documents that were in the trash


@dataclass(frozen=True, slots=True)
class NoteVersion:
    version: int
    text: str
    created_at: str


@dataclass(frozen=True, slots=True)
class NoteHistory:
    versions: list[NoteVersion]  # newest first, the current one included


@dataclass(frozen=True, slots=True)
class TagCount:
    tag: str
    documents: int


@dataclass(frozen=True, slots=True)
class TagList:
    tags: list[TagCount]


@dataclass(frozen=True, slots=True)
class JobError:
    code: FailureCode
    message: str


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    kind: JobKind
    status: JobStatus
    progress: float  # 0..1
    current_step: str | None  # "Processing page 5 of 10"
    completed_steps: int
    total_steps: int
    filename: str | None
    document_id: int | None
    uid: str | None
    chunks_created: int
    error: JobError | None
    attempts: int
    created_at: str
    started_at: str | None
    finished_at: str | None
    elapsed_seconds: float
    estimated_remaining_seconds: float | None
    outcome: AddOutcome | None = absent()  # what a completed addition did

    @property
    def ended(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class JobList:
    jobs: list[Job]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions:
    """What a request to add something says beside the content."""

    title: str | None = None
    tags: list[str] | None = None  # None: not given
    source_path: str | None = None
    metadata: Json | None = None
    force_ocr: bool = False
    replace_tags: bool = False  # the given tags replace those that the document has
    force: bool = False  # replace what was edited in kb, too
    created_at: str | None = None  # of a new document: when it came into being elsewhere


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to something added."""

    job_id: str
    status: JobStatus
    document_id: int | None = absent()
    duplicate_of: int | None = absent()  # the document that already holds this
    outcome: AddOutcome | None = absent()  # what it did, if that is known


TENTHS = 10  # edges of lines are whole numbers, in tenths of a point or pixel
Symbol = tuple[int, int, str]  # of a program: first character, the one after the last; name
Line = tuple[int, int, int, int, int, int]  # first character, the one after the last; left, top, right, bottom


@dataclass(frozen=True, slots=True)
class LineBoxes:
    """Where the lines of a text stand that was read by OCR. Characters count from the start of that text."""

    width: float  # of the page in points, of a picture in pixels
    height: float
    lines: list[Line]  # in the order of the text; edges in tenths


@dataclass(frozen=True, slots=True)
class PageBoxes:
    """Where a passage stands on a page, measured from the page's upper left corner as it is displayed."""

    page: int
    width: float  # of the page, in points; of a picture, in pixels
    height: float
    boxes: list[tuple[float, float, float, float]]  # left, top, right, bottom of each line
    exact: bool  # false: of the passage, or of a part of it, only the page is known


@dataclass(frozen=True, slots=True)
class CitedCells:
    rows: tuple[int, int]  # the first and the last
    columns: tuple[str, str]


@dataclass(frozen=True, slots=True)
class TableWindow:
    """Cells of a sheet, those that a citation names and some around them."""

    sheet: str
    range: str  # that was asked for
    first_row: int  # the number of the first of `rows`
    columns: list[str]  # "A", "B"
    rows: list[list[str]]
    cited: CitedCells


@dataclass(frozen=True, slots=True)
class Ticket:
    """An address that opens one answer, once and without the key."""

    url: str  # path and query string at this engine
    expires_at: str


@dataclass(frozen=True, slots=True)
class AgentSetup:
    """How an agent is connected."""

    name: str  # what `kb connect` calls it
    label: str
    file: str  # its configuration on the engine's machine
    snippet: str
    hint: str  # what to do in the agent afterwards
    last_call: str | None  # when it called a tool, since the engine started


@dataclass(frozen=True, slots=True)
class AgentCaller:
    """An agent that called a tool since the engine started, as it names itself."""

    name: str
    calls: int
    last_call: str


@dataclass(frozen=True, slots=True)
class AgentList:
    mcp_url: str
    agents: list[AgentSetup]
    callers: list[AgentCaller]  # the most recent first


@dataclass(frozen=True, slots=True)
class NoteRef:
    id: int
    title: str


@dataclass(frozen=True, slots=True)
class DuplicatePair:
    """Two notes that say nearly the same."""

    a: NoteRef
    b: NoteRef
    similarity: float  # cosine; 1 for the same text


@dataclass(frozen=True, slots=True)
class DuplicateList:
    duplicates: list[DuplicatePair]  # the most similar first
