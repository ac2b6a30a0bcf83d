"""Arguments and answers that the tools of `kb` and `kb-v3` share, with their bounds and what is said of them."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from kb.core.searches import Mode
from kb.core.types import Json
from kb.core.values import DocType, JobStatus
from kb.core.wire import absent
from kb.mcp.uploads.staging import MAX_CHUNK_INDEX

Tag = Annotated[str, Field(min_length=1, max_length=200)]
Tags = Annotated[list[Tag] | None, Field(description="Tags, applied exactly as given.")]
Query = Annotated[str, Field(min_length=1, max_length=2000, description="Plain text; nothing in it is an operator.")]
Top = Annotated[int, Field(ge=1, le=100, description="How many passages at most.")]
FilterTags = Annotated[list[str] | None, Field(description="Only documents that have all of these tags.")]
DocTypeFilter = Annotated[DocType | None, Field(description="Only documents of this type.")]
SearchMode = Annotated[Mode, Field(description="hybrid: words and meaning; fts: words only; vector: meaning only.")]
FtsOnly = Annotated[bool, Field(description="Search by words only, whatever mode says: for names, codes, error texts.")]
MinScore = Annotated[float, Field(ge=0, le=1, description="Leave out passages that score lower.")]
MaxTokens = Annotated[
    int | None,
    Field(ge=1, le=100_000, description="Budget for the returned text. By default the answer is kept short."),
]
PathFilter = Annotated[
    str | None,
    Field(min_length=1, description="Only what came from this path; a folder ends with / and means all in it."),
]
CreatedAfter = Annotated[str | None, Field(description="Only documents created then or later, such as 2026-01-31.")]
CreatedBefore = Annotated[str | None, Field(description="Only documents created before that time.")]
NoteText = Annotated[str, Field(min_length=1, description="The note, up to 1 MB. Markdown is welcome.")]
Title = Annotated[str | None, Field(max_length=500, description="Title; by default the note's first line.")]
Filename = Annotated[str, Field(min_length=1, max_length=255, description="File name with its extension.")]
TotalSize = Annotated[int, Field(ge=1, description="Size of the whole file in bytes.")]
Data = Annotated[str, Field(min_length=1, description="The chunk's bytes in base64; 1 MB raw is recommended.")]
ChunkIndex = Annotated[int, Field(ge=0, le=MAX_CHUNK_INDEX, description="Which chunk, counted from 0.")]
DocumentId = Annotated[int, Field(ge=1, le=2**53, description="The document's id, a number.")]
ExpectedVersion = Annotated[
    int | None, Field(ge=1, description="The version you read; if it changed since, nothing is overwritten.")
]
SourcePath = Annotated[str | None, Field(description="Where it came from, exactly as stored.")]
FirstChunk = Annotated[int | None, Field(ge=0, description="First passage to return, counted from 0.")]
ReadBudget = Annotated[int | None, Field(ge=1, description="Budget for the returned text.")]
StatusFilter = Annotated[JobStatus | None, Field(description="Only jobs in this state.")]
JobId = Annotated[str | None, Field(description="Only this job, as kb_upload_finish returned it.")]
UploadId = Annotated[str, Field(description="From kb_upload_start.")]


@dataclass(frozen=True, slots=True)
class UploadStarted:
    upload_id: str
    chunk_size: int  # recommended, in raw bytes
    chunks: int  # of the recommended size, for the whole file
    expires_in_seconds: int  # without activity
    upload_url: str | None = absent()  # takes the raw bytes with one PUT


@dataclass(frozen=True, slots=True)
class ChunkStored:
    upload_id: str
    chunk_index: int
    replaced: bool
    received_bytes: int
    total_size: int
    missing_chunks: list[int]


@dataclass(frozen=True, slots=True)
class Notice:
    notice: str


@dataclass(frozen=True, slots=True)
class ErrorField:
    error: Json | None  # code, message, retryable, details; a job has one too, or none


@dataclass(frozen=True, slots=True)
class InCollection:
    collection: str | None
