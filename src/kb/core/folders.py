"""Folders that the engine watches, and their files."""

from dataclasses import dataclass
from typing import Literal

from kb.core.wire import absent

FolderState = Literal["scanning", "watching", "paused", "unreachable"]
FileState = Literal["indexed", "waiting", "ignored", "failed"]
Documents = Literal["keep", "remove"]  # what becomes of a folder's documents when it is watched no longer


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions:
    """What a folder is watched with."""

    tags: list[str]
    include: list[str]  # patterns as in .gitignore: with any, only what matches one of them is taken
    exclude: list[str]
    ocr: bool = False  # read pages by OCR even where they have text


@dataclass(frozen=True, slots=True)
class Coverage:
    """The files of a folder by what became of them. A folder that is left out counts as one."""

    total: int
    indexed: int
    waiting: int
    ignored: int
    failed: int


@dataclass(frozen=True, slots=True)
class FolderFile:
    """A file of a watched folder that is not indexed."""

    path: str  # below the folder; a folder that is left out ends with a slash
    state: FileState
    reason: str | None  # the rule that leaves it out, a job's error code, "too large" and the like
    job_id: str | None = absent()  # that failed to read it


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that the engine keeps in step with the disk."""

    id: int
    path: str
    tags: list[str]
    include: list[str]
    exclude: list[str]
    ocr: bool
    state: FolderState
    message: str | None  # what a person should know, such as how many files are missing
    coverage: Coverage
    files: list[FolderFile] | None = absent()  # not indexed: failed ones first, then waiting, then ignored


@dataclass(frozen=True, slots=True)
class FolderList:
    folders: list[Folder]


@dataclass(frozen=True, slots=True)
class Unwatched:
    folder_id: int
    path: str
    documents_removed: int
