"""What the answers of contract `knowledge` look like. Every answer has `success`; the rest depends on it."""

from dataclasses import dataclass

from kb.core.types import Json


@dataclass(frozen=True, slots=True)
class Failure:
    success: bool
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class AddQueued:
    success: bool
    task_id: str
    message: str
    estimated_time_seconds: float


@dataclass(frozen=True, slots=True)
class AddDone:
    success: bool
    document_id: str
    filename: str
    chunks_created: int
    processing_method: str
    processing_time_seconds: float


@dataclass(frozen=True, slots=True)
class AddRefused:
    supported_formats: list[str]
    max_size_mb: int


@dataclass(frozen=True, slots=True)
class SearchResult:
    document_id: str
    chunk_id: str
    filename: str
    chunk_text: str
    relevance_score: float
    metadata: Json  # format, date_added, page_num or from_metadata where it applies, and the document's own


@dataclass(frozen=True, slots=True)
class SearchResults:
    success: bool
    query: str
    results: list[SearchResult]
    total_results: int
    search_time_ms: float
    message: str  # when nothing was found
    notice: str  # why, or what was left out
    document_count: int  # of an empty knowledge base


@dataclass(frozen=True, slots=True)
class RemoveAnswer:
    success: bool
    document_id: str
    filename: str
    chunks_removed: int
    message: str
    document: Json  # id, filename, chunks: what would be removed


@dataclass(frozen=True, slots=True)
class ShownDocument:
    id: str
    filename: str
    format: str
    size_bytes: int
    date_added: str
    chunk_count: int
    processing_status: str
    processing_method: str


@dataclass(frozen=True, slots=True)
class ShowAnswer:
    success: bool
    documents: list[ShownDocument]
    total_count: int
    limit: int
    offset: int
    message: str  # when there are none


@dataclass(frozen=True, slots=True)
class ClearAnswer:
    success: bool
    documents_removed: int
    embeddings_removed: int
    storage_freed_mb: float
    message: str
    current_document_count: int  # when it was not confirmed


@dataclass(frozen=True, slots=True)
class StatusAnswer:
    success: bool
    knowledge_base: Json
    health: Json
    configuration: Json
    last_updated: str | None


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    success: bool
    task_id: str
    status: str
    progress: float
    current_step: str | None
    completed_steps: int
    total_steps: int
    elapsed_time_seconds: float
    estimated_remaining_seconds: float | None
    result: Json  # document_id, filename, chunks_created
    total_time_seconds: float
