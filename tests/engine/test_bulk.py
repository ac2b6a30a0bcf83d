"""A bulk change whose documents are others by the time it begins changes nothing; one that has begun goes on."""

import threading
from typing import Any

import pytest

from kb.core.errors import Conflict, JobFailure, JobInterrupted
from kb.core.searches import Filter
from kb.core.types import Interrupt
from kb.engine.bulk import Bulk, BulkChange
from kb.engine.jobs.queue import Queue
from kb.engine.trash import Trash
from kb.index.chunk_index import ChunkIndex
from kb.ingest.publish import Publisher
from kb.store import documents, jobs
from kb.store.open import Store
from shelf import content

TAGGED = BulkChange(filter=Filter(tags=("old",)), add_tags=("new",), remove_tags=("old",))


class Shelf:
    def __init__(self, store: Store) -> None:
        self.database = store.database
        live = ChunkIndex(384)
        live.load(self.database)
        trash = Trash(self.database, Publisher(self.database, live), store.originals, 30)
        self.queue = Queue(self.database)
        self.bulk = Bulk(self.database, trash, self.queue)

    def add(self, *tags: str) -> int:
        with self.database.write() as tx:
            id_ = documents.reserve(tx)
            documents.publish(tx, id_, content("a document"), 1, 0)
            documents.set_tags(tx, id_, tags)
        return id_

    def tags(self, *ids: int) -> list[list[str]]:
        with self.database.read() as tx:
            return list(documents.tags_of(tx, ids).values())

    def run(self, job_id: str, interrupt: Interrupt = lambda: None) -> None:
        """As a worker does: claim the job, run it, and put it back if it was interrupted."""
        job = self.queue.claim("bulk", threading.Event())
        assert job is not None
        assert job["id"] == job_id
        try:
            self.bulk.run(job, interrupt)
        except JobInterrupted:
            self.queue.put_back(job)
            raise

    def job(self, job_id: str) -> Any:
        with self.database.read() as tx:
            return jobs.find(tx, job_id)


@pytest.fixture
def shelf(store: Store) -> Shelf:
    return Shelf(store)


def test_the_number_is_checked_when_a_change_is_accepted(shelf: Shelf) -> None:
    shelf.add("old")
    with pytest.raises(Conflict) as refused:
        shelf.bulk.submit(TAGGED, 2)
    assert refused.value.details == {"count": 1}


@pytest.mark.parametrize("what", ["one more", "one less", "another instead"])
def test_other_documents_than_were_meant_stay_as_they_are(shelf: Shelf, what: str) -> None:
    ids = [shelf.add("old"), shelf.add("old")]
    job = shelf.bulk.submit(TAGGED, 2).job_id
    if what != "one less":
        ids.append(shelf.add("old"))
    if what != "one more":
        with shelf.database.write() as tx:
            documents.set_tags(tx, ids[0], ["kept"])
    before = shelf.tags(*ids)
    with pytest.raises(JobFailure) as failed:
        shelf.run(job)
    assert failed.value.code == "conflict"
    assert shelf.tags(*ids) == before


def test_a_document_that_is_gone_is_a_conflict_too(shelf: Shelf) -> None:
    ids = [shelf.add("x"), shelf.add("y")]
    job = shelf.bulk.submit(BulkChange(ids=[*ids], delete=True), 2).job_id
    with shelf.database.write() as tx:
        documents.delete(tx, ids[0])
    with pytest.raises(JobFailure):
        shelf.run(job)
    assert shelf.tags(ids[1]) == [["y"]]


def test_what_has_begun_goes_on_with_the_same_documents(shelf: Shelf) -> None:
    """As after a restart: the job runs again from its row, and some of its documents no longer match the filter."""
    ids = [shelf.add("old") for _ in range(1200)]
    job = shelf.bulk.submit(TAGGED, len(ids)).job_id
    steps = iter(range(3))

    def interrupt() -> None:
        if next(steps, None) is None:
            raise JobInterrupted

    with pytest.raises(JobInterrupted):
        shelf.run(job, interrupt)
    done = shelf.tags(*ids).count(["new"])
    assert 0 < done < len(ids)
    late = shelf.add("old")
    shelf.run(job)
    assert shelf.tags(*ids) == [["new"]] * len(ids)
    assert shelf.tags(late) == [["old"]]
    assert (shelf.job(job)["status"], shelf.job(job)["payload"]) == ("completed", None)


def test_a_change_twice_changes_nothing_more(shelf: Shelf) -> None:
    id_ = shelf.add("old", "other")
    shelf.run(shelf.bulk.submit(TAGGED, 1).job_id)
    with shelf.database.read() as tx:
        changed = documents.find(tx, id_)["updated_at"]
    again = shelf.bulk.submit(BulkChange(ids=[id_], add_tags=("new",), remove_tags=("old",)), 1).job_id
    shelf.run(again)
    with shelf.database.read() as tx:
        assert documents.find(tx, id_)["updated_at"] == changed
