"""How long a search takes through REST, beside the time of embedding the same question.

Every question is asked once, so no cache answers it. For each, this process embeds it and then the engine searches
for it over a connection that stays open: both take turns, so the machine's noise meets both alike.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.engine import Connection
from benchmarks.report import Section, median, percentile, verdict
from kb.core.searches import Mode
from kb.embedding.embedder import SentenceEmbedder

GOAL_ABOVE_MS = 10.0
WARM_UP = 50


class Kind(NamedTuple):
    """One way to search."""

    label: str
    mode: Mode
    tags: tuple[str, ...] = ()


KINDS = (
    Kind("hybrid", "hybrid"),
    Kind("fts", "fts"),
    Kind("vector", "vector"),
    Kind("hybrid, a tag on 10% of the notes", "hybrid", ("tenth",)),
    Kind("hybrid, a tag on 1% of the notes", "hybrid", ("hundredth",)),
)


@dataclass(slots=True)
class Times:
    """Milliseconds, question by question."""

    calls: list[float] = field(default_factory=list)  # from the first byte sent to the last received
    engine: list[float] = field(default_factory=list)  # what the engine says it took
    embedding: list[float] = field(default_factory=list)  # the same questions in this process
    questions: list[str] = field(default_factory=list)
    found: list[list[int]] = field(default_factory=list)  # chunk ids, best first

    @property
    def above(self) -> float:
        """What a call takes beyond embedding its question (p50)."""
        return median(self.calls) - median(self.embedding)

    @property
    def around(self) -> list[float]:
        """What each call took beyond the search itself: the engine's side of the connection, and what carries it."""
        return [call - inside for call, inside in zip(self.calls, self.engine, strict=True)]


def needed(asked: int, kinds: Sequence[Kind] = KINDS) -> int:
    """How many questions a measurement uses up."""
    return len(kinds) * asked + WARM_UP


def measure(connection: Connection, embedder: SentenceEmbedder, questions: list[str], asked: int) -> Section:
    results = ask(connection, embedder, questions, asked, KINDS)
    return _section(results, empty_calls(connection, asked), asked)


def empty_calls(connection: Connection, times: int) -> list[float]:
    """What a call takes that asks for nothing, in milliseconds."""
    took = []
    for _ in range(times):
        connection.health()
        took.append(connection.took_ms)
    return took


def ask(
    connection: Connection, embedder: SentenceEmbedder, questions: Sequence[str], asked: int, kinds: Sequence[Kind]
) -> dict[Kind, Times]:
    """Ask this number of questions of each kind, the kinds in turn."""
    waiting = iter(questions)
    for _ in range(WARM_UP):
        question = next(waiting)
        embedder.embed_query(question)
        connection.search(question)
    results = {kind: Times() for kind in kinds}
    for _ in range(asked):
        for kind, times in results.items():
            question = next(waiting)
            embedding = 0.0
            if kind.mode != "fts":
                embedding, _ = timed(lambda q=question: embedder.embed_query(q))  # type: ignore[misc]
            answer = connection.search(question, mode=kind.mode, tags=kind.tags)
            if (
                not answer["results"] and kind.mode != "fts"
            ):  # words may be unknown, a meaning is always near some other
                raise RuntimeError(f"nothing was found for {question!r}: {answer}")
            times.calls.append(connection.took_ms)
            times.engine.append(float(answer["took_ms"]))
            times.embedding.append(embedding)
            times.questions.append(question)
            times.found.append([int(hit["chunk_id"]) for hit in answer["results"]])
    return results


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds, and what came of it."""
    started = time.perf_counter()
    result = work()
    return (time.perf_counter() - started) * 1000, result


def _section(results: dict[Kind, Times], bare: list[float], asked: int) -> Section:
    rows = []
    for kind, times in results.items():
        rows.append(
            [
                kind.label,
                f"{median(times.calls):.1f}",
                f"{percentile(times.calls, 0.95):.1f}",
                f"{median(times.engine):.1f}",
                f"{median(times.around):.2f}",
                "-" if kind.mode == "fts" else f"{median(times.embedding):.1f}",
                f"{times.above:.1f}",
                f"≤ {GOAL_ABOVE_MS:.0f}, {verdict(times.above <= GOAL_ABOVE_MS)}",
            ]
        )
    about = (
        f"{asked} questions of 8 words for each row, each asked once, the rows in turn; `top` 10, one connection kept "
        "open, from the first byte sent to the last received. Around it: beyond the engine's own time. Embedding: the "
        "same questions in another process of the same machine, in turn with the calls. Times in milliseconds."
    )
    heads = ("mode", "REST p50", "p95", "engine p50", "around it", "embedding p50", "above it", "goal")
    remark = f"An empty REST call (`/health`) takes {median(bare):.1f} ms (p50)."
    return Section("Search through REST", about, heads, rows, [remark])
