"""SQLite and PostgreSQL side by side: moving between them, starting, searching, filling.

    PYTHONPATH=tests .venv/bin/python -m benchmarks.backends --chunks 100000

The chunks are those of `benchmarks.shelf`. Both engines run at once and are asked in turn, so the machine's noise meets
both alike. PostgreSQL is a server of its own on loopback; a proxy between it and the engine counts round trips, while
nothing is timed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks import base, machine, texts
from benchmarks.engine import Connection, EngineProcess, Note, fill, running_engine, until_read_ahead
from benchmarks.latency import timed
from benchmarks.report import median, percentile
from benchmarks.roundtrips import RoundTrips
from benchmarks.shelf import shelf
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import SentenceEmbedder, load
from postgres import PostgresServer

Answer = list[tuple[int, float]]
WARM_UP = 50
COUNTED = 50  # searches whose round trips are counted
NAME = "bench"


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.backends", description=__doc__)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--notes", type=int, default=600, help="that are added through REST")
    given = parser.parse_args()
    print(machine.describe(), flush=True)
    corpus = base.open_corpus(quick=False)
    filled = Path(shelf(corpus, given.chunks).folder)
    questions = corpus.questions()[0][: given.questions + WARM_UP]
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as scratch, own_server() as server:
        moving_and_searching(filled, Path(scratch), server, questions)
        for name, settings in (("SQLite", {}), ("PostgreSQL", database(server.url, "filled"))):
            filling(name, Path(scratch) / name, settings, given.notes)


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        yield server
    finally:
        server.close()


def database(url: str, name: str = NAME) -> dict[str, str]:
    return {"KB_DATABASE_URL": url, "KB_NAME": name}


def moving_and_searching(filled: Path, scratch: Path, server: PostgresServer, questions: Sequence[str]) -> None:
    embedder = load(bundled_model_dir())
    there = database(server.url)
    back = {"KB_DATABASE_URL": f"sqlite:///{scratch / 'back.db'}"}
    move(filled, {"KB_NAME": NAME}, server.url)
    with started("SQLite", filled, {}) as lite, started("PostgreSQL", scratch / "data", there) as large:
        for engine in (lite, large):
            until_read_ahead(engine)
        first, second = in_turn(lite.connect(), large.connect(), embedder, questions)
        same("PostgreSQL", first, second)
    with (
        RoundTrips(server.port) as proxy,
        running_engine(scratch / "data", **database(proxy.url(server.url))) as engine,
    ):
        until_read_ahead(engine)
        count(engine.connect(), proxy, questions[:COUNTED])
    move(scratch / "data", there, back["KB_DATABASE_URL"])
    with started("SQLite, moved back,", scratch / "data", back) as engine:
        connection = engine.connect()
        same("SQLite after moving back", first, [answer(connection, question) for question in questions])


def move(data_dir: Path, source: dict[str, str], target: str) -> None:
    began = time.perf_counter()
    command = [sys.executable, "-m", "kb.cli.main", "migrate", "--to", target, "--json"]
    ran = subprocess.run(
        command, env={"KB_DATA_DIR": str(data_dir), "KB_NAME": NAME} | source, stdout=subprocess.PIPE, check=True
    )
    done = json.loads(ran.stdout)
    took = time.perf_counter() - began
    print(
        f"{done['source']} to {done['target']}: {done['moved']['rows']['chunks']:,} chunks in {took:.1f} s", flush=True
    )


@contextmanager
def started(name: str, data_dir: Path, settings: dict[str, str]) -> Iterator[EngineProcess]:
    began = time.perf_counter()
    with running_engine(data_dir, **settings) as engine:
        print(f"{name} starts in {time.perf_counter() - began:.1f} s", flush=True)
        yield engine


def in_turn(
    lite: Connection, large: Connection, embedder: SentenceEmbedder, questions: Sequence[str]
) -> tuple[list[Answer], list[Answer]]:
    """Ask both every question once, the one first and then the other first."""
    both: tuple[list[Answer], list[Answer]] = ([], [])
    calls: tuple[list[float], list[float]] = ([], [])
    embedding: list[float] = []
    for number, question in enumerate(questions):
        embedding.append(timed(lambda q=question: embedder.embed_query(q))[0])  # type: ignore[misc]
        for at in (0, 1) if number % 2 else (1, 0):
            connection = (lite, large)[at]
            both[at].append(answer(connection, question))
            calls[at].append(connection.took_ms)
    embedded = median(embedding[WARM_UP:])
    for name, times in zip(("SQLite", "PostgreSQL"), calls, strict=True):
        p50, p95 = median(times[WARM_UP:]), percentile(times[WARM_UP:], 0.95)
        print(f"{name}: hybrid p50 {p50:.2f} ms, p95 {p95:.2f} ms; beyond embedding {p50 - embedded:.2f} ms")
    more = median([b - a for a, b in zip(*calls, strict=True)][WARM_UP:])
    print(f"PostgreSQL takes {more:+.2f} ms more (median of the differences)", flush=True)
    return both


def answer(connection: Connection, question: str) -> Answer:
    return [(int(hit["chunk_id"]), float(hit["score"])) for hit in connection.search(question)["results"]]


def same(name: str, first: Sequence[Answer], second: Sequence[Answer]) -> None:
    equal = sum(a == b for a, b in zip(first, second, strict=True))
    print(f"{name}: {equal} of {len(first)} answers are the same, ids and scores", flush=True)


def count(connection: Connection, proxy: RoundTrips, questions: Sequence[str]) -> None:
    counts = []
    for question in questions:
        before = proxy.count
        answer(connection, question)
        counts.append(proxy.count - before)
    print(f"round trips per search: median {median(counts):.0f}, most {max(counts)}", flush=True)


def filling(name: str, data_dir: Path, settings: dict[str, str], notes: int) -> None:
    with running_engine(data_dir, **settings) as engine:
        added = fill(engine, [Note(text) for text in texts.notes(notes)])
    print(f"{name}: {added.chunks / added.seconds:.0f} chunks/s through REST ({added.chunks} in {added.seconds:.0f} s)")


if __name__ == "__main__":
    main()
