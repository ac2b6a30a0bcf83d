"""The use cases of watched folders: watch one, list them, scan one, watch one no longer."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from kb.core.changes import Change
from kb.core.errors import Conflict, Forbidden, InvalidRequest, NotFound, Unavailable
from kb.core.folders import Documents, Folder, FolderList, FolderOptions, Unwatched
from kb.core.settings import Settings
from kb.engine.folders.keeper import Keeper, Standing
from kb.engine.folders.reader import Reader
from kb.engine.folders.sync import REMOVED_AT_ONCE, Synchroniser, batches
from kb.engine.folders.walk import Walker
from kb.engine.intake import Intake
from kb.engine.jobs.queue import Queue
from kb.engine.trash import Trash
from kb.store import documents, watched
from kb.store.backend import Database, Transaction
from kb.store.originals import Originals
from kb.store.watched import WatchedFolder

NO_DOCUMENTS = tuple(map(Path, ("/proc", "/sys", "/dev", "/run")))  # what the kernel shows as files
DISKS = Path("/run/media")  # but where some systems mount removable disks
ELSEWHERE = "Another engine keeps this folder in step; `kb status` says which one leads."
ENDED = ("completed", "failed", "cancelled")
PATIENCE = 10.0  # seconds that cancelled jobs may take to end


class Folders:
    """`pause` lets searches go first."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        originals: Originals,
        intake: Intake,
        queue: Queue,
        trash: Trash,
        pause: Callable[[], object],
    ) -> None:
        self._settings = settings
        self._database = database
        self._originals = originals
        self._intake = intake
        self._queue = queue
        self._trash = trash
        self._pause = pause
        self._keepers: dict[int, Keeper] = {}
        self._changing = threading.Lock()  # which folders are watched
        self._leads = False  # of several engines, one keeps all folders in step
        database.listen(self._hear)

    def tend(self, *, leads: bool) -> None:
        """Keep those folders in step that are watched now; only the engine that leads does."""
        with self._changing:
            self._leads = leads
            with self._database.read() as tx:
                wanted = {folder.id: folder for folder in watched.folders(tx)} if leads else {}
            for id_ in self._keepers.keys() - wanted.keys():
                self._keepers.pop(id_).stop()
            for id_ in wanted.keys() - self._keepers.keys():
                self._keep(wanted[id_])

    def _check_leads(self) -> None:
        if not self._leads:
            raise Unavailable(
                "Another engine keeps the watched folders in step; nothing was changed. `kb status` says which one "
                "leads: send this to it."
            )

    def stop(self) -> None:
        for keeper in self._keepers.values():
            keeper.stop()

    def watch(self, path: str, options: FolderOptions) -> Folder:
        """Watch a folder from now on; the same once more changes nothing."""
        self._check_leads()
        root = self._checked(path)
        with self._changing, self._database.write() as tx:
            for other in watched.folders(tx):
                if other.path == str(root) and other.options == options:
                    return self._folder(tx, other)
                if root.is_relative_to(other.path) or Path(other.path).is_relative_to(root):
                    raise Conflict(overlap(other, str(root)), folder_id=other.id)
            folder = watched.add(tx, str(root), options)
            tx.after_commit(lambda: self._keep(folder))
        return self.get(folder.id)

    def _checked(self, path: str) -> Path:
        """The folder without links in its path, if it may be watched."""
        if not os.path.isabs(path):
            raise InvalidRequest(f"{path!r} is not absolute. Send the whole path, as the engine's machine sees it.")
        if "\0" in path:
            raise InvalidRequest(f"{path!r} is no path: it holds a NUL character. Send the path without it.")
        root = Path(os.path.realpath(path))
        if not self._settings.may_watch(root):
            allowed = os.pathsep.join(map(str, self._settings.watch_roots or ())) or "none"
            raise Forbidden(
                f"{root} may not be watched: KB_WATCH_ROOTS names the folders that may be, and what is below them "
                f"({allowed}). Set it where the engine is started."
            )
        data = Path(os.path.realpath(self._settings.data_dir))
        barred = (data,) if root.is_relative_to(DISKS) else (*NO_DOCUMENTS, data)
        if root == Path("/") or any(root.is_relative_to(place) for place in barred):
            raise InvalidRequest(
                f"{root} holds no documents of yours: it cannot be watched. Choose a folder that does."
            )
        if not root.is_dir():
            raise InvalidRequest(
                f"There is no folder {root} on the engine's machine. In a container, mount it and send the path inside."
            )
        try:
            os.listdir(root)
        except OSError as wrong:
            raise InvalidRequest(f"{root} cannot be read by the engine: {wrong.strerror}.") from wrong
        return root

    def list(self) -> FolderList:
        with self._database.read() as tx:
            return FolderList([self._folder(tx, folder) for folder in watched.folders(tx)])

    def get(self, folder_id: int, *, limit: int = 1000, offset: int = 0) -> Folder:
        """A folder with the files that are not indexed."""
        with self._database.read() as tx:
            return self._folder(tx, watched.find(tx, folder_id), (limit, offset))

    def scan(self, folder_id: int, *, confirmed: bool = False) -> Folder:
        """Compare all of a folder soon, and read again what failed."""
        with self._database.read() as tx:
            folder = watched.find(tx, folder_id)
        self._check_leads()
        if keeper := self._keepers.get(folder.id):
            keeper.scan(confirmed=confirmed)
        return self.get(folder_id)

    def unwatch(self, folder_id: int, what: Documents) -> Unwatched:
        """Watch a folder no longer, and keep or remove what its files became."""
        self._check_leads()
        with self._changing:
            with self._database.read() as tx:
                folder = watched.find(tx, folder_id)
            if keeper := self._keepers.pop(folder.id, None):
                keeper.stop()
            self._cancel_jobs(folder.id)
            removed = self._remove_documents(folder.id) if what == "remove" else 0
            with self._database.write() as tx:
                watched.remove(tx, folder.id)
        return Unwatched(folder.id, folder.path, removed)

    def _cancel_jobs(self, folder_id: int) -> None:
        """Files that wait are not added any longer. Jobs that run end at their next step."""
        until = time.monotonic() + PATIENCE
        with self._database.read() as tx:
            unfinished = watched.unfinished_jobs(tx, folder_id)
        for job_id in unfinished:
            with suppress(Conflict, NotFound):
                self._queue.cancel(job_id)
        while any(self._queue.get(job_id).status not in ENDED for job_id in unfinished) and time.monotonic() < until:
            time.sleep(0.05)
        with self._database.write(durable=False, publishes=False) as tx:
            watched.put(tx, folder_id, watched.ended(tx, folder_id))

    def _remove_documents(self, folder_id: int) -> int:
        removed = 0
        with self._database.read() as tx:
            ids = watched.documents_of(tx, folder_id)
        for some in batches(ids, REMOVED_AT_ONCE):
            with self._database.write() as tx:
                rows = documents.those(tx, some)
                for row in rows:
                    self._trash.put(tx, row)
                removed += len(rows)
        self._database.truncate_wal()
        return removed

    def _keep(self, folder: WatchedFolder) -> None:
        walker = Walker(
            folder.path,
            folder.options,
            os.path.realpath(self._settings.data_dir),
            self._settings.max_file_mb * 2**20,
            self._pause,
        )
        sync = Synchroniser(folder, self._database, walker, self._trash.put)
        reader = Reader(folder, self._database, self._originals, self._intake, self._trash, self._pause)
        self._keepers[folder.id] = Keeper(folder, sync, reader)
        self._keepers[folder.id].start()

    def _folder(self, tx: Transaction, folder: WatchedFolder, page: tuple[int, int] | None = None) -> Folder:
        keeper = self._keepers.get(folder.id)
        standing = keeper.standing if keeper else Standing("scanning", None if self._leads else ELSEWHERE)
        return Folder(
            id=folder.id,
            path=folder.path,
            **asdict(folder.options),
            state=standing.state,
            message=standing.message,
            coverage=watched.coverage(tx, folder.id),
            files=None if page is None else watched.not_indexed(tx, folder.id, *page),
        )

    def _hear(self, changes: Sequence[Change]) -> None:
        """Wake the keepers when a job has ended or documents have come or gone; called between writes."""
        ended = any(change.kind == "job" and change.action in ENDED for change in changes)
        removed = any(change.kind != "job" and change.action not in ("updated", "tags") for change in changes)
        if ended or removed:
            for keeper in list(self._keepers.values()):
                keeper.tell(removed=removed)


def overlap(other: WatchedFolder, path: str) -> str:
    if other.path == path:
        return (
            f"{path} is watched already, with other options. To change them, stop watching it (`kb unwatch {path} "
            "--remove-documents`; they come back from the trash) and watch it again."
        )
    return (
        f"{path} and {other.path}, which is watched already, hold the same files. Watch one of them: `kb unwatch "
        f"{other.path}` stops the other, and its documents stay."
    )
