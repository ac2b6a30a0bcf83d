"""Engines on damaged databases, in a process of their own: everything that a client may ask is asked."""

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from damaged.damage import damage
from kb.api.dependencies import Answer
from kb.core.errors import KBError
from kb.core.searches import Filter, Listing, Mode, SearchRequest
from kb.core.settings import Settings
from kb.core.values import AddOptions
from kb.engine.assembly import RunningEngine
from kb.engine.engine import Engine
from kb.index import postings, sign_bits
from kb.index.kernels import CompiledKernels
from kb.search import keyword, vector

LONGEST = 120  # seconds, with the sanitizer and beside others
WORDS = "boiler pension heating garden contract invoice battery river mountain library".split()


def built(folder: Path) -> None:
    """A data folder with notes of several versions, files, tags and jobs."""
    with RunningEngine(Settings(data_dir=folder)) as engine:
        for number in range(24):
            text = f"# Note {number}\n\n" + " ".join(WORDS[(number + i) % 10] for i in range(30 + 40 * number))
            engine.intake.add_note(
                text, AddOptions(tags=["even" if number % 2 == 0 else "odd"], metadata={"number": number})
            )
        for number in range(6):
            with engine.originals.stage() as staged:
                staged.write("\n\n".join(f"{word} {number} " * 60 for word in WORDS).encode())
                engine.intake.add_file(staged, f"file{number}.txt")
        while engine.monitor.status().queue.queued or engine.monitor.status().queue.running:
            time.sleep(0.1)
        for id_ in ("1", "2"):
            engine.editor.update(id_, "The boiler was serviced, and the garden too.")


def asked(engine: Engine) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield "status", engine.monitor.status
    yield "list", lambda: engine.documents(Listing())
    yield "summaries", lambda: engine.summaries(Listing())
    modes: tuple[Mode, ...] = ("hybrid", "fts", "vector")
    for mode in modes:
        request = SearchRequest("the boiler in the garden", mode=mode, top=20)
        yield f"search {mode}", partial(engine.search, request)
    yield (
        "search tag",
        lambda: engine.search(SearchRequest("pension contract", filter=Filter(tags=("odd",)), explain=True)),
    )
    for id_ in ("1", "2", "25", "30"):
        yield f"document {id_}", partial(engine.document, id_)
        yield f"text {id_}", partial(engine.text, id_)
        yield f"original {id_}", partial(engine.original, id_)
    yield "versions", lambda: engine.note_versions("1")
    yield "tags", engine.tags
    yield "jobs", lambda: engine.jobs(None, 100, 0)
    yield "duplicates", lambda: engine.duplicates(0.9, 10)
    yield "tag", lambda: engine.catalogue.edit_tags("3", ["new"], [])
    yield "update", lambda: engine.editor.update("4", "Another text about the river")
    yield "add", lambda: engine.intake.add_note("A new note about the library")
    yield "doctor", engine.doctor.examine
    yield "backup", lambda: drained(engine.archives.backup())
    yield "export", lambda: drained(engine.archives.export())
    yield "delete 1", lambda: engine.trash.delete("1")
    yield "delete 30", lambda: engine.trash.delete("30")
    yield "doctor fix", lambda: engine.doctor.examine(fix=True)
    yield "search again", lambda: engine.search(SearchRequest("boiler"))
    yield "clear", lambda: engine.clear("DELETE ALL")


def drained(archive: Any) -> int:
    try:
        return sum(map(len, archive.blocks))
    finally:
        archive.close()


def tried(name: str, ask: Callable[[], Any]) -> str | None:
    """What is wrong with how it went, if anything: a refusal with a sentence is fine, an unforeseen error is not."""
    started = time.monotonic()
    try:
        ask() if name.startswith("original") else Answer(ask())
    except KBError as error:
        if error.http_status == 500 and name != "open":  # an engine that does not start says why
            return f"{name}: 500 {error.message}"
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"{name}: {type(error).__name__}: {error}"[:300]
    took = time.monotonic() - started
    return f"{name}: took {took:.0f} s" if took > LONGEST else None


def one(base: Path, folder: Path, seed: int) -> list[str]:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
    say(seed=seed, did=damage(folder / "kb.db", random.Random(seed)))
    running: list[RunningEngine] = []
    if wrong := tried("open", lambda: running.append(RunningEngine(Settings(data_dir=folder)))):
        return [wrong]
    if not running:
        return []
    try:
        return [wrong for name, ask in asked(running[0].engine) if (wrong := tried(name, ask))]
    finally:
        running[0].close()


def say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    """`libraries base build`, or `libraries base folder first last`."""
    libraries, base, folder, *seeds = sys.argv[1:]
    if folder == "build":
        built(Path(base))
        return
    sys.modules["openvino"] = None  # type: ignore[assignment] # it cannot be loaded beside the address sanitizer
    sanitized = CompiledKernels(Path(libraries) / "libkernels.so", "sanitized")
    for module in (postings, sign_bits, keyword, vector):
        vars(module)["kernels"] = sanitized
    for seed in range(int(seeds[0]), int(seeds[1])):
        for wrong in one(Path(base), Path(folder), seed):
            say(seed=seed, wrong=wrong)
        say(seed=seed, done=True)


if __name__ == "__main__":
    main()
