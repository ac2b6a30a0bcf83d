"""One contestant of the storage race, in a process and an environment of its own.

`python -m benchmarks.storing NAME CORPUS FOLDER` answers {"do": "fill", "count": N} or {"do": "open"} and then
{"do": "search", "questions": [numbers], "tag": TAG or null}. Only the search itself is timed: from the question's
vector to the numbers and texts of the hits.
"""

import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.corpus import Corpus, Delivery, Vectors
from benchmarks.lines import Said, serve
from benchmarks.stores.store import Store

PATIENCE = 3.0  # seconds for the questions of one round; a slower contestant answers fewer of them

# Module, class and options of each; only the module of the one that plays is imported.
STORES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "kb": ("own", "Own", {}),
    "kb, hybrid": ("own", "OwnRest", {}),
    "chroma": ("chroma", "Chroma", {}),
    "chroma server": ("chroma", "ChromaServer", {}),
    "lancedb": ("lance", "Lance", {}),
    "txtai": ("txt", "Txtai", {}),
    "txtai, 1/4 of its cells": ("txt", "Txtai", {"cells": 1 / 4}),
    "txtai, 3/8 of its cells": ("txt", "Txtai", {"cells": 3 / 8}),
    "txtai-exact": ("txt", "Txtai", {"exact": True}),
    "qdrant-edge": ("qdrant", "Qdrant", {}),
    "sqlite-vec": ("vec0", "Vec0", {}),
    "pgvector": ("pgvector", "Pgvector", {}),
    "pgvector, ef 100": ("pgvector", "Pgvector", {"ef_search": 100}),
    "pgvector route": ("pgvector", "PgvectorRoute", {}),
}


def make(name: str, corpus: Corpus, folder: Path) -> Store:
    module, kind, options = STORES[name]
    store: Store = getattr(import_module(f"benchmarks.stores.{module}"), kind)(corpus, folder, **options)
    return store


def fill(store: Store, corpus: Corpus, count: int) -> Said:
    """What making the chunks takes does not count."""
    delivery = Delivery(corpus.batches(count))
    started = time.perf_counter()
    store.fill(delivery, count)
    return {"seconds": time.perf_counter() - started - delivery.seconds}


def search(store: Store, known: tuple[list[str], Vectors], questions: list[int], tag: str | None) -> Said:
    texts, vectors = known
    times: list[float] = []
    found: list[list[int]] = []
    for number in questions:
        if sum(times) > PATIENCE:
            break
        started = time.perf_counter()
        hits = store.search(texts[number], vectors[number], tag)
        times.append(time.perf_counter() - started)
        found.append([number for number, _ in hits])
    return {"seconds": times, "found": found}


def memory_mb(pids: list[int]) -> float:
    """What these processes hold in RAM; what several share counts once."""
    return sum(_share_kb(pid) for pid in pids) / 1024


def _share_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def main() -> None:
    name, corpus_folder, folder = sys.argv[1:]
    at_the_end = ExitStack()  # so that no server is left behind when the race ends early

    def opened() -> tuple[Said, Callable[[Said], Said]]:
        corpus = Corpus(Path(corpus_folder))
        known = corpus.questions()
        store = make(name, corpus, Path(folder))

        def answer(asked: Said) -> Said:
            match asked["do"]:
                case "fill":
                    return fill(store, corpus, asked["count"])
                case "open":
                    before = memory_mb([os.getpid()])
                    started = time.perf_counter()
                    store.open()
                    at_the_end.callback(store.close)
                    return {"seconds": time.perf_counter() - started, "before_mb": before}
                case "search":
                    return search(store, known, asked["questions"], asked["tag"])
                case "memory":
                    return {"mb": memory_mb(store.processes())}
                case "close":
                    at_the_end.close()
                    return {}
            raise ValueError(f"unknown task {asked['do']!r}")

        return {}, answer

    with at_the_end:
        serve(opened)


if __name__ == "__main__":
    main()
