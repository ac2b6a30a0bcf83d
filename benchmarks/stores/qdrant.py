"""Qdrant Edge with its defaults (HNSW, optimised after loading); tags as an indexed keyword."""

from collections.abc import Iterable

from qdrant_edge import (  # type: ignore[import-not-found,unused-ignore]
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    MatchValue,
    PayloadSchemaType,
    Point,
    Query,
    SearchRequest,
    UpdateOperation,
)

from benchmarks.corpus import Batch, Vectors
from benchmarks.stores.store import TOP, Hits, Store

AT_ONCE = 1000


class Qdrant(Store):
    def fill(self, batches: Iterable[Batch], count: int) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        config = EdgeConfig(vectors=EdgeVectorParams(size=384, distance=Distance.Cosine))
        shard = EdgeShard.create(str(self.folder), config)
        shard.update(UpdateOperation.create_field_index("tags", PayloadSchemaType.Keyword))
        for batch in batches:
            points = [
                Point(number, vector.tolist(), {"text": text, "tags": list(tags)})
                for number, vector, text, tags in zip(
                    batch.numbers, batch.vectors, batch.texts, batch.tags, strict=True
                )
            ]
            for at in range(0, len(points), AT_ONCE):
                shard.update(UpdateOperation.upsert_points(points[at : at + AT_ONCE]))
        shard.optimize()
        shard.flush()
        shard.close()

    def open(self) -> None:
        self._shard = EdgeShard.load(str(self.folder))

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        within = Filter(must=[FieldCondition("tags", match=MatchValue(tag))]) if tag else None
        request = SearchRequest(Query.Nearest(vector.tolist()), TOP, filter=within, with_payload=True)
        return [(hit.id, hit.payload["text"]) for hit in self._shard.search(request)]

    def close(self) -> None:
        self._shard.close()
