"""What may be sent: the shapes of bodies and query strings, with their bounds. What is not listed is refused."""

import json
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from kb.core import times
from kb.core.errors import InvalidRequest
from kb.core.folders import Documents, FolderOptions
from kb.core.metadata import excess
from kb.core.searches import Filter, Listing, Mode, Order, SearchRequest, Sort
from kb.core.types import Json
from kb.core.values import DOC_TYPES, MAX_WAIT_SECONDS, JobStatus, LedgerState, View
from kb.engine.bulk import BulkChange
from kb.engine.switch import KnownAnswer, Wanted

MAX_ID = 2**63 - 1


def content_type(request: Request) -> str:
    """The media type of the body without its parameters; empty when none was sent."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def real_text(text: str) -> str:
    """Refuse a lone surrogate: JSON can spell it, but it is no character, and UTF-8 cannot encode it."""
    try:
        text.encode()
    except UnicodeEncodeError as wrong:
        raise ValueError(f"character {wrong.start} is half of a surrogate pair, which is not text") from wrong
    return text


def real_tag(tag: str) -> str:
    if not tag.strip() or not tag.isprintable():
        raise ValueError("a tag is visible text on one line")
    return tag


def real_metadata(metadata: Json) -> Json:
    if too_much := excess(metadata):
        raise ValueError(too_much)
    real_text(json.dumps(metadata, ensure_ascii=False, allow_nan=False))  # NaN is no JSON, though Python reads it
    return metadata


Text = Annotated[str, AfterValidator(real_text)]
NoteText = Annotated[str, Field(min_length=1, description="The whole text, at most 1 MB."), AfterValidator(real_text)]
Tag = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(real_text), AfterValidator(real_tag)]
Tags = Annotated[list[Tag], Field(max_length=100)]
Title = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(real_text)]
SourcePath = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(real_text)]
Metadata = Annotated[
    dict[str, Any], Field(description="At most 32 levels deep and 64 KB."), AfterValidator(real_metadata)
]
ReplaceTags = Annotated[
    bool, Field(description="The given tags replace those that the document has; else they are added to them.")
]
Force = Annotated[bool, Field(description="Replace a note at this source path even if it was edited in kb since.")]
Moment = Annotated[
    str, Field(description="A date (2026-01-31) or a time (2026-01-31T12:00:00Z); UTC unless it names a zone.")
]


CreatedAt = Annotated[
    str,
    Field(description="When it came into being elsewhere, if it is new here: a date or a time. Now unless given."),
    AfterValidator(partial(times.given, "created_at")),
]
PATH_FILTER = "The document that came from this path. One that ends with `/` is a folder: everything below it."
DocumentId = Annotated[int, Field(ge=1, le=MAX_ID)]
Uid = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(real_text)]
AnyState = Annotated[LedgerState | None, BeforeValidator(lambda given: given or None)]  # `state=` means any


class RequestBody(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SearchBody(RequestBody):
    query: Annotated[
        Text, Field(min_length=1, max_length=2000, description="Plain text; nothing in it is an operator.")
    ]
    top: Annotated[int, Field(ge=1, le=100)] | None = Field(None, description="How many results, 10 unless given.")
    top_n: Annotated[int, Field(ge=1, le=100)] | None = Field(None, description="The same as `top`.")
    tags: Tags = Field([], description="All must match.")
    doc_type: str | None = Field(None, json_schema_extra={"enum": [*DOC_TYPES, None]})
    mode: Mode = "hybrid"
    fts_only: bool = Field(False, description="Keywords only; overrides `mode`.")
    vec_only: bool = Field(False, description="Meaning only; overrides `mode`.")
    min_score: Annotated[float, Field(ge=0, le=1)] = Field(0.0, description="Leave out what scores lower.")
    source_path: SourcePath | None = Field(None, description=PATH_FILTER)
    media_type: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(real_text)] | None = None
    created_after: Moment | None = Field(None, description="Inclusive.")
    created_before: Moment | None = Field(None, description="Exclusive.")
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        None, description="Budget for the returned text."
    )
    facets: bool = Field(
        False,
        description="Count the documents within the filter that hold a word of the question, by type, tag (the 1,000 "
        "most frequent) and month of `created_at`: all of them, not only those among the results.",
    )
    explain: bool = Field(False, description="Say what each leg thought of each result.")

    def request(self) -> SearchRequest:
        if self.top is not None and self.top_n is not None and self.top != self.top_n:
            raise InvalidRequest(
                f"top is {self.top} and top_n is {self.top_n}: they mean the same, so send one of them."
            )
        if self.fts_only and self.vec_only:
            raise InvalidRequest("fts_only and vec_only exclude each other: send one of them.")
        return SearchRequest(
            query=self.query,
            top=self.top or self.top_n or 10,
            mode="fts" if self.fts_only else "vector" if self.vec_only else self.mode,
            filter=filter_of(self, self.tags, self.media_type),
            min_score=self.min_score,
            max_tokens=self.max_tokens,
            explain=self.explain,
            facets=self.facets,
        )


class NoteBody(RequestBody):
    text: NoteText
    title: Title | None = None
    tags: Tags | None = None
    source_path: SourcePath | None = Field(None, description="When given, the path is the note's identity.")
    metadata: Metadata | None = None
    replace_tags: ReplaceTags = False
    force: Force = False
    created_at: CreatedAt | None = None


class FileForm(RequestBody):
    """The fields of a multipart upload beside the file itself."""

    tags: Tags | None = None
    title: Title | None = None
    source_path: SourcePath | None = None
    metadata: Metadata | None = None
    force_ocr: bool = False
    replace_tags: ReplaceTags = False
    force: Force = False
    created_at: CreatedAt | None = None


class TagsBody(RequestBody):
    add: Tags = []
    remove: Tags = []


class BulkFilter(RequestBody):
    tag: Tags = Field([], description="All must match.")
    doc_type: str | None = Field(None, json_schema_extra={"enum": [*DOC_TYPES, None]})
    source_path: SourcePath | None = Field(None, description=PATH_FILTER)
    created_after: Moment | None = Field(None, description="Inclusive.")
    created_before: Moment | None = Field(None, description="Exclusive.")

    def filter(self) -> Filter:
        return filter_of(self, self.tag)


class BulkBody(RequestBody):
    ids: Annotated[list[DocumentId | Uid], Field(max_length=100_000)] | None = Field(
        None, description="Integer ids or uids. Either these or `filter`."
    )
    filter: BulkFilter | None = Field(None, description="All documents within it; an empty one holds all.")
    expected_count: Annotated[int, Field(ge=0, le=MAX_ID)] = Field(
        description="How many documents that is. Refuse with 409 when it is another number."
    )
    add_tags: Tags = []
    remove_tags: Tags = []
    delete: bool = Field(False, description="Put them into the trash, instead of changing tags.")

    def change(self) -> BulkChange:
        if (self.ids is None) == (self.filter is None):
            raise InvalidRequest("Send either `ids` or `filter`, to say which documents are meant.")
        if self.delete == bool(self.add_tags or self.remove_tags):
            raise InvalidRequest("Send either `delete`: true, or tags in `add_tags` or `remove_tags`.")
        return BulkChange(
            ids=None if self.ids is None else list(self.ids),
            filter=None if self.filter is None else self.filter.filter(),
            add_tags=tuple(self.add_tags),
            remove_tags=tuple(self.remove_tags),
            delete=self.delete,
        )


class KnownAnswerBody(RequestBody):
    query: Annotated[Text, Field(min_length=1, max_length=2000)]
    relevant: Annotated[dict[str, Annotated[int, Field(ge=1, le=100)]], Field(min_length=1)] = Field(
        description="The ids of the documents that answer it, with grades."
    )
    tags: Tags = []


class ReindexBody(RequestBody):
    model: Annotated[Text, Field(min_length=1, max_length=200)] | None = Field(
        None, description="Switch to this model: only vectors are made anew. Unless given, all of the index is."
    )
    questions: Annotated[list[KnownAnswerBody], Field(max_length=1000)] = Field(
        [], description="Questions with known answers: the switch is refused if the model answers them worse."
    )
    force: bool = Field(False, description="Switch all the same.")

    def wanted(self) -> Wanted | None:
        if self.model is None:
            return None
        questions = [KnownAnswer(one.query, one.relevant, one.tags) for one in self.questions]
        return Wanted(self.model, self.force, questions)


class RenameTagBody(RequestBody):
    to: Tag = Field(description="Its new name. If that tag exists, the two become one.")


class UpdateNoteBody(RequestBody):
    text: NoteText
    expected_version: Annotated[int, Field(ge=1, le=MAX_ID)] | None = Field(
        None, description="Refuse with 409 when the note is at another version."
    )


class MergeBody(RequestBody):
    other: DocumentId | Uid = Field(description="Integer id or uid of the note that is deleted.")
    text: NoteText
    expected_version: Annotated[int, Field(ge=1, le=MAX_ID)] = Field(
        description="Refuse with 409 when the note is at another version."
    )
    other_version: Annotated[int, Field(ge=1, le=MAX_ID)] = Field(description="The same for the other note.")


class TicketBody(RequestBody):
    path: Annotated[str, Field(min_length=1, max_length=4000)] = Field(
        description="Path and query string of one of the GET routes, `/api/v1` included."
    )


class RestoreBody(RequestBody):
    version: Annotated[int, Field(ge=1, le=MAX_ID)]


class RereadBody(RequestBody):
    force_ocr: bool = Field(False, description="Read the pages as images, even those that have text.")
    pages: Annotated[list[Annotated[int, Field(ge=1, le=10**9)]], Field(min_length=1, max_length=20_000)] | None = (
        Field(None, description="Only these; the others are read as they were. All unless given.")
    )


Pattern = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(real_text)]
Patterns = Annotated[list[Pattern], Field(max_length=100)]


class FolderBody(RequestBody):
    path: SourcePath = Field(description="Absolute, as the engine's machine sees it.")
    tags: Tags = Field([], description="Of every document that a file becomes.")
    include: Patterns = Field(
        [], description="Patterns as in `.gitignore`: with any, only files that match one of them are taken."
    )
    exclude: Patterns = Field([], description="Patterns as in `.gitignore`, of what is left out.")
    ocr: bool = Field(False, description="Read pages by OCR even where they have text.")

    def options(self) -> FolderOptions:
        return FolderOptions(tags=self.tags, include=self.include, exclude=self.exclude, ocr=self.ocr)


class ScanBody(RequestBody):
    confirm: bool = Field(False, description="Remove the documents of all files that are missing.")


class QueryString(BaseModel):
    model_config = ConfigDict(extra="forbid")


class WaitQuery(QueryString):
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT_SECONDS, allow_inf_nan=False)] = Field(
        0, description="Seconds to hold the answer until the job ends."
    )


class PageQuery(QueryString):
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    offset: Annotated[int, Field(ge=0, le=MAX_ID)] = 0


class JobsQuery(PageQuery):
    status: JobStatus | None = None


class DocumentsQuery(PageQuery):
    view: View = Field("full", description="`summary`: the ledger counted by state, and no metadata.")
    q: Annotated[Text, Field(max_length=2000)] = Field("", description="Words of the title or of the file name.")
    state: AnyState = Field(None, description="Some part of the document is in this state.")
    source_path: Text | None = Field(None, description=PATH_FILTER)
    tag: Annotated[list[Text], Field(max_length=100)] = Field([], description="May be repeated; all must match.")
    doc_type: str | None = Field(None, json_schema_extra={"enum": [*DOC_TYPES]})
    created_after: Moment | None = Field(None, description="Inclusive.")
    created_before: Moment | None = Field(None, description="Exclusive.")
    parent: DocumentId | None = Field(None, description="Only what was found in this archive, mail or mailbox.")
    sort: Sort = "recent"
    order: Order | None = Field(None, description="`desc`, but `asc` for `filename`, unless given.")

    def listing(self) -> Listing:
        return Listing(
            filter=replace(filter_of(self, self.tag), parent=self.parent),
            words=self.q,
            state=self.state,
            sort=self.sort,
            order=self.order,
            limit=self.limit,
            offset=self.offset,
        )


class DocumentQuery(QueryString):
    view: View = Field("full", description="`summary`: the ledger counted by state, no text and no chunks.")
    first_chunk: Annotated[int, Field(ge=0, le=MAX_ID)] = 0
    max_chunks: Annotated[int, Field(ge=0, le=MAX_ID)] | None = None


class LedgerQuery(PageQuery):
    state: AnyState = Field(None, description="Only parts in this state.")


class TextQuery(QueryString):
    start: Annotated[int, Field(ge=0, le=MAX_ID)] = 0
    end: Annotated[int, Field(ge=0, le=MAX_ID)] | None = None


class ImageQuery(QueryString):
    width: Annotated[int, Field(ge=64, le=3000, description="Pixels.")] = 1400


class BoxesQuery(QueryString):
    start: Annotated[int, Field(ge=0, le=MAX_ID, description="The passage's `anchor.start`.")]
    end: Annotated[int, Field(ge=0, le=MAX_ID, description="Its `anchor.end`.")]


class TableQuery(QueryString):
    sheet: Annotated[Text, Field(min_length=1, max_length=200, description="The passage's `anchor.sheet`.")]
    range: Annotated[str, Field(max_length=40, description="Cells like `B4:D9`, as the anchor's heading has them.")] = (
        "A1"
    )


class FolderQuery(QueryString):
    limit: Annotated[int, Field(ge=1, le=10_000)] = Field(1000, description="Of `files`.")
    offset: Annotated[int, Field(ge=0, le=MAX_ID)] = 0


class UnwatchQuery(QueryString):
    documents: Documents = Field("keep", description="What becomes of the documents of its files.")


class DoctorQuery(QueryString):
    fix: bool = Field(False, description="`true` is refused: to mend, send POST to the same path.")


class DuplicatesQuery(QueryString):
    min_similarity: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = Field(
        0.9, description="Leave out pairs that are less alike."
    )
    limit: Annotated[int, Field(ge=1, le=1000)] = 100


class DeleteQuery(QueryString):
    purge: bool = Field(False, description="For good, and also from the trash.")


class EmptyTrashQuery(QueryString):
    expected_count: Annotated[int, Field(ge=0, le=MAX_ID)] = Field(
        description="How many documents are in it. Refuse with 409 when it is another number."
    )


class UndeleteQuery(QueryString):
    without_path: bool = Field(False, description="If another document has its source path by now, do without it.")


class ClearQuery(QueryString):
    confirm: Text = Field("", description="Must be `DELETE ALL`.")


def filter_of(sent: SearchBody | BulkFilter | DocumentsQuery, tags: list[str], media_type: str | None = None) -> Filter:
    doc_type = next((known for known in DOC_TYPES if known == sent.doc_type), None)
    if sent.doc_type is not None and doc_type is None:
        raise InvalidRequest(f"There is no doc_type {sent.doc_type[:80]!r}. Known: {', '.join(DOC_TYPES)}.")
    return Filter(
        tags=tuple(tags),
        doc_type=doc_type,
        source_path=sent.source_path,
        media_type=media_type,
        created_after=sent.created_after and times.given("created_after", sent.created_after),
        created_before=sent.created_before and times.given("created_before", sent.created_before),
    )


Wait = Annotated[WaitQuery, Query()]
