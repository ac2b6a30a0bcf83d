"""What is in an archive, a mail or a mailbox: each member becomes a document of its own, one after the other.

A member that is there with the same bytes is not read again, so a job that was interrupted goes on where it was. The
limits count over everything that is unpacked on the way: an archive may hold archives.
"""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace

from kb.core.errors import JobFailure, NotFound, TooLarge, UnsupportedFormat
from kb.core.values import CONTAINERS, LedgerEntry
from kb.ingest import requests
from kb.ingest.extract import Source, detect
from kb.ingest.extract.member import MAX_MEMBERS, About, Member, check_unpacked
from kb.ingest.publish import MovedError, Publisher, attempted
from kb.ingest.requests import AddRequest, known
from kb.ingest.sandbox.sandbox import Sandbox
from kb.ingest.steps import UNRECORDED
from kb.ingest.writer import DocumentWriter, Task, begun
from kb.store import documents
from kb.store.backend import Database, Row, Transaction
from kb.store.originals import Originals
from kb.store.staging import Staged

MAX_DEPTH = 4  # documents with members inside of each other: an archive with a mail that forwards one with an archive

Remove = Callable[[Transaction, Row], object]


@dataclass
class Tree:
    """All that one job unpacks, and what it may be at most."""

    size: int  # bytes of the file that it is all in
    members: int = 0
    unpacked: int = 0
    chunks: int = 0

    def count(self) -> None:
        self.members += 1
        if self.members > MAX_MEMBERS:
            raise JobFailure("too_complex", f"More than {MAX_MEMBERS:,} members are in it in all.")

    def unpack(self, size: int) -> None:
        self.unpacked += size
        check_unpacked(self.size, self.unpacked)


@dataclass(frozen=True)
class Unpacked:
    """A document and what became of its members."""

    within: tuple[Row, ...]  # the document, behind those that it is in
    tree: Tree
    entries: list[LedgerEntry] = field(default_factory=list)

    @property
    def chunks(self) -> int:
        return self.tree.chunks

    def ledger(self, row: Row) -> list[LedgerEntry]:
        return [*(entry for entry in documents.ledger_of(row) if entry != requests.UNREAD), *self.entries]

    def check(self, tx: Transaction) -> None:
        """Raise if one of the documents was deleted or replaced meanwhile."""
        for outermost, row in enumerate(self.within):
            try:
                now = documents.find(tx, row["id"])
            except NotFound:
                raise JobFailure(
                    "conflict", f"Document {row['id']} was deleted while its members were being read."
                ) from None
            if now["content_hash"] != row["content_hash"]:
                if outermost == 0:
                    raise MovedError
                raise JobFailure("conflict", f"Document {row['id']} was replaced while its members were being read.")


@dataclass(frozen=True)
class Unpacker:
    """`remove` puts a document into the trash, with all that was found in it."""

    _database: Database
    _originals: Originals
    _sandbox: Sandbox
    _publisher: Publisher
    _writer: DocumentWriter
    _remove: Remove

    def unpack(self, task: Task, row: Row) -> Unpacked:
        """Make documents of what is in this one, and remove those that are no longer in it."""
        unpacked = Unpacked((row,), Tree(row["size_bytes"]))
        self._unpack(task, unpacked)
        return unpacked

    def _unpack(self, task: Task, unpacked: Unpacked) -> None:
        row = unpacked.within[-1]
        source = Source(self._originals.verified(row["content_hash"]), row["filename"] or "")
        there: set[str] = set()
        again, complete = task.request.document_id is not None, False
        try:
            with closing(self._sandbox.members(row["doc_type"], source, task.interrupt)) as members:
                for member in members:
                    task.interrupt()
                    task.steps.member(member.about.number, member.about.total)
                    entry = self._read(task, unpacked, member)
                    unpacked.entries.append(entry)
                    # The same bytes read again: a member that fails this time stays as it was read before.
                    if entry.state == "ok" or again:
                        there.add(member.about.path)
            complete = True
        except JobFailure as failure:  # of the container itself
            unpacked.entries.append(LedgerEntry("further members", "failed", failure.message))
        with self._database.write(durable=False) as tx:
            tx.hold(task.job)
            unpacked.check(tx)
            for held in documents.members(tx, row["id"]):
                if held["member"] not in there and (complete or not again):
                    self._remove(tx, held)

    def _read(self, task: Task, unpacked: Unpacked, member: Member) -> LedgerEntry:
        """What became of a member. A failure concerns nothing but itself."""
        name, outcome = member.about.name, member.about.outcome
        if outcome.state != "ok":
            return LedgerEntry(name, outcome.state, outcome.reason)
        try:
            unpacked.tree.count()
            with self._originals.stage() as staged:
                for piece in member.pieces:
                    unpacked.tree.unpack(len(piece))
                    staged.write(piece)
                if staged.size == 0:
                    return LedgerEntry(name, "empty", "zero bytes")
                self._add(task, unpacked, member.about, staged)
        except UnsupportedFormat as refused:
            return LedgerEntry(name, "failed", f"cannot be read: {refused.details['reason']}")
        except (JobFailure, TooLarge) as failure:
            return LedgerEntry(name, "failed", failure.message)
        return LedgerEntry(name, "ok", outcome.reason)

    def _add(self, task: Task, unpacked: Unpacked, member: About, staged: Staged) -> None:
        form = detect.detect(staged.head, staged.tail, member.filename)
        if form.doc_type in CONTAINERS and len(unpacked.within) >= MAX_DEPTH:
            raise JobFailure("too_complex", f"It is nested too deeply: {MAX_DEPTH} levels are read.")
        parent = unpacked.within[-1]
        request = AddRequest(
            doc_type=form.doc_type,
            media_type=form.media_type,
            content_hash=staged.sha256,
            size_bytes=staged.size,
            filename=member.filename,
            source_path=f"{parent['source_path']}/{member.path}" if parent["source_path"] else None,
            tags=task.request.tags,
            replace_tags=task.request.replace_tags,
            force_ocr=task.request.force_ocr,
            parent_id=parent["id"],
            member=member.path,
            message=member.message or task.request.message,
        )
        staged.sync()
        again = task.request.document_id is not None
        inner = replace(task, request=request, steps=UNRECORDED, file=staged.path)
        row = attempted(lambda: self._attempt(inner, unpacked, staged, again=again))
        if requests.lacks_members(row):
            found = Unpacked((*unpacked.within, row), unpacked.tree)
            self._unpack(inner, found)
            with self._database.write(durable=False) as tx:
                found.check(tx)
                documents.set_ledger(tx, row["id"], found.ledger(row))

    def _attempt(self, task: Task, unpacked: Unpacked, staged: Staged, *, again: bool) -> Row:
        """Publish a member, unless it is there; return its row."""
        # No write is durable before the job ends: it begins again after a power cut.
        with self._database.write(durable=False) as tx:
            unpacked.check(tx)
            found = known(tx, task.request)
            if again and found and found.same_content:
                task = replace(task, request=replace(task.request, document_id=found.row["id"]))
            elif found and requests.text_settled(found, task.request):
                requests.give_tags(tx, found.row, task.request)
                return found.row
            draft = begun(tx, task.request, found)
        with self._publisher.withdrawing(draft.revision):
            self._writer.write(task, draft)
            task.interrupt()
            with self._database.write(durable=False) as tx:
                unpacked.check(tx)
                row = self._writer.publish(tx, task, draft, known(tx, task.request))
                self._originals.keep(tx, staged)
            unpacked.tree.chunks += len(draft.revision)
        return row
