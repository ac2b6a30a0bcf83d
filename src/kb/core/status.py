"""Values about the engine itself: its status, and what the doctor finds."""

from dataclasses import dataclass
from typing import Literal

from kb.core.wire import absent


@dataclass(frozen=True, slots=True)
class ModelInfo:
    name: str
    dimensions: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Switching:
    to: str  # the next model
    job_id: str
    progress: float  # 0 to 1


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    total: int
    by_type: dict[str, int]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    queued: int
    running: int
    failed: int


@dataclass(frozen=True, slots=True)
class StorageInfo:
    path: str
    database: str
    bytes: int
    backend: str


@dataclass(frozen=True, slots=True)
class Limits:
    max_file_mb: int
    chunk_tokens: int


EngineState = Literal["starting", "serving", "draining"]


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """One of several engines that serve the knowledge base."""

    id: str
    address: str
    version: str
    state: EngineState
    seen_at: str  # when it last said that it lives
    applied_seq: int  # the change up to which it has followed
    lag: int  # changes that it has not followed yet, as far as it has said
    leads: bool  # it tidies up for all, and keeps the watched folders in step
    self: bool  # it is the one that answers


@dataclass(frozen=True, slots=True)
class Health:
    status: Literal["healthy", "degraded"]
    database: bool
    storage: bool
    model: bool
    issues: list[str]


@dataclass(frozen=True, slots=True)
class Multilingual:
    """The vectors by which a question in one language finds documents in another."""

    installed: bool
    waiting: int  # passages whose vectors are not made yet


@dataclass(frozen=True, slots=True)
class Status:
    version: str
    model: ModelInfo
    device: str
    documents: DocumentCounts
    chunks: int
    queue: QueueCounts
    storage: StorageInfo
    limits: Limits
    last_updated: str | None
    health: Health
    sandbox: str  # what confines the processes that read files: "landlock 7, seccomp", one of them, or "limits"
    trash: int  # documents that can be brought back
    engines: list[EngineInfo]  # that serve this knowledge base on PostgreSQL; none with SQLite
    multilingual: Multilingual
    kernels: str  # what runs the inner loops of a search: "compiled avx2", "compiled" or "numpy"
    switching: Switching | None = absent()  # to another model, while it is being prepared


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that the doctor looked at."""

    name: str
    ok: bool  # nothing is wrong, or all that was wrong is mended
    problems: int
    message: str
    fixed: int


@dataclass(frozen=True, slots=True)
class Diagnosis:
    healthy: bool
    checks: list[Check]
