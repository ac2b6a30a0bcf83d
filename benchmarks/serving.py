"""A real engine from empty to 10,000 chunks and more: ingest rate, search, fresh notes, memory and disk."""

import math
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks import fresh, latency, machine, texts
from benchmarks.engine import EngineProcess, Filled, Note, fill, running_engine
from benchmarks.latency import timed
from benchmarks.report import Section, median, verdict
from kb.core.settings import bundled_model_dir
from kb.embedding.embedder import SentenceEmbedder, load

CHUNKS = 10_000
BLOCKS = 4
GOAL_SHARE = 0.9


def measure(*, quick: bool) -> list[Section]:
    count, asked, added = (500, 20, 10) if quick else (CHUNKS, 300, 100)
    notes = [Note(text, tags=tags_of(number)) for number, text in enumerate(texts.notes(count))]
    embedder = load(bundled_model_dir())
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "kb"
        with running_engine(folder) as engine:
            connection = engine.connect()
            connection.search("warm up")
            empty = machine.resident_mb(engine.pid)
            filled, share = _filled(engine, embedder, notes)
            full = machine.resident_mb(engine.pid)
            search = latency.measure(connection, embedder, texts.questions(latency.needed(asked)), asked)
            searched = machine.resident_mb(engine.pid)
            searchable = fresh.measure(connection, embedder, added)
            chunks = int(connection.status()["chunks"])
        on_disk = machine.folder_bytes(folder)
    text_bytes = sum(len(note.text.encode()) for note in notes) / len(notes)
    return [
        _ingest(filled, share, text_bytes),
        search,
        searchable,
        _footprint(filled.chunks, empty, full, searched, on_disk / chunks, text_bytes),
    ]


def _filled(engine: EngineProcess, embedder: SentenceEmbedder, notes: Sequence[Note]) -> tuple[Filled, float]:
    """In blocks; after each, this process embeds notes alone: how near to that rate does adding them come?"""
    seconds, chunks, shares = 0.0, 0, []
    size = math.ceil(len(notes) / BLOCKS)
    for at in range(0, len(notes), size):
        block = notes[at : at + size]
        filled = fill(engine, block)
        sample = [note.text for note in block[: max(100, size // 10)]]
        milliseconds, _ = timed(lambda sample=sample: embedder.embed(sample))  # type: ignore[misc]
        shares.append((len(block) / filled.seconds) / (len(sample) / milliseconds * 1000))
        seconds, chunks = seconds + filled.seconds, filled.chunks
    return Filled(len(notes), chunks, seconds), median(shares)


def tags_of(number: int) -> tuple[str, ...]:
    return tuple(tag for tag, every in (("tenth", 10), ("hundredth", 100)) if number % every == 0)


def _ingest(filled: Filled, share: float, text_bytes: float) -> Section:
    return Section(
        "Adding notes through REST",
        f"Notes of {text_bytes:.0f} bytes on average ({texts.source()}), one request each, from 8 connections without "
        "`wait`; the time runs until the last one is searchable.",
        ("notes", "chunks", "seconds", "notes/s", "chunks/s"),
        [
            [
                f"{filled.notes}",
                f"{filled.chunks}",
                f"{filled.seconds:.0f}",
                f"{filled.notes / filled.seconds:.1f}",
                f"{filled.chunks / filled.seconds:.1f}",
            ]
        ],
        [
            f"That is **{share:.2f}** of the rate at which a process that does nothing else embeds the same notes "
            f"(median of {BLOCKS} blocks, in turn). Goal: at least {GOAL_SHARE}, {verdict(share >= GOAL_SHARE)}."
        ],
    )


def _footprint(
    chunks: int, empty: float, full: float, searched: float, disk_per_chunk: float, text_bytes: float
) -> Section:
    return Section(
        "Memory and disk",
        f"The engine's resident memory with the model loaded, and the data folder after a clean stop; {chunks} chunks "
        f"of {text_bytes:.0f} bytes of text on average.",
        ("", "figure"),
        [
            ["RSS, nothing stored, MB", f"{empty:.0f}"],
            [f"RSS after adding {chunks} chunks, MB", f"{full:.0f}"],
            ["RSS after the searches, MB", f"{searched:.0f}"],
            [
                "RSS per chunk (after the searches, without the empty engine), bytes",
                f"{_per(chunks, searched - empty)}",
            ],
            ["disk per chunk, bytes", f"{disk_per_chunk:.0f}"],
        ],
    )


def _per(chunks: int, megabytes: float) -> int:
    return round(megabytes * 2**20 / chunks)
