"""A bulk change whose documents are others by the time it begins changes nothing; one that has begun goes on."""

from pathlib import Path
from typing import Any

import pytest

from kb.core.errors import Conflict, JobCancelled, JobFailure
from kb.core.values import Filter
from kb.engine.bulk import Bulk, BulkChange
from kb.engine.catalogue import Catalogue
from kb.engine.jobs.queue import Queue
from kb.index import terms
from kb.index.chunk_index import ChunkIndex
from kb.ingest.publish import Publisher
from kb.store import documents, jobs
from kb.store.originals import Originals
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from shelf import content

TAGGED = BulkChange(filter=Filter(tags=("old",)), add_tags=("new",), remove_tags=("old",))


class Shelf:
    def __init__(self, folder: Path) -> None:
        migrate(folder / "kb.db", terms.index_terms)
        self.database = SQLiteDatabase(folder / "kb.db")
        live = ChunkIndex(384)
        live.load(self.database)
        catalogue = Catalogue(self.database, Publisher(self.database, live), Originals(folder, 2**20))
        self.queue = Queue(self.database)
        self.bulk = Bulk(self.database, catalogue, self.queue)

    def add(self, *tags: str) -> int:
        with self.database.write() as tx:
            id_ = documents.reserve(tx)
            documents.publish(tx, id_, content("a document"), 1, 0)
            documents.set_tags(tx, id_, tags)
        return id_

    def tags(self, *ids: int) -> list[list[str]]:
        with self.database.read() as tx:
            return list(documents.tags_of(tx, ids).values())

    def job(self, job_id: str) -> Any:
        with self.database.read() as tx:
            return jobs.find(tx, job_id)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


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
        shelf.bulk.run(shelf.job(job), lambda: None)
    assert failed.value.code == "conflict"
    assert shelf.tags(*ids) == before


def test_a_document_that_is_gone_is_a_conflict_too(shelf: Shelf) -> None:
    ids = [shelf.add("x"), shelf.add("y")]
    job = shelf.bulk.submit(BulkChange(ids=[*ids], delete=True), 2).job_id
    with shelf.database.write() as tx:
        documents.delete(tx, ids[0])
    with pytest.raises(JobFailure):
        shelf.bulk.run(shelf.job(job), lambda: None)
    assert shelf.tags(ids[1]) == [["y"]]


def test_what_has_begun_goes_on_with_the_same_documents(shelf: Shelf) -> None:
    """As after a restart: the job runs again from its row, and some of its documents no longer match the filter."""
    ids = [shelf.add("old") for _ in range(1200)]
    job = shelf.bulk.submit(TAGGED, len(ids)).job_id
    steps = iter(range(3))

    def interrupt() -> None:
        if next(steps, None) is None:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        shelf.bulk.run(shelf.job(job), interrupt)
    done = shelf.tags(*ids).count(["new"])
    assert 0 < done < len(ids)
    late = shelf.add("old")
    shelf.bulk.run(shelf.job(job), lambda: None)
    assert shelf.tags(*ids) == [["new"]] * len(ids)
    assert shelf.tags(late) == [["old"]]
    assert (shelf.job(job)["status"], shelf.job(job)["payload"]) == ("completed", None)


def test_a_change_twice_changes_nothing_more(shelf: Shelf) -> None:
    id_ = shelf.add("old", "other")
    job = shelf.bulk.submit(TAGGED, 1).job_id
    shelf.bulk.run(shelf.job(job), lambda: None)
    with shelf.database.read() as tx:
        changed = documents.find(tx, id_)["updated_at"]
    again = shelf.bulk.submit(BulkChange(ids=[id_], add_tags=("new",), remove_tags=("old",)), 1).job_id
    shelf.bulk.run(shelf.job(again), lambda: None)
    with shelf.database.read() as tx:
        assert documents.find(tx, id_)["updated_at"] == changed
