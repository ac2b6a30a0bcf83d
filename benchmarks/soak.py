"""`make soak`: a steady mix of work for a long time. Memory, open files, threads and the WAL must not grow.

The knowledge base is kept at a steady size (what is added is deleted again), so whatever grows after the warm-up is a
leak. Bounds are stated below; beyond them the exit code is 1.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import machine, texts
from benchmarks.engine import Connection, EngineProcess, running_engine
from kb.core.errors import KBError

WARM_UP = 0.25  # of the time: caches fill, allocators settle
SAMPLE_SECONDS = 3.0
CLIENTS = 2
REQUESTS_PER_SECOND = 6.0  # of each client: bounded, so that the engine also rests
DOCUMENTS = 60  # of each client, kept at this number

# How much the last quarter may lie above the quarter after the warm-up.
MAX_GROWTH = {"RSS, MB": 40.0, "open files": 8.0, "threads": 4.0, "WAL, MB": 17.0}


@dataclass(frozen=True, slots=True)
class Sample:
    seconds: float
    values: tuple[float, ...]  # in the order of MAX_GROWTH


class Client(threading.Thread):
    """Adds, updates, searches, deletes and lists, at a bounded rate."""

    def __init__(self, connection: Connection, number: int, pool: Sequence[str], stop: threading.Event) -> None:
        super().__init__(name=f"client-{number}")
        self.done: dict[str, int] = {}
        self.problems: list[str] = []
        self._connection = connection
        self._chance = random.Random(number)
        self._pool = pool
        self._stop_at = stop
        self._number = number
        self._made = 0
        self._ids: list[int] = []

    def run(self) -> None:
        while not self._stop_at.wait(self._chance.uniform(0.5, 1.5) / REQUESTS_PER_SECOND):
            kind = self._chance.choices(("add", "update", "search", "delete", "list"), (3, 2, 6, 2, 1))[0]
            try:
                self._do(kind)
            except KBError as error:
                self.problems.append(f"{kind}: {error.message}")
            self.done[kind] = self.done.get(kind, 0) + 1
        self._connection.close()

    def _do(self, kind: str) -> None:
        if kind == "add":
            answer = self._connection.add_note(self._text(), tags=("soak",), wait=30)
            if "document_id" in answer:  # else it still waits in the queue
                self._ids.append(int(answer["document_id"]))
        elif kind == "search":
            words = self._chance.choice(self._pool).split()
            self._connection.search(" ".join(self._chance.sample(words, min(8, len(words)))))
        elif kind == "list":
            self._connection.documents(limit=50)
        elif self._ids and kind == "update":
            self._connection.update_note(self._chance.choice(self._ids), self._text())
        if len(self._ids) > DOCUMENTS or (kind == "delete" and len(self._ids) > DOCUMENTS // 2):
            self._connection.delete_document(self._ids.pop(self._chance.randrange(len(self._ids))))

    def _text(self) -> str:
        self._made += 1
        return f"{self._chance.choice(self._pool)} Number {self._number}-{self._made}."


def sample(engine: EngineProcess, started: float) -> Sample:
    process = Path(f"/proc/{engine.pid}")
    wal = engine.data_dir / "kb.db-wal"
    return Sample(
        time.monotonic() - started,
        (
            machine.resident_mb(engine.pid),
            float(len(list((process / "fd").iterdir()))),
            float(len(list((process / "task").iterdir()))),
            wal.stat().st_size / 2**20 if wal.exists() else 0.0,
        ),
    )


def soak(minutes: float) -> int:
    pool = texts.notes(2000)
    stop = threading.Event()
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as scratch, running_engine(Path(scratch) / "kb") as engine:
        clients = [Client(engine.connect(), number, pool, stop) for number in range(CLIENTS)]
        started = time.monotonic()
        for client in clients:
            client.start()
        try:
            while time.monotonic() - started < minutes * 60:
                time.sleep(SAMPLE_SECONDS)
                samples.append(sample(engine, started))
        finally:
            stop.set()
            for client in clients:
                client.join()
        status = engine.connect().status()
    return report(samples, clients, int(status["documents"]["total"]), minutes)


def report(samples: Sequence[Sample], clients: Sequence[Client], documents: int, minutes: float) -> int:
    steady = [s for s in samples if s.seconds >= WARM_UP * minutes * 60]
    quarter = max(1, len(steady) // 4)
    thirds = ("start", samples[:quarter]), ("after warm-up", steady[:quarter]), ("end", steady[-quarter:])
    done = {kind: sum(client.done.get(kind, 0) for client in clients) for kind in sorted(clients[0].done)}
    print(f"{minutes:g} minutes, {sum(done.values())} requests ({', '.join(f'{n} {k}' for k, n in done.items())}),")
    print(f"{documents} documents at the end, {len(samples)} samples; medians of a quarter of the steady time\n")
    print(f"| {'':12} | " + " | ".join(f"{name:>13}" for name, _ in thirds) + f" | {'growth':>8} | {'bound':>8} |")
    print("|---|" + "---:|" * (len(thirds) + 2))
    failed = [problem for client in clients for problem in client.problems]
    for number, (name, bound) in enumerate(MAX_GROWTH.items()):
        values = [median(s.values[number] for s in part) for _, part in thirds]
        growth = values[-1] - values[-2]
        print(f"| {name:12} | " + " | ".join(f"{v:13.1f}" for v in values) + f" | {growth:+8.1f} | {bound:8.1f} |")
        if growth > bound:
            failed.append(f"{name} grew by {growth:.1f}, more than {bound:g}")
    for problem in failed[:20]:
        print(f"FAILED {problem}")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    return soak(parser.parse_args().minutes)


if __name__ == "__main__":
    sys.exit(main())
