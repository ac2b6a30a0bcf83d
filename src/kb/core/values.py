"""The values that all packages share, frozen. The REST API answers with the same values (`kb.core.wire`)."""

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
]
JobKind = Literal["note", "file", "reindex", "bulk"]
JobStatus = Literal["queued", "running", "completed", "failed", "cancelled"]
Mode = Literal["hybrid", "fts", "vector"]
Sort = Literal["recent", "created", "filename", "size"]
Order = Literal["asc", "desc"]
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
    symbol: str | None = absent()  # of a program: the path of names


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
    content_hash: str | None = absent()  # of one document; a list leaves these two out
    metadata: Json | None = absent()


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


@dataclass(frozen=True, slots=True)
class Cleared:
    documents_removed: int
    chunks_removed: int
    bytes_freed: int


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


@dataclass(frozen=True, slots=True)
class Accepted:
    """The answer to something added."""

    job_id: str
    status: JobStatus
    document_id: int | None = absent()
    duplicate_of: int | None = absent()  # the document that already holds this
    outcome: AddOutcome | None = absent()  # what it did, if that is known


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents a search may answer from; None means any."""

    tags: tuple[str, ...] = ()  # all must match
    doc_type: DocType | None = None
    source_path: str | None = None
    media_type: str | None = None
    created_after: str | None = None  # inclusive
    created_before: str | None = None  # exclusive


EVERYTHING = Filter()


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Which documents a list shows, and in which order."""

    filter: Filter = EVERYTHING
    words: str = ""  # each of them begins a word of the title or of the file name
    state: LedgerState | None = None  # some part of the document is in this state
    sort: Sort = "recent"
    order: Order | None = None  # None: the natural one of `sort`
    limit: int = 100
    offset: int = 0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    query: str
    top: int = 10
    mode: Mode = "hybrid"
    filter: Filter = EVERYTHING
    min_score: float = 0.0
    max_tokens: int | None = None  # budget for the returned text
    explain: bool = False
    facets: bool = False


@dataclass(frozen=True, slots=True)
class LegExplanation:
    """One leg's view of a hit."""

    rank: int  # 1 is the leg's best; 0 when the leg did not find it
    score: float  # raw: BM25 or cosine
    share: float  # what it adds to the hit's score; the shares of both legs add up to it


@dataclass(frozen=True, slots=True)
class Explanation:
    fts: LegExplanation | None
    vector: LegExplanation | None
    matched_terms: list[str]


@dataclass(frozen=True, slots=True)
class Copy:
    """Another passage with the same text as a hit."""

    document_id: int
    chunk_id: int
    title: str
    filename: str | None
    source_path: str | None
    anchor: Anchor


@dataclass(frozen=True)
class Hit:
    chunk_id: int
    document_id: int
    uid: str
    title: str
    filename: str | None
    source_path: str | None
    doc_type: DocType
    media_type: str
    text: str
    score: float  # 0..1, falls with rank
    tags: list[str]
    metadata: Json
    anchor: Anchor
    created_at: str
    updated_at: str | None
    version: int
    truncated: bool | None = absent()  # true when max_tokens cut the text
    hidden: bool | None = absent()  # true when some of the text cannot be seen in the original
    also_in: list[Copy] | None = absent()  # where else the same text stands; only the best of them is a result
    also_in_more: int | None = absent()  # how many further copies are not named
    explain: Explanation | None = absent()


@dataclass(frozen=True, slots=True)
class Facets:
    """Documents that hold a word of the question, within the filter, counted."""

    type: dict[str, int]
    tag: dict[str, int]  # the 1,000 most frequent
    month: dict[str, int]  # of `created_at`, as "2026-11"; the newest first


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    query: str
    mode: Mode
    results: list[Hit]
    total: int  # results returned
    took_ms: float
    notice: str | None = absent()  # why there is nothing, or less than expected
    facets: Facets | None = absent()


TENTHS = 10  # edges of lines are whole numbers, in tenths of a point or pixel
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
