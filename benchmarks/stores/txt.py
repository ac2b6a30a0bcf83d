"""txtai: faiss with its defaults, with more of its cells looked at, or exact; content in its own database so that tags
can be asked for.

A filter is applied to the nearest candidates, of which it gets as many as a tag's share calls for.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from txtai import Embeddings  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.corpus import TAGS, Batch, Corpus, Vectors
from benchmarks.stores.store import TOP, Hits, Store

CANDIDATES = 3  # times what is wanted, for each chunk that the filter lets through
STATEMENT = "SELECT id, text FROM txtai WHERE similar(:question{candidates}) {filter} LIMIT {top}"


class Txtai(Store):
    def __init__(self, corpus: Corpus, folder: Path, *, exact: bool = False, cells: float | None = None) -> None:
        """`cells`: the share of them that a search looks at; a sixteenth by default."""
        super().__init__(corpus, folder)
        self._faiss = {"components": "IDMap,Flat"} if exact else {}
        self._cells = cells

    def fill(self, batches: Iterable[Batch], count: int) -> None:
        waiting: list[Vectors] = []

        def rows() -> Iterator[tuple[int, dict[str, Any], None]]:
            for batch in batches:
                waiting.extend(batch.vectors)
                for number, text, tags in zip(batch.numbers, batch.texts, batch.tags, strict=True):
                    yield number, {"text": text, **{tag: int(tag in tags) for tag in TAGS}}, None

        def transform(texts: list[str]) -> Vectors:
            """They come in the order in which they were given."""
            known, waiting[:] = waiting[: len(texts)], waiting[len(texts) :]
            return np.stack(known)

        embeddings = Embeddings(
            content=True, backend="faiss", faiss=self._faiss, method="external", transform=transform
        )
        embeddings.index(rows())
        if waiting:
            raise RuntimeError(f"{len(waiting)} vectors were not asked for")
        embeddings.save(str(self.folder))

    def open(self) -> None:
        self._embeddings = Embeddings()
        self._embeddings.load(str(self.folder), config={"transform": lambda _: self._asked})
        index = self._embeddings.ann
        if self._cells and hasattr(index.backend, "nlist"):  # a small one has no cells, and is searched whole
            index.config["faiss"] = {**self._faiss, "nprobe": round(self._cells * index.backend.nlist)}

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        self._asked = vector[None]
        candidates = f", {CANDIDATES * TOP * TAGS[tag]}" if tag else ""
        statement = STATEMENT.format(candidates=candidates, filter=f"AND {tag} = 1" if tag else "", top=TOP)
        found = self._embeddings.search(statement, parameters={"question": question})
        return [(int(hit["id"]), hit["text"]) for hit in found]
