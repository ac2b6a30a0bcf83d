"""Full text in a table of terms by chunk, with an inverted index over them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kb.store.backend import Postings
from kb.store.postgres.runner import Runner
from kb.store.postgres.statements import escaped, unescaped

ADD = "INSERT INTO chunk_terms (chunk_id, terms, counts) VALUES (:id, :terms, :counts)"
REMOVE = "DELETE FROM chunk_terms WHERE chunk_id = ANY(:ids)"
# All postings of a term in one value: chunk ids and counts, 8 bytes each. Rows would take ten times as long.
POSTINGS = """
SELECT w.number, string_agg(int8send(c.chunk_id) || int8send(c.counts[array_position(c.terms, w.term)]), ''::bytea)
  FROM unnest(:terms::text[]) WITH ORDINALITY w (term, number) JOIN chunk_terms c ON c.terms @> ARRAY[w.term]
 GROUP BY w.number
"""
VOCABULARY = "SELECT t, count(*) FROM chunk_terms, unnest(terms) t GROUP BY t"
TERMS = "SELECT chunk_id, terms, counts FROM chunk_terms WHERE chunk_id = ANY(:ids)"
MOST = 2**15 - 1  # of one term in one chunk


@dataclass
class PostgresFullText:
    """Rows that are added wait until something is read or the transaction ends: they are then sent together."""

    _runner: Runner
    _waiting: list[dict[str, object]] = field(default_factory=list)

    def add(self, chunk_id: int, title: str, heading: str, body: str) -> None:
        counted = Counter(f"{title} {heading} {body}".split())
        terms, counts = [escaped(term) for term in counted], [min(count, MOST) for count in counted.values()]
        self._waiting.append({"id": chunk_id, "terms": terms, "counts": counts})

    def flush(self) -> None:
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._runner.run_many(ADD, waiting)

    def remove(self, chunk_ids: Iterable[int]) -> None:
        self.flush()
        if ids := list(map(int, chunk_ids)):
            self._runner.run(REMOVE, {"ids": ids})

    def clear(self) -> None:
        self._waiting.clear()
        self._runner.run("DELETE FROM chunk_terms")

    def ids(self) -> NDArray[np.int64]:
        self.flush()
        return self._runner.integers(("chunk_id",), "chunk_terms")[:, 0]

    def unsound(self) -> list[int]:
        """Rows whose two lists do not belong together; PostgreSQL itself has a checksum for every page."""
        self.flush()
        return self._runner.column("SELECT chunk_id FROM chunk_terms WHERE cardinality(terms) <> cardinality(counts)")

    def rebuild(self) -> None:
        self._runner.run("REINDEX INDEX chunk_terms_terms")

    def postings(self, terms: Sequence[str]) -> list[Postings]:
        self.flush()
        asked = [escaped(term) for term in terms]
        found = dict(self._runner.raw(POSTINGS, {"terms": asked}))
        return [postings_of(found.get(number, b"")) for number in range(1, len(asked) + 1)]

    def vocabulary(self) -> Iterator[tuple[str, int]]:
        self.flush()
        yield from ((str(term), int(chunks)) for term, chunks in self._runner.tuples(VOCABULARY))

    def terms_of(self, chunk_ids: Sequence[int]) -> list[tuple[int, list[str]]]:
        self.flush()
        rows = self._runner.raw(TERMS, {"ids": list(map(int, chunk_ids))}) if len(chunk_ids) else []
        return [
            (id_, [unescaped(term) for term, count in zip(terms, counts, strict=True) for _ in range(count)])
            for id_, terms, counts in rows
        ]


def postings_of(data: bytes) -> Postings:
    pairs = np.frombuffer(data, ">i8").reshape(-1, 2)
    order = np.argsort(pairs[:, 0], kind="stable")
    ids, counts = pairs[order].T
    return Postings(ids.astype(np.int64), counts.astype(np.float32))
