"""Folders that are watched, and what is known of the files in them.

Paths of files are compared byte by byte; a column of another database needs such an order too.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from kb.core.errors import NotFound
from kb.core.folders import Coverage, FileState, FolderFile, FolderOptions
from kb.core.times import now
from kb.store.backend import Row, Transaction
from kb.store.rows import listed, readable

ADD_FOLDER = """
INSERT INTO folders (path, tags, include, exclude, ocr, created_at)
VALUES (:path, :tags, :include, :exclude, :ocr, :now) RETURNING id
"""
FILE_COLUMNS = "path, size, mtime_ns, ctime_ns, device, inode, hash, document_id, job_id, state, reason"
FILES = f"SELECT {FILE_COLUMNS} FROM folder_files WHERE folder_id = :folder"
# The path itself, and all below it: "0" is the character after the slash.
AT_OR_BELOW = "(path = :path OR (path >= :path || '/' AND path < :path || '0'))"
PUT_FILE = """
INSERT INTO folder_files (folder_id, path, size, mtime_ns, ctime_ns, device, inode, hash, document_id, job_id, state,
                          reason)
VALUES (:folder, :path, :size, :mtime_ns, :ctime_ns, :device, :inode, :hash, :document_id, :job_id, :state, :reason)
ON CONFLICT (folder_id, path) DO UPDATE
   SET size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns, device = excluded.device,
       inode = excluded.inode, hash = excluded.hash, document_id = excluded.document_id, job_id = excluded.job_id,
       state = excluded.state, reason = excluded.reason
"""
# Files whose job has ended since; one that failed may have been retried.
ENDED = f"""
SELECT {", ".join("f." + name for name in FILE_COLUMNS.split(", "))},
       j.status AS job_status, j.error_code, j.document_id AS found
  FROM folder_files f LEFT JOIN jobs j ON j.id = f.job_id
 WHERE f.folder_id = :folder AND f.job_id IS NOT NULL
   AND ((f.state = 'waiting' AND (j.id IS NULL OR j.status IN ('completed', 'failed', 'cancelled')))
        OR (f.state = 'failed' AND j.status = 'completed'))
"""
# Files whose document is not there any longer: somebody removed it.
ORPHANED = f"""
{FILES} AND document_id IS NOT NULL AND state = 'indexed'
   AND document_id NOT IN (SELECT id FROM published)
"""
# And those whose document has come back from the trash.
RETURNED = f"""
{FILES} AND document_id IS NOT NULL AND state = 'ignored' AND document_id IN (SELECT id FROM published)
"""
RETRY = """
UPDATE folder_files SET state = 'waiting', reason = NULL, job_id = NULL
 WHERE folder_id = :folder AND state = 'failed' AND ctime_ns <> 0
"""
TO_READ = f"{FILES} AND state = 'waiting' AND job_id IS NULL AND ctime_ns <> 0 ORDER BY path LIMIT :limit"
READING = "SELECT count(*) FROM folder_files WHERE folder_id = :folder AND state = 'waiting' AND job_id IS NOT NULL"
UNFINISHED_JOBS = """
SELECT j.id FROM folder_files f JOIN jobs j ON j.id = f.job_id
 WHERE f.folder_id = :folder AND j.status IN ('queued', 'running')
"""
COUNTS = "SELECT state, count(*) AS n FROM folder_files WHERE folder_id = :folder GROUP BY state"
NOT_INDEXED = """
SELECT path, state, reason, job_id FROM folder_files WHERE folder_id = :folder AND state <> 'indexed'
 ORDER BY CASE state WHEN 'failed' THEN 1 WHEN 'waiting' THEN 2 ELSE 3 END, path LIMIT :limit OFFSET :offset
"""


class Stamp(NamedTuple):
    """What tells, without reading it, that a file is as it was. Any change of it changes `ctime_ns`."""

    size: int
    mtime_ns: int
    ctime_ns: int
    device: int
    inode: int


NO_STAMP = Stamp(0, 0, 0, 0, 0)  # of what is left out, or not read yet


@dataclass(frozen=True, slots=True)
class WatchedFile:
    """What is known of one file."""

    path: str  # below the folder
    stamp: Stamp
    state: FileState
    reason: str | None = None
    hash: str | None = None  # sha256 of the bytes that the stamp is of
    document_id: int | None = None
    job_id: str | None = None

    @property
    def is_busy(self) -> bool:
        """Whether a job reads it at this moment."""
        return self.state == "waiting" and self.job_id is not None


@dataclass(frozen=True, slots=True)
class WatchedFolder:
    id: int
    path: str
    options: FolderOptions

    def source_path(self, path: str) -> str:
        """The source path of the document that a file of this folder becomes."""
        return f"{self.path}/{path}"


def add(tx: Transaction, path: str, options: FolderOptions) -> WatchedFolder:
    names = {name: json.dumps(value, ensure_ascii=False) for name, value in asdict(options).items() if name != "ocr"}
    folder_id = tx.value(ADD_FOLDER, names | {"path": path, "ocr": int(options.ocr), "now": now()})
    return WatchedFolder(int(folder_id), path, options)


def folders(tx: Transaction) -> list[WatchedFolder]:
    with readable("watched folders"):
        return [as_folder(row) for row in tx.rows("SELECT * FROM folders ORDER BY id")]


def find(tx: Transaction, folder_id: int) -> WatchedFolder:
    row = tx.row("SELECT * FROM folders WHERE id = :id", {"id": folder_id})
    if row is None:
        raise NotFound(f"There is no watched folder {folder_id}. List them with GET /api/v1/folders or `kb watch`.")
    with readable("watched folders"):
        return as_folder(row)


def as_folder(row: Row) -> WatchedFolder:
    lists = {name: list(map(str, json.loads(row[name]))) for name in ("tags", "include", "exclude")}
    return WatchedFolder(int(row["id"]), str(row["path"]), FolderOptions(**lists, ocr=bool(row["ocr"])))


def remove(tx: Transaction, folder_id: int) -> None:
    """Forget a folder and its files; documents stay."""
    tx.run("DELETE FROM folder_files WHERE folder_id = :folder", {"folder": folder_id})
    tx.run("DELETE FROM folders WHERE id = :folder", {"folder": folder_id})


def files(tx: Transaction, folder_id: int, below: Iterable[str] | None = None) -> dict[str, WatchedFile]:
    """What is known of all files, or of those at or below some paths."""
    if below is None:
        rows = tx.tuples(FILES, {"folder": folder_id})
    else:
        rows = [
            row
            for path in below
            for row in tx.tuples(f"{FILES} AND {AT_OR_BELOW}", {"folder": folder_id, "path": path})
        ]
    return {row[0]: as_file(row) for row in rows}


def of_sizes(tx: Transaction, folder_id: int, sizes: Iterable[int]) -> list[WatchedFile]:
    """The files with a document that have one of these sizes."""
    names, params = listed(sizes)
    sql = f"{FILES} AND document_id IS NOT NULL AND size IN ({names})"
    return [as_file(row) for row in tx.tuples(sql, {"folder": folder_id} | params)]


def as_file(row: tuple[object, ...]) -> WatchedFile:
    path, size, mtime_ns, ctime_ns, device, inode, hash_, document_id, job_id, state, reason = row
    stamp = Stamp(size, mtime_ns, ctime_ns, device, inode)  # type: ignore[arg-type]
    return WatchedFile(path, stamp, state, reason, hash_, document_id, job_id)  # type: ignore[arg-type]


def put(tx: Transaction, folder_id: int, known: Iterable[WatchedFile]) -> None:
    """Record these files, in place of what was known of them."""
    tx.run_many(
        PUT_FILE,
        [
            one.stamp._asdict()
            | {
                "folder": folder_id,
                "path": one.path,
                "hash": one.hash,
                "document_id": one.document_id,
                "job_id": one.job_id,
                "state": one.state,
                "reason": one.reason,
            }
            for one in known
        ],
    )


def forget(tx: Transaction, folder_id: int, paths: Iterable[str]) -> None:
    tx.run_many(
        "DELETE FROM folder_files WHERE folder_id = :folder AND path = :path",
        [{"folder": folder_id, "path": path} for path in paths],
    )


def ended(tx: Transaction, folder_id: int) -> list[WatchedFile]:
    """The files whose job has ended, as they are to be recorded now; one whose job is unknown is to be read again."""
    return [after(row) for row in tx.rows(ENDED, {"folder": folder_id})]


def after(row: Row) -> WatchedFile:
    known = as_file(tuple(row[name] for name in FILE_COLUMNS.split(", ")))
    if row["job_status"] == "completed":
        return replace(known, state="indexed", reason=None, job_id=None, document_id=row["found"])
    if row["job_status"] is None:
        return replace(known, job_id=None)
    return replace(known, state="failed", reason=row["error_code"] or row["job_status"])


def orphaned(tx: Transaction, folder_id: int) -> list[WatchedFile]:
    return [as_file(row) for row in tx.tuples(ORPHANED, {"folder": folder_id})]


def returned(tx: Transaction, folder_id: int) -> list[WatchedFile]:
    return [as_file(row) for row in tx.tuples(RETURNED, {"folder": folder_id})]


def retry(tx: Transaction, folder_id: int) -> None:
    """Have the files that failed wait to be read again."""
    tx.run(RETRY, {"folder": folder_id})


def to_read(tx: Transaction, folder_id: int, limit: int) -> list[WatchedFile]:
    """The first files that hold still and that no job reads yet."""
    return [as_file(row) for row in tx.tuples(TO_READ, {"folder": folder_id, "limit": limit})]


def being_read(tx: Transaction, folder_id: int) -> int:
    """How many files a job reads or will read."""
    return int(tx.value(READING, {"folder": folder_id}))


def coverage(tx: Transaction, folder_id: int) -> Coverage:
    by_state = {row["state"]: int(row["n"]) for row in tx.rows(COUNTS, {"folder": folder_id})}
    counts = [by_state.get(state, 0) for state in ("indexed", "waiting", "ignored", "failed")]
    return Coverage(sum(counts), *counts)


def not_indexed(tx: Transaction, folder_id: int, limit: int, offset: int) -> list[FolderFile]:
    params = {"folder": folder_id, "limit": limit, "offset": offset}
    return [FolderFile(**row) for row in tx.rows(NOT_INDEXED, params)]


def unfinished_jobs(tx: Transaction, folder_id: int) -> list[str]:
    """The jobs that read files of this folder and have not ended."""
    return tx.column(UNFINISHED_JOBS, {"folder": folder_id})


def documents_of(tx: Transaction, folder_id: int) -> Sequence[int]:
    """The documents that files of this folder became, ascending."""
    sql = "SELECT document_id FROM folder_files WHERE folder_id = :folder AND document_id IS NOT NULL ORDER BY 1"
    return tx.column(sql, {"folder": folder_id})
