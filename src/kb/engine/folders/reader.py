"""Have the files that wait read by jobs, a few at a time, and record how the jobs ended.

The files go the way of uploads: staged, hashed on the way, kept under their hash. A hundred thousand new files make
no long queue: a person's own addition waits behind a few of them only.
"""

import logging
from collections.abc import Callable
from dataclasses import replace

from kb.core.errors import Conflict, InvalidRequest, NotFound, TooLarge, UnsupportedFormat
from kb.core.values import Accepted, AddOptions
from kb.engine.folders.files import DENIED, Unsteady, blocks
from kb.engine.folders.sync import REMOVED_IN_KB, RENAMED
from kb.engine.folders.walk import DENIED_REASON, TOO_LARGE
from kb.engine.intake import Intake
from kb.engine.trash import Trash
from kb.store import documents, watched
from kb.store.backend import Database, Transaction
from kb.store.originals import Originals
from kb.store.staging import Staged
from kb.store.watched import WatchedFile, WatchedFolder

log = logging.getLogger(__name__)

AHEAD = 32  # jobs of one folder in the queue at a time


class Reader:
    """`pause` is called before each file, to let searches go first."""

    def __init__(
        self,
        folder: WatchedFolder,
        database: Database,
        originals: Originals,
        intake: Intake,
        trash: Trash,
        pause: Callable[[], object],
    ) -> None:
        self._folder = folder
        self._database = database
        self._originals = originals
        self._intake = intake
        self._trash = trash
        self._pause = pause

    def settle(self, *, removed: bool) -> list[str]:
        """Record what became of files whose job has ended; return their paths.

        With `removed`, look also for documents that somebody removed, or brought back.
        """
        with self._database.read() as tx:
            if not self._settled(tx, removed=removed):
                return []
        with self._database.write(durable=False, publishes=False) as tx:
            changed = self._settled(tx, removed=removed)
            watched.put(tx, self._folder.id, changed)
        return [one.path for one in changed]

    def _settled(self, tx: Transaction, *, removed: bool) -> list[WatchedFile]:
        changed = watched.ended(tx, self._folder.id)
        if removed:
            lost = watched.orphaned(tx, self._folder.id)
            changed += [replace(one, state="ignored", reason=REMOVED_IN_KB) for one in lost]
            back = watched.returned(tx, self._folder.id)
            changed += [replace(one, state="indexed", reason=None) for one in back]
        return changed

    def retry(self) -> None:
        """Have the files that failed read again."""
        with self._database.write(durable=False, publishes=False) as tx:
            watched.retry(tx, self._folder.id)

    def feed(self) -> list[str]:
        """Submit files that wait, as many as there is room for. Return paths that are not as they were.

        Raises Unavailable or StorageFull if nothing can be added now.
        """
        with self._database.read() as tx:
            room = AHEAD - watched.being_read(tx, self._folder.id)
            waiting = watched.to_read(tx, self._folder.id, room) if room > 0 else []
        return [one.path for one in waiting if not self._read(one)]

    def _read(self, one: WatchedFile) -> bool:
        """Submit one file; False if it is not as it was, or failed: then it has to be looked at."""
        self._pause()
        try:
            with self._originals.stage() as staged:
                for block in blocks(self._folder.path, one.path, one.stamp):
                    staged.write(block)
                self._submit(one, staged)
        except Unsteady:
            return False
        except TooLarge:
            return self._failed(one, TOO_LARGE)
        except Conflict as refused:
            return self._failed(one, f"{refused.code}: {refused.message}")
        except (UnsupportedFormat, InvalidRequest) as refused:
            return self._failed(one, refused.code)
        except OSError as wrong:
            return self._failed(one, DENIED_REASON if wrong.errno in DENIED else f"cannot be read: {wrong.strerror}")
        return True

    def _submit(self, one: WatchedFile, staged: Staged) -> None:
        name = one.path.rpartition("/")[2]
        file = replace(one, hash=staged.sha256, reason=None)

        def record(tx: Transaction, accepted: Accepted) -> None:
            """In the transaction of the job: no crash comes between the two."""
            done = accepted.status == "completed"
            after = replace(
                file,
                state="indexed" if done else "waiting",
                job_id=None if done else accepted.job_id,
                document_id=accepted.document_id or file.document_id,
            )
            watched.put(tx, self._folder.id, [after])

        if one.reason == RENAMED and one.hash == staged.sha256 and self._is_there(one):
            self._intake.reread_as(one.document_id or 0, staged, name, record, force_ocr=self._folder.options.ocr)
            return
        source_path = self._folder.source_path(one.path)
        if one.document_id is None:
            self._trash.bring_back(source_path, staged.sha256)
        options = AddOptions(
            # A document that is there keeps the tags that a person gave or took from it.
            tags=None if one.document_id else self._folder.options.tags or None,
            source_path=source_path,
            force_ocr=self._folder.options.ocr,
        )
        self._intake.add_file(staged, name, options, record)

    def _is_there(self, one: WatchedFile) -> bool:
        with self._database.read() as tx:
            try:
                return bool(documents.find(tx, one.document_id or 0)["content_hash"] == one.hash)
            except NotFound:
                return False

    def _failed(self, one: WatchedFile, reason: str) -> bool:
        log.info("%s is not indexed: %s", self._folder.source_path(one.path), reason)
        with self._database.write(durable=False, publishes=False) as tx:
            watched.put(tx, self._folder.id, [replace(one, state="failed", reason=reason)])
        return False
