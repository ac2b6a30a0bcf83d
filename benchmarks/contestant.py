"""One contestant of the embedding race, in a process and an environment of its own.

`python -m benchmarks.contestant kb|torch FOLDER THREADS` loads the model in FOLDER, says that it is ready, and then
answers one JSON line with another: {"do": "passages" | "queries", "texts": [...], "save": PATH or null}. What is
timed is the embedding alone. Only the standard library and what the contestant itself brings are imported.
"""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.lines import Said, serve

BATCH_SIZES = (8, 32, 64)  # of which the rival gets the one that suits it best here
TRIAL = ["a text of a few words to find out which batch size is the fastest on this machine " * 12] * 64

Embed = Callable[[Sequence[str]], Any]


class Contestant(NamedTuple):
    passages: Embed
    query: Callable[[str], Any]
    device: str
    load_seconds: float  # imports included


def open_kb(folder: Path) -> Contestant:
    started = time.perf_counter()
    from kb.embedding.embedder import load  # noqa: PLC0415

    embedder = load(folder)
    return Contestant(embedder.embed, embedder.embed_query, embedder.device, time.perf_counter() - started)


def open_torch(folder: Path, threads: int) -> Contestant:
    started = time.perf_counter()
    import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    from sentence_transformers import (  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
        SentenceTransformer,
        __version__,
    )

    torch.set_num_threads(threads)
    model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    load_seconds = time.perf_counter() - started
    trials = {size: _seconds(lambda size=size: model.encode(TRIAL, batch_size=size)) for size in BATCH_SIZES}  # type: ignore[misc]
    size = min(trials, key=trials.__getitem__)

    def passages(texts: Sequence[str]) -> Any:
        return model.encode(list(texts), batch_size=size, normalize_embeddings=True)

    def query(text: str) -> Any:
        return model.encode(text, normalize_embeddings=True)

    device = (
        f"cpu (sentence-transformers {__version__}, torch {torch.__version__.partition('+')[0]}, batches of {size})"
    )
    return Contestant(passages, query, device, load_seconds)


def _answer(contestant: Contestant, do: str, texts: Sequence[str], save: str | None) -> Said:
    started = time.perf_counter()
    if do == "passages":
        vectors = contestant.passages(texts)
        times = [time.perf_counter() - started]
    else:
        vectors, times = [], []
        for text in texts:
            started = time.perf_counter()
            vectors.append(contestant.query(text))
            times.append(time.perf_counter() - started)
    if save:
        import numpy as np  # noqa: PLC0415

        np.save(save, np.asarray(vectors))
    return {"seconds": times, "peak_mb": _peak_mb()}


def _seconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _peak_mb() -> float:
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 2**20 if sys.platform == "darwin" else most / 1024


def main() -> None:
    who, folder, threads = sys.argv[1:]

    def opened() -> tuple[Said, Callable[[Said], Said]]:
        contestant = open_kb(Path(folder)) if who == "kb" else open_torch(Path(folder), int(threads))
        ready = {"device": contestant.device, "load_seconds": contestant.load_seconds}
        return ready, lambda asked: _answer(contestant, asked["do"], asked["texts"], asked.get("save"))

    serve(opened)


if __name__ == "__main__":
    main()
