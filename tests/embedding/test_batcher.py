"""Bulk embedding: every stream at once, callers in turn, and what goes wrong reaches those whose it is."""

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from kb.embedding.batcher import BATCH_TOKENS, BulkEmbedder, Ids, Vectors
from kb.embedding.priority import Priority

LONG = BATCH_TOKENS - 8  # too long to share a batch


class Stream:
    """Gives each text its first token as its vector, notes what it was asked for, and can be held."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.running = threading.Event()
        self.go = threading.Event()
        self.go.set()

    def __call__(self, texts: Sequence[Ids]) -> Vectors:
        self.batches.append([len(text) for text in texts])
        self.running.set()
        assert self.go.wait(10)
        if any(text[0] < 0 for text in texts):
            raise ZeroDivisionError
        return np.array([[text[0]] for text in texts], np.float32)


@pytest.fixture
def stream() -> Stream:
    return Stream()


@pytest.fixture
def bulk(stream: Stream) -> BulkEmbedder:
    return BulkEmbedder([stream], stream, 1, Priority())


@pytest.fixture
def held(stream: Stream, bulk: BulkEmbedder) -> Stream:
    """A stream that is busy until it may go."""
    stream.go.clear()
    bulk.submit([text(0, LONG)])
    assert stream.running.wait(10)
    stream.batches.clear()
    return stream


def text(first: int, length: int) -> list[int]:
    return [first] * length


def test_vectors_come_in_the_order_of_the_texts(bulk: BulkEmbedder) -> None:
    lengths = [5, LONG, 1, 40, 39, 200, 8, 7, 120, 2]
    vectors = bulk.submit([text(number, length) for number, length in enumerate(lengths)]).result(10)
    assert vectors[:, 0].tolist() == list(range(10))


def test_nothing_is_done_at_once(bulk: BulkEmbedder) -> None:
    assert bulk.submit([]).result(0).shape == (0, 1)


def test_every_stream_works_at_the_same_time() -> None:
    streams = [Stream(), Stream()]
    bulk = BulkEmbedder(streams, Stream(), 1, Priority())
    for stream in streams:
        stream.go.clear()
    done = bulk.submit([text(1, LONG), text(2, LONG), text(3, LONG)])
    assert all(stream.running.wait(10) for stream in streams)
    for stream in streams:
        stream.go.set()
    assert done.result(10)[:, 0].tolist() == [1, 2, 3]


def test_a_single_text_gets_all_cores_unless_somebody_asks_questions() -> None:
    stream, whole = Stream(), Stream()
    priority = Priority()
    bulk = BulkEmbedder([stream], whole, 1, priority)
    bulk.submit([text(1, 50)]).result(10)
    assert (stream.batches, whole.batches) == ([], [[50]])
    bulk.submit([text(1, LONG), text(2, LONG)]).result(10)
    assert (stream.batches, whole.batches) == ([[LONG]], [[50], [LONG]])
    with priority.search():
        pass
    bulk.submit([text(1, 50)]).result(10)
    assert (stream.batches, whole.batches) == ([[LONG], [50]], [[50], [LONG]])


def test_short_texts_of_several_callers_share_a_batch(bulk: BulkEmbedder, held: Stream) -> None:
    callers = [bulk.submit([text(number, 30 + number)]) for number in range(3)]
    held.go.set()
    assert [done.result(10)[0, 0] for done in callers] == [0, 1, 2]
    assert [sorted(batch) for batch in held.batches] == [[30, 31, 32]]


def test_texts_of_unlike_length_do_not_share_a_batch(bulk: BulkEmbedder, held: Stream) -> None:
    done = bulk.submit([text(1, 64), text(2, 8), text(3, 60), text(4, 7)])
    held.go.set()
    done.result(10)
    assert held.batches == [[64, 60], [8, 7]]


def test_a_batch_is_never_larger_than_its_bound(bulk: BulkEmbedder, held: Stream) -> None:
    done = bulk.submit([text(1, 64)] * 9)
    held.go.set()
    done.result(10)
    assert [len(batch) * 64 <= BATCH_TOKENS for batch in held.batches] == [True] * 3


def test_callers_take_turns(bulk: BulkEmbedder, held: Stream) -> None:
    book = bulk.submit([text(1, LONG)] * 3)
    note = bulk.submit([text(2, LONG - 40)])
    held.go.set()
    note.result(10)
    book.result(10)
    assert held.batches == [[LONG], [LONG - 40], [LONG], [LONG]]


def test_what_goes_wrong_reaches_those_whose_it_is_and_nobody_else(bulk: BulkEmbedder, held: Stream) -> None:
    wrong = bulk.submit([text(-1, LONG), text(5, 10), text(6, 11)])
    right = bulk.submit([text(7, LONG)])
    held.go.set()
    with pytest.raises(ZeroDivisionError):
        wrong.result(10)
    assert right.result(10)[0, 0] == 7
    assert bulk.submit([text(8, 3)]).result(10)[0, 0] == 8
    assert [10, 11] not in held.batches, "what is left of it is not begun"


def test_work_of_many_threads_is_not_mixed_up() -> None:
    bulk = BulkEmbedder([Stream(), Stream(), Stream()], Stream(), 1, Priority())
    found: dict[int, list[float]] = {}

    def submit(caller: int) -> None:
        texts = [text(caller * 100 + number, 1 + (caller * number * 7) % LONG) for number in range(20)]
        found[caller] = bulk.submit(texts).result(30)[:, 0].tolist()

    threads = [threading.Thread(target=submit, args=(caller,)) for caller in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {caller: [caller * 100 + number for number in range(20)] for caller in range(8)}
