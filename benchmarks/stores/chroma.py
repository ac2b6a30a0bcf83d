"""Chroma with its defaults (HNSW): its persistent client, and its server; tags as boolean metadata."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import chromadb  # type: ignore[import-not-found,unused-ignore]

from benchmarks.corpus import TAGS, Batch, Vectors
from benchmarks.stores.server import free_port, model_dir, until_listening
from benchmarks.stores.store import TOP, Hits, Store
from benchmarks.wire import Wire
from kb.embedding.embedder import load

COLLECTION = "chunks"


class Chroma(Store):
    def fill(self, batches: Iterable[Batch], count: int) -> None:
        client = chromadb.PersistentClient(str(self.folder))
        fill_collection(client, batches)
        client.close()

    def open(self) -> None:
        self._client = chromadb.PersistentClient(str(self.folder))
        self._chunks = self._client.get_collection(COLLECTION, embedding_function=None)

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        return query(self._chunks, vector, tag)

    def close(self) -> None:
        self._client.close()


class ChromaServer(Store):
    """`chroma run`, and a client that embeds the question as kb does and asks over the wire as kb is asked."""

    def open(self) -> None:
        port = free_port()
        chroma = Path(sys.executable).parent / "chroma"
        self._server = subprocess.Popen(
            [chroma, "run", "--path", self.folder, "--port", str(port)], stdout=subprocess.DEVNULL
        )
        until_listening(port)
        chunks = chromadb.HttpClient(port=port).get_collection(COLLECTION, embedding_function=None)
        self._query = f"/api/v2/tenants/{chunks.tenant}/databases/{chunks.database}/collections/{chunks.id}/query"
        self._wire = Wire("127.0.0.1", port)
        self._embedder = load(model_dir())

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        asked = {
            "query_embeddings": [self._embedder.embed_query(question).tolist()],
            "n_results": TOP,
            "where": {tag: True} if tag else None,
            "include": ["documents"],
        }
        return hits(json.loads(self._wire.ask("POST", self._query, asked).body))

    def close(self) -> None:
        self._wire.close()
        self._server.terminate()
        self._server.wait(60)


def fill_collection(client: Any, batches: Iterable[Batch]) -> None:
    chunks = client.create_collection(COLLECTION, configuration={"hnsw": {"space": "cosine"}}, embedding_function=None)
    most = client.get_max_batch_size()
    for batch in batches:
        ids = [str(number) for number in batch.numbers]
        marks = [{tag: tag in tags for tag in TAGS} for tags in batch.tags]
        for at in range(0, len(batch), most):
            some = slice(at, at + most)
            chunks.add(
                ids=ids[some], embeddings=batch.vectors[some], documents=batch.texts[some], metadatas=marks[some]
            )


def query(chunks: Any, vector: Vectors, tag: str | None) -> Hits:
    where = {tag: True} if tag else None
    return hits(chunks.query(query_embeddings=[vector], n_results=TOP, where=where, include=["documents"]))


def hits(found: Any) -> Hits:
    return [(int(id_), text) for id_, text in zip(found["ids"][0], found["documents"][0], strict=True)]
