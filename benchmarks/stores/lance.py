"""LanceDB: exact below 100,000 rows, from there on an index, as its guide says; bitmap indexes on the tags."""

from collections.abc import Iterable

import lancedb  # type: ignore[import-not-found,unused-ignore]
import pyarrow as pa  # type: ignore[import-not-found,import-untyped,unused-ignore]

from benchmarks.corpus import TAGS, Batch, Vectors
from benchmarks.stores.store import TOP, Hits, Store

TABLE = "chunks"
INDEXED_FROM = 100_000
NPROBES = 20
REFINE = 10  # times the number of hits are compared by their full vectors


class Lance(Store):
    def fill(self, batches: Iterable[Batch], count: int) -> None:
        schema = pa.schema(
            [
                ("number", pa.int64()),
                ("text", pa.string()),
                ("vector", pa.list_(pa.float32(), 384)),
                *((tag, pa.bool_()) for tag in TAGS),
            ]
        )
        table = lancedb.connect(str(self.folder)).create_table(TABLE, schema=schema)
        for batch in batches:
            tags = batch.tags
            columns = {
                "number": pa.array(batch.numbers, pa.int64()),
                "text": pa.array(batch.texts),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(batch.vectors.ravel()), 384),
                **{tag: pa.array([tag in own for own in tags]) for tag in TAGS},
            }
            table.add(pa.table(columns, schema=schema))
        if count >= INDEXED_FROM:
            table.create_index(metric="cosine", vector_column_name="vector", index_type="IVF_HNSW_SQ")
        for tag in TAGS:
            table.create_scalar_index(tag, index_type="BITMAP")
        table.optimize()

    def open(self) -> None:
        self._table = lancedb.connect(str(self.folder)).open_table(TABLE)

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        wanted = self._table.search(vector, vector_column_name="vector").distance_type("cosine")
        wanted = wanted.nprobes(NPROBES).refine_factor(REFINE)
        if tag:
            wanted = wanted.where(tag, prefilter=True)
        found = wanted.select(["number", "text", "_distance"]).limit(TOP).to_arrow()
        return list(zip(found["number"].to_pylist(), found["text"].to_pylist(), strict=True))
