"""A backup: one moment of the database with the originals that it names, while writing goes on.

The database is copied inside one read transaction; originals are immutable and named by their hash, so they can be
read later. The manifest comes last: an archive without one is not complete.
"""

import json
import logging
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from kb import __version__
from kb.core.errors import Conflict, NotFound, Unavailable
from kb.core.times import now
from kb.store.backend import Database
from kb.store.backup import export
from kb.store.backup.tar import END, TarMember, data_member, file_member
from kb.store.originals import Originals, in_use
from kb.store.sqlite import inspect

log = logging.getLogger(__name__)

FORMAT = 1
DATABASE = "kb.db"
MANIFEST = "manifest.json"
UNREADABLE = "unreadable.txt"  # what an export could not read, a line each; absent if there is nothing
MOST = 2  # archives at a time: each needs room on the disk


@dataclass(frozen=True, slots=True)
class Lacking:
    """What is missing or damaged in a backup."""

    missing: list[str] = field(default_factory=list)  # originals that the database names and that were not there
    damaged: list[str] = field(default_factory=list)  # originals whose bytes changed on the disk
    damage: list[str] = field(default_factory=list)  # of the database, a sentence each


class Archive:
    """An archive as a stream of blocks. The sender closes it, also if the receiver has gone."""

    def __init__(self, kind: str, blocks: Iterator[bytes], resources: ExitStack) -> None:
        self.filename = f"kb-{kind}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar"
        self.blocks = blocks
        self._resources = resources

    def close(self) -> None:
        self._resources.close()


class Archives:
    def __init__(self, database: Database, originals: Originals) -> None:
        self._database = database
        self._originals = originals
        self._places = threading.BoundedSemaphore(MOST)

    def backup(self) -> Archive:
        """Everything that `restore` needs."""
        return self._archive("backup", self._backup)

    def export(self) -> Archive:
        """Everything that another program can read: documents as lines of JSON, and the originals."""
        return self._archive("export", self._export)

    def _archive(self, kind: str, make: Callable[[ExitStack], Iterator[bytes]]) -> Archive:
        """Prepare an archive. Errors are raised here, before the first block is sent."""
        if not self._places.acquire(blocking=False):
            raise Unavailable(f"{MOST} archives are being made already. Try again when one is done.")
        with ExitStack() as resources:
            resources.callback(self._places.release)
            blocks = make(resources)
            return Archive(kind, blocks, resources.pop_all())
        raise AssertionError("nothing is suppressed")

    def _backup(self, resources: ExitStack) -> Iterator[bytes]:
        copy = resources.enter_context(self._originals.scratch(self._database.size_bytes()))
        with self._database.read() as tx:
            originals = in_use(tx)
            tx.copy_to(copy)
        created_at = now()
        damage = inspect.damage(copy)
        for sentence in damage:
            log.warning("the backup holds damage: %s", sentence)

        def blocks() -> Iterator[bytes]:
            members: list[TarMember] = []
            lacking = Lacking(damage=damage)
            members += filter(None, [(yield from file_member(DATABASE, copy))])
            for hash_ in originals:
                member = yield from self._original(hash_, lacking)
                members += filter(None, [member])
            yield from data_member(MANIFEST, manifest(created_at, members, lacking))
            yield END

        return blocks()

    def _original(self, hash_: str, lacking: Lacking) -> Generator[bytes, None, TarMember | None]:
        """The blocks of an original; none if it is gone or damaged, as a restore would refuse it."""
        name = original_name(hash_)
        try:
            path = self._originals.verified(hash_)
        except NotFound:
            lacking.missing.append(name)
        except Conflict:
            log.warning("the original %s is damaged; the backup does without it", hash_)
            lacking.damaged.append(name)
        else:
            return (yield from file_member(name, path))
        return None

    def _export(self, resources: ExitStack) -> Iterator[bytes]:
        lines = resources.enter_context(self._originals.scratch(self._database.size_bytes()))
        done = export.write_lines(self._database, lines)

        def blocks() -> Iterator[bytes]:
            yield from file_member("documents.jsonl", lines)
            for hash_ in sorted(done.originals):
                yield from file_member(original_name(hash_), self._originals.path(hash_))
            if done.unreadable:
                yield from data_member(UNREADABLE, "\n".join([*done.unreadable, ""]).encode())
            yield END

        return blocks()


def original_name(sha256: str) -> str:
    return f"originals/{sha256[:2]}/{sha256}"


def manifest(created_at: str, members: list[TarMember], lacking: Lacking) -> bytes:
    about = {"format": FORMAT, "kb_version": __version__, "created_at": created_at}
    return json.dumps(about | {"members": [asdict(m) for m in members]} | asdict(lacking), indent=1).encode()
