"""Watched folders: how soon an edit is found, what a scan of 100,000 unchanged files takes, and what idling costs.

    python -m benchmarks.folders --files 100000 --edits 100

The files of the scan are recorded as indexed without being embedded: what is measured is the comparison with the disk.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from benchmarks.engine import Connection, running_engine
from kb.core.folders import FolderOptions
from kb.core.values import Removed
from kb.engine.folders.files import stamp_at
from kb.engine.folders.sync import Synchroniser
from kb.engine.folders.walk import Walker
from kb.index import terms
from kb.store import watched
from kb.store.backend import Row, Transaction
from kb.store.sqlite.database import SQLiteDatabase
from kb.store.sqlite.migrate import migrate
from kb.store.watched import NO_STAMP, WatchedFile

OPTIONS = FolderOptions(tags=[], include=[], exclude=[])
IDLE_SECONDS = 30
PER_FOLDER = 100
NOTES = 20


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.folders", description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--edits", type=int, default=100)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kb-bench-") as place:
        scan(Path(place).resolve() / "many", given.files)
        edits(Path(place).resolve() / "few", given.edits)


def scan(root: Path, files: int) -> None:
    paths = [f"{number // PER_FOLDER}/{number}.md" for number in range(files)]
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"Text of {path}.")
    file = root.parent / "kb.db"
    migrate(file, terms.index_terms)
    database = SQLiteDatabase(file)
    with database.write() as tx:
        folder = watched.add(tx, str(root), OPTIONS)
        watched.put(tx, folder.id, [as_indexed(root, path, number) for number, path in enumerate(paths, 1)])
    sync = Synchroniser(folder, database, Walker(str(root), OPTIONS, "/nowhere", 2**20), unexpected)
    for turn in range(3):
        began, cpu = time.perf_counter(), time.process_time()
        looked = sync.look()
        took, used = time.perf_counter() - began, time.process_time() - cpu
        print(f"scan {turn + 1} of {files:,} unchanged files: {took:.2f} s, {used:.2f} s of processor time")
        assert not looked.again
    with database.read() as tx:
        assert watched.coverage(tx, folder.id).indexed == files
    database.close()


def as_indexed(root: Path, path: str, document_id: int) -> WatchedFile:
    return WatchedFile(path, stamp_at(str(root), path) or NO_STAMP, "indexed", None, "0" * 64, document_id)


def unexpected(tx: Transaction, row: Row) -> Removed:
    raise AssertionError(f"document {row['id']} would have been removed ({tx})")


def edits(root: Path, number: int) -> None:
    root.mkdir()
    for at in range(NOTES):
        (root / f"{at}.md").write_text(f"# Note {at}\n\nThe first text.")
    with running_engine(root.parent / "data") as engine:
        connection = engine.connect()
        connection.watch(str(root))
        while connection.folders()["folders"][0]["coverage"]["indexed"] < NOTES:
            time.sleep(0.1)
        times = sorted(edit(root / f"{at % NOTES}.md", f"zebra{at}", connection) for at in range(number))
        print(f"an edit is found after {times[number // 2]:.2f} s (median), {times[int(number * 0.95)]:.2f} s (p95)")
        time.sleep(15)  # a scan confirms the last edit
        before = cpu_seconds(engine.pid)
        time.sleep(IDLE_SECONDS)
        print(f"idle: {(cpu_seconds(engine.pid) - before) / IDLE_SECONDS:.2%} of a core")


def edit(path: Path, word: str, connection: Connection) -> float:
    """The seconds from an edit until a search finds it, its embedding included."""
    path.write_text(f"# Note\n\nNow it says {word}.")
    began = time.monotonic()
    while not any(word in hit["text"] for hit in connection.search(word, fts_only=True, top=1)["results"]):
        time.sleep(0.01)
    return time.monotonic() - began


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
