"""The real engine with 1,000 to 1,000,000 chunks: search through REST, recall, start, memory and disk.

Text and vectors beyond the first 10,000 chunks are made (`benchmarks.corpus`) and written past the embedder
(`benchmarks.shelf`); everything else is as in use: `kb serve`, REST, questions that the engine embeds itself.
"""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks import latency, machine
from benchmarks.corpus import Corpus, Vectors, nearest, recall
from benchmarks.engine import running_engine, until_read_ahead
from benchmarks.latency import Kind, Times
from benchmarks.pieces import Piece, Run, pieces
from benchmarks.report import Section, median, percentile, verdict
from benchmarks.shelf import RememberingEmbedder, Shelf, searcher, shelf
from kb.core.searches import Filter, SearchRequest
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import load

TOP = 10
COMPARED = 40  # questions of a kind that are asked again without shortcuts, which takes seconds each
KINDS = (
    Kind("hybrid", "hybrid"),
    Kind("hybrid, 10% tag", "hybrid", ("tenth",)),
    Kind("hybrid, 1% tag", "hybrid", ("hundredth",)),
    Kind("hybrid, 0.1% tag", "hybrid", ("thousandth",)),
    Kind("vector", "vector"),
    Kind("vector, 10% tag", "vector", ("tenth",)),
    Kind("vector, 1% tag", "vector", ("hundredth",)),
    Kind("vector, 0.1% tag", "vector", ("thousandth",)),
    Kind("fts", "fts"),
)
GOAL_ABOVE_MS = {100_000: 3.0, 1_000_000: 20.0}  # hybrid, unfiltered, p50
GOAL_SAME = {"hybrid": 0.97, "vector": 0.99}
NO_SLOWER = 1.05  # what still counts as no slower, within the noise of a machine
GOAL_SLOPE = 1.0  # of the cost from 10,000 chunks on: at most linear


@dataclass(frozen=True, slots=True)
class Asked:
    """One kind of search at one size; milliseconds."""

    label: str
    mode: str
    p50: float
    p95: float
    engine: float  # p50 of what the engine says it took
    above: float  # p50 beyond embedding the question
    same: float  # share of the top 10 that exact search finds too


def measure(run: Run) -> None:
    asked = 20 if run.quick else 120
    for size in run.sizes:
        run.piece(f"scale-{size}", lambda size=size: _measure(run, size, asked))  # type: ignore[misc]


def _measure(run: Run, size: int, asked: int) -> Piece:
    filled = shelf(run.corpus, size, again=run.again)
    texts, vectors = run.corpus.questions()
    embedder = load(bundled_model_dir())
    with tempfile.TemporaryDirectory() as scratch, running_engine(Path(scratch) / "empty") as engine:
        connection = engine.connect()
        for text in texts[:asked]:  # the model keeps some memory for every length of question
            connection.search(text)
        empty_mb = machine.resident_mb(engine.pid)
    started = time.perf_counter()
    with running_engine(Path(filled.folder)) as engine:
        start_seconds = time.perf_counter() - started
        loaded_mb = machine.resident_mb(engine.pid)
        connection = engine.connect()
        until_read_ahead(engine)
        results = latency.ask(connection, embedder, texts, asked, KINDS)
        searched_mb = machine.resident_mb(engine.pid)
        bare = median(latency.empty_calls(connection, asked))
    same = _compared(run.corpus, filled, dict(zip(texts, vectors, strict=True)), results)
    return {
        **asdict(filled),
        "empty_mb": empty_mb,
        "start_seconds": start_seconds,
        "loaded_mb": loaded_mb,
        "searched_mb": searched_mb,
        "bare": bare,
        "asked": [asdict(_asked(kind, times, same[kind])) for kind, times in results.items()],
    }


def _asked(kind: Kind, times: Times, same: float) -> Asked:
    return Asked(
        kind.label,
        kind.mode,
        median(times.calls),
        percentile(times.calls, 0.95),
        median(times.engine),
        times.above,
        same,
    )


def _compared(
    corpus: Corpus, filled: Shelf, known: dict[str, Vectors], results: dict[Kind, Times]
) -> dict[Kind, float]:
    """The share of each top 10 that exact search finds: brute force for vectors, else kb without its shortcuts."""
    same = {}
    embedder = RememberingEmbedder(list(known), np.stack(list(known.values())))
    with searcher(Path(filled.folder), embedder, exact=True) as exact:
        for kind, times in results.items():
            if kind.mode == "vector":
                own = np.stack([known[question] for question in times.questions])
                numbers = nearest(corpus, filled.chunks, own, next(iter(kind.tags), None), TOP)
                wanted = [[number + 1 for number in row] for row in numbers]
            else:
                wanted = [
                    [hit.chunk_id for hit in exact.search(SearchRequest(q, TOP, kind.mode, Filter(kind.tags))).hits]
                    for q in times.questions[:COMPARED]
                ]
            same[kind] = recall(times.found[: len(wanted)], wanted)
    return same


def sections(corpus: Corpus) -> list[Section]:
    found = list(pieces(corpus, "scale"))
    return [_search(found), _goals(found), _footprint(found)] if found else []


def slope(found: Sequence[Piece], label: str = "hybrid") -> float | None:
    """The exponent with which the cost beyond embedding grows from 10,000 chunks to the largest size."""
    points = [(piece["chunks"], asked_of(piece, label).above) for piece in found if piece["chunks"] >= 10_000]
    if len(points) < 2:
        return None
    (small, first), (large, last) = points[0], points[-1]
    return math.log(max(last, 0.01) / max(first, 0.01)) / math.log(large / small)


def asked_of(piece: Piece, label: str) -> Asked:
    return next(Asked(**one) for one in piece["asked"] if one["label"] == label)


def _search(found: Sequence[Piece]) -> Section:
    rows = [
        [
            f"{piece['chunks']:,}",
            one.label,
            f"{one.p50:.1f}",
            f"{one.p95:.1f}",
            f"{one.engine:.1f}",
            f"{one.above:.1f}",
            f"{one.same:.3f}",
        ]
        for piece in found
        for one in (Asked(**asked) for asked in piece["asked"])
    ]
    about = (
        "Questions of 8 words, each asked once, the kinds in turn over one bare connection (`benchmarks/wire.py`); "
        "`top` 10; milliseconds from the first byte sent to the last received. Beyond embedding: p50 of the call less "
        "p50 of embedding the same questions in the process that asks, in turn with the calls. Same: the share of the "
        "top 10 that exact search finds too: brute force over all vectors in vector mode, otherwise kb without any "
        "shortcut."
    )
    bare = median([piece["bare"] for piece in found])
    heads = ("chunks", "search", "REST p50", "p95", "engine p50", "beyond embedding", "same")
    return Section("Search through REST", about, heads, rows, [f"An empty REST call takes {bare:.1f} ms (p50)."])


def _goals(found: Sequence[Piece]) -> Section:
    rows = []
    for piece in found:
        size = f"{piece['chunks']:,}"
        hybrid = asked_of(piece, "hybrid")
        if goal := GOAL_ABOVE_MS.get(piece["chunks"]):
            rows.append(
                [
                    f"hybrid beyond embedding at {size}, p50",
                    f"{hybrid.above:.2f} ms",
                    f"≤ {goal:.0f} ms",
                    verdict(hybrid.above <= goal),
                ]
            )
        asked = [Asked(**one) for one in piece["asked"]]
        slowest = max(one.p50 for one in asked if one.mode == "hybrid" and one != hybrid) / hybrid.p50
        rows.append(
            [
                f"slowest of the filters at {size}, p50 against unfiltered",
                f"{slowest:.2f}",
                "no slower",
                verdict(slowest <= NO_SLOWER),
            ]
        )
        for mode, least in GOAL_SAME.items():
            same = min(one.same for one in asked if one.mode == mode)
            rows.append(
                [
                    f"{mode} at {size}, least share of the exact top 10",
                    f"{same:.3f}",
                    f"≥ {least}",
                    verdict(same >= least),
                ]
            )
    if (exponent := slope(found)) is not None:
        largest = found[-1]["chunks"]
        rows.append(
            [
                f"growth of the cost beyond embedding, 10,000 to {largest:,}: exponent",
                f"{exponent:.2f}",
                "≤ 1 (linear)",
                verdict(exponent <= GOAL_SLOPE),
            ]
        )
    return Section(
        "Goals at scale", f"Within {NO_SLOWER - 1:.0%} counts as no slower.", ("", "measured", "goal", ""), rows
    )


def _footprint(found: Sequence[Piece]) -> Section:
    rows = [
        [
            f"{piece['chunks']:,}",
            f"{piece['documents']:,}",
            f"{piece['chunks'] / piece['seconds']:,.0f}",
            f"{piece['start_seconds']:.1f}",
            f"{piece['loaded_mb']:.0f}",
            f"{piece['searched_mb']:.0f}",
            f"{per_chunk(piece, 'memory'):,.0f}",
            f"{per_chunk(piece, 'disk'):,.0f}",
        ]
        for piece in found
    ]
    about = (
        "Written with known vectors through kb's store in transactions of 10,000 chunks, keywords segmented: without "
        "embedding, which takes by far the most time in use. Start: until `kb serve` is healthy with everything in "
        "memory, the model included. Memory: resident MB, per chunk after the searches and without the empty engine."
    )
    heads = (
        "chunks",
        "documents",
        "chunks/s",
        "start s",
        "RSS loaded",
        "RSS searched",
        "bytes/chunk",
        "disk bytes/chunk",
    )
    return Section("Filling, starting, memory and disk", about, heads, rows)


def per_chunk(piece: Piece, what: str) -> float:
    if what == "disk":
        return float(piece["disk_bytes"] / piece["chunks"])
    return float((piece["searched_mb"] - piece["empty_mb"]) * 2**20 / piece["chunks"])
