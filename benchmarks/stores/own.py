"""kb itself: its searcher in mode `vector`, from the request to the hits with their texts and documents; and its REST.

The folder is a whole data folder (`benchmarks.shelf`): full text, documents and note versions are in it too.
"""

from contextlib import ExitStack

from benchmarks.corpus import Vectors
from benchmarks.engine import EngineProcess, until_read_ahead
from benchmarks.shelf import RememberingEmbedder, searcher
from benchmarks.stores.store import TOP, Hits, Store
from kb.core.searches import Filter, SearchRequest


class Own(Store):
    def open(self) -> None:
        self._resources = ExitStack()
        embedder = RememberingEmbedder(*self.corpus.questions())
        self._searcher = self._resources.enter_context(searcher(self.folder, embedder))

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        request = SearchRequest(question, TOP, "vector", Filter(tags=(tag,) if tag else ()))
        return [(hit.chunk_id - 1, hit.text) for hit in self._searcher.search(request).hits]

    def close(self) -> None:
        self._resources.close()


class OwnRest(Store):
    """`kb serve`, asked through REST as it comes, in mode `hybrid`: it embeds the question itself."""

    def open(self) -> None:
        self._engine = EngineProcess(self.folder)
        self._connection = self._engine.connect()
        until_read_ahead(self._engine)

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        answer = self._connection.search(question, top=TOP, tags=(tag,) if tag else ())
        return [(hit["chunk_id"] - 1, hit["text"]) for hit in answer["results"]]

    def close(self) -> None:
        self._connection.close()
        self._engine.stop()
