"""Values about the engine itself: its status, and what the doctor finds."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ModelInfo:
    name: str
    dimensions: int
    max_tokens: int


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


@dataclass(frozen=True, slots=True)
class Health:
    status: Literal["healthy", "degraded"]
    database: bool
    storage: bool
    model: bool
    issues: list[str]


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
    kernels: str  # what runs the inner loops of a search: "compiled avx2", "compiled" or "numpy"


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
