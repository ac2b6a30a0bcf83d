"""Searches of many clients at once, alone and while a bulk import runs; and the import with and without them.

Each client sends at fixed times, whether or not the last answer was quick (an open loop); a request that has to wait
for its client's last one counts from when it should have been sent. Searching, importing and both take turns, so that
a noisy machine disturbs all of them alike.
"""

import json
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import texts
from benchmarks.engine import EngineProcess, Note, fill, running_engine
from benchmarks.feed import Fed, Feed, Message, Sender, documents
from benchmarks.report import Section, median, percentile, verdict

CLIENTS = 8
REQUESTS_PER_SECOND = 5  # of each client
GOAL_RATIO = 3.0
NOTES = 2_000
WARM_UP_SECONDS = 2.0


@dataclass(slots=True)
class Waits:
    """What the clients saw."""

    times: list[float] = field(default_factory=list)  # milliseconds from when a request should have been sent
    errors: list[str] = field(default_factory=list)

    def __iadd__(self, other: "Waits") -> "Waits":
        self.times += other.times
        self.errors += other.errors
        return self


def measure(*, quick: bool) -> Section:
    rounds, seconds, held = (1, 4.0, 300) if quick else (3, 10.0, NOTES)
    needed = int(CLIENTS * REQUESTS_PER_SECOND * (2 * rounds * seconds + WARM_UP_SECONDS))
    questions = iter([_question(text) for text in texts.questions(needed)])
    notes = texts.notes(2 * held + int(300 * rounds * seconds))
    feed = Feed(notes[held:], documents())
    alone, beside, undisturbed, disturbed = Waits(), Waits(), list[Fed](), list[Fed]()
    with tempfile.TemporaryDirectory() as scratch, running_engine(Path(scratch) / "kb") as engine:
        fill(engine, [Note(text) for text in notes[:held]])

        def searched(for_seconds: float) -> Waits:
            count = int(for_seconds * REQUESTS_PER_SECOND)
            return ask(engine.url, [[next(questions) for _ in range(count)] for _ in range(CLIENTS)])

        searched(WARM_UP_SECONDS)
        for _ in range(rounds):
            alone += searched(seconds)
            undisturbed.append(_imported(engine, feed, lambda: time.sleep(seconds)))
            disturbed.append(_imported(engine, feed, lambda: beside.__iadd__(searched(seconds))))
    return _section(alone, beside, undisturbed, disturbed, held, f"{rounds} rounds of {seconds:.0f} s")


def ask(url: str, shares: Sequence[Sequence[Message]]) -> Waits:
    """Each share is one client's; they send in turn, evenly spread over time."""
    start = time.perf_counter() + 0.1
    gap = 1 / REQUESTS_PER_SECOND
    seen = Waits()
    with ThreadPoolExecutor(len(shares)) as clients:
        firsts = [start + gap * number / len(shares) for number in range(len(shares))]
        for waits in clients.map(_client, [url] * len(shares), shares, firsts):
            seen += waits
    return seen


def _client(url: str, messages: Sequence[Message], first: float) -> Waits:
    seen = Waits()
    sender = Sender(url)
    for number, message in enumerate(messages):
        due = first + number / REQUESTS_PER_SECOND
        time.sleep(max(0.0, due - time.perf_counter()))
        status, body = sender.send(message)
        seen.times.append((time.perf_counter() - due) * 1000)
        if status != 200 or b'"chunk_id"' not in body:
            seen.errors.append(f"{status} {body[:200]!r}")
    sender.close()
    return seen


def _imported(engine: EngineProcess, feed: Feed, meanwhile: Callable[[], object]) -> Fed:
    """Import while something else happens; what went before it and what comes after it does not count."""
    with ThreadPoolExecutor(1) as pool:
        stop = threading.Event()
        running = pool.submit(feed.run, engine, stop)
        try:
            meanwhile()
        finally:
            stop.set()
        return running.result()


def _question(text: str) -> Message:
    return Message("/api/v1/search", "application/json", json.dumps({"query": text}).encode())


def _section(
    alone: Waits, beside: Waits, undisturbed: Sequence[Fed], disturbed: Sequence[Fed], held: int, effort: str
) -> Section:
    def row(label: str, waits: Waits, fed: Sequence[Fed]) -> list[str]:
        shares = [f"{percentile(waits.times, share):.1f}" for share in (0.5, 0.95, 0.99)] if waits.times else ["-"] * 3
        rate = f"{median([part.rate for part in fed]):.1f}" if fed else "-"
        return [label, *shares, f"{len(waits.errors)} of {len(waits.times)}" if waits.times else "-", rate]

    ratio = percentile(beside.times, 0.95) / percentile(alone.times, 0.95)
    remarks = [
        f"p95 while the import runs is **{ratio:.1f} times** that without it. Goal: at most {GOAL_RATIO:.0f}, "
        f"{verdict(ratio <= GOAL_RATIO)}. Errors: {len(alone.errors) + len(beside.errors)}, "
        f"{verdict(not alone.errors and not beside.errors)}.",
        *(f"Error: {error}" for error in (alone.errors + beside.errors)[:5]),
    ]
    about = (
        f"{CLIENTS} clients, each with a connection of its own that stays open, send {REQUESTS_PER_SECOND} hybrid "
        f"searches a second each, at fixed times and all different, to an engine that holds {held} notes at first "
        f"({texts.source()}); {effort} of each kind, in turn. The import: notes of about 80 words one by one, and "
        "documents of 5 to 31 pages. Milliseconds from when a request was due; passages that were written a second."
    )
    return Section(
        "A crowd",
        about,
        ("", "p50", "p95", "p99", "errors", "passages/s"),
        [
            row("searches alone", alone, ()),
            row("import alone", Waits(), undisturbed),
            row("both", beside, disturbed),
        ],
        remarks,
    )
