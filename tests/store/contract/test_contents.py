"""What a store holds: passages with their words and vectors, documents, jobs, originals."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kb.core.errors import NotFound
from kb.core.searches import Filter, Listing
from kb.core.times import now
from kb.store import chunks, documents, health, jobs, listing, notes
from kb.store.backend import Transaction
from kb.store.open import Store
from kb.store.originals import in_use
from shelf import chunk, content

WIDTH = 8


def add(tx: Transaction, title: str, *texts: str, tags: tuple[str, ...] = ()) -> int:
    id_ = documents.reserve(tx)
    rows = np.arange(1, 1 + len(texts) * WIDTH, dtype=np.float32).reshape(-1, WIDTH)
    chunks.add(tx, id_, 1, [chunk(at, text, row) for at, (text, row) in enumerate(zip(texts, rows, strict=True))])
    documents.publish(tx, id_, content(title), 1, len(texts))
    documents.set_tags(tx, id_, tags)
    return id_


@pytest.fixture
def ready(store: Store) -> Store:
    """A store whose vectors are as small as those of these tests."""
    with store.database.write() as tx:
        tx.vectors.clear(WIDTH)
    return store


def test_words_are_found_as_often_as_they_occur(ready: Store) -> None:
    with ready.database.write() as tx:
        add(tx, "a", "heron heron reeds", "otter\0s heron")
        heron, reed, nothing = tx.fulltext.postings(["heron", "reed", "badger"])
    assert (heron.chunk_ids.tolist(), heron.counts.tolist()) == ([1, 2], [2, 1])
    assert (reed.chunk_ids.tolist(), nothing.chunk_ids.tolist()) == ([1], [])
    with ready.database.write() as tx:
        assert dict(tx.fulltext.vocabulary())["heron"] == 2
        assert sorted(tx.fulltext.ids()) == [1, 2]
        assert [(id_, sorted(words)) for id_, words in tx.fulltext.terms_of([1, 99])] == [
            (1, ["heron", "heron", "reed"])
        ]
        chunks.remove(tx, [1])
        assert tx.fulltext.postings(["heron"])[0].chunk_ids.tolist() == [2]
        tx.fulltext.rebuild()
        assert tx.fulltext.unsound() == []


def test_vectors_are_loaded_in_the_order_asked_for(ready: Store) -> None:
    with ready.database.write() as tx:
        add(tx, "a", "one", "two", "three")
        assert tx.vectors.dimensions() == WIDTH
    with ready.database.read() as tx:
        into = np.full((3, WIDTH), 7, np.float32)
        assert tx.vectors.load(np.array([3, 77, 1]), into) == 1
        assert into[:, 0].tolist() == [17, 7, 1]
        found = tx.vectors.get(2)
        assert found is not None
        assert found.tolist() == list(range(9, 17))
        assert (tx.vectors.get(77), tx.vectors.unsound(), sorted(tx.vectors.ids())) == (None, [], [1, 2, 3])
    with ready.database.write() as tx:
        tx.vectors.remove([2])
        tx.vectors.add(2, np.full(WIDTH, np.nan, np.float32))
    with ready.database.read() as tx:
        assert tx.vectors.unsound() == [2]
        assert health.vector_coverage(tx).missing == [2]
        assert (tx.vectors.get(2), tx.vectors.load(np.array([1, 2]), into[:2])) == (None, 1)


def test_hits_come_with_the_tags_in_their_order(ready: Store) -> None:
    with ready.database.write() as tx:
        add(tx, "a", "one", "same", tags=("z", "a b", "é"))
        add(tx, "b", "same")
    found = chunks.hits(ready.database, [1, 3, 99])
    assert [found[id_].fields["tags"] for id_ in (1, 3)] == [["z", "a b", "é"], []]
    assert (found[1].copies_key, found[3].copies_key is None) == (None, False)
    assert chunks.hits(ready.database, []) == {}


def test_documents_are_filtered_sorted_and_cut_into_pages(ready: Store) -> None:
    with ready.database.write() as tx:
        ids = {title: add(tx, title, f"about {title}", tags=(title.lower(), "all")) for title in ("b", "B", "ä", "a")}
    with ready.database.read() as tx:
        by_name = Listing(sort="filename", order="asc", limit=3)
        assert [one.title for one in listing.page(tx, by_name)[0]] == ["B", "a", "b"]  # by their bytes
        assert listing.page(tx, by_name)[1] == 4
        assert [one.id for one in listing.page(tx, Listing(filter=Filter(tags=("b", "all")), order="asc"))[0]] == [
            ids["b"],
            ids["B"],
        ]
        assert listing.page(tx, Listing(state="failed")) == ([], 0)
        assert listing.page(tx, Listing(filter=Filter(tags=("none",)))) == ([], 0)
        assert [tag.tag for tag in documents.tag_counts(tx)] == ["a", "all", "b", "ä"]
        assert [one.text for one in chunks.of_document(tx, ids["a"], 0, None)] == ["about a"]
        assert (documents.those(tx, []), documents.ids_of(tx, []), notes.titles(tx, [])) == ([], [], {})
        assert (health.documents_of(tx, []), health.miscounted(tx), health.without_metadata_passage(tx)) == ([], [], [])
        with pytest.raises(NotFound):
            documents.find(tx, "99")


def test_a_job_is_claimed_once_in_the_order_of_arrival_and_a_retry_waits_at_the_end(store: Store) -> None:
    with store.database.write() as tx:
        for name in "abc":
            jobs.add(tx, jobs.NewJob(id=name, kind="note", payload={"text": name}))
        claimed = [tx.claim_job("small", now())["id"] for _ in range(2)]  # type: ignore[index]
        jobs.fail(tx, "a", "internal", "no reason")
        jobs.retry(tx, "a")
        jobs.add(tx, jobs.NewJob(id="d", kind="note", payload={}))
        while (row := tx.claim_job("small", now())) is not None:
            claimed.append(row["id"])
        assert (claimed, tx.claim_job("large", now())) == (["a", "b", "c", "a", "d"], None)
        jobs.cancel(tx, "d")
        jobs.recover(tx)
        assert {job.id: job.status for job in jobs.page(tx, None, 10, 0)[0]} == {
            "a": "queued",
            "b": "queued",
            "c": "queued",
            "d": "cancelled",
        }


def test_an_original_is_kept_with_the_write_that_names_it(store: Store) -> None:
    originals, data = store.originals, bytes(range(256)) * 12_000  # three parts
    with originals.stage() as staged:
        staged.write(data)
        staged.sync()
        with store.database.write() as tx:
            originals.keep(tx, staged)
            originals.keep(tx, staged) if store.database.name == "postgresql" else None
    sha256 = staged.sha256
    assert (originals.has(sha256), originals.is_sound(sha256)) == (True, True)
    assert originals.verified(sha256).read_bytes() == data
    with store.database.write() as tx:
        assert originals.orphans(tx, {sha256}) == []
        originals.remove(tx, sha256)
    assert not originals.has(sha256)
    with pytest.raises(NotFound):
        originals.verified(sha256)


def test_originals_are_read_by_many_at_once_while_others_go(store: Store) -> None:
    kept = []
    for number in range(24):
        with store.originals.stage() as staged, store.database.write() as tx:
            staged.write(f"original {number}".encode())
            staged.sync()
            store.originals.keep(tx, staged)
        kept.append(staged.sha256)

    def read(sha256: str) -> bytes:
        return store.originals.verified(sha256).read_bytes()

    with ThreadPoolExecutor(8) as readers:
        found = list(readers.map(read, kept * 4))
    assert found[:24] == [f"original {number}".encode() for number in range(24)]
    with store.database.write() as tx:
        for sha256 in kept[1:]:
            store.originals.remove(tx, sha256)
    assert [store.originals.has(sha256) for sha256 in kept] == [True] + [False] * 23


def test_what_nothing_names_is_swept(store: Store) -> None:
    for data in (b"one", b"another"):
        with store.originals.stage() as staged, store.database.write() as tx:
            staged.write(data)
            staged.sync()
            store.originals.keep(tx, staged)
    with store.database.write() as tx:
        assert in_use(tx) == []
        assert store.originals.sweep(tx, {staged.sha256}) == 1
    assert store.originals.has(staged.sha256)
    with store.database.write() as tx:
        assert store.originals.clear(tx) == len(b"another")
    assert not store.originals.has(staged.sha256)
