"""The real passages and questions that `benchmarks.corpus` builds upon, embedded once and kept in `benchmarks/.cache`.

Passages are cut and embedded as kb does it, titles included, from the evaluation sets; without those, notes of
generated sentences take their place.
"""

import hashlib
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import sets, texts
from benchmarks.corpus import Corpus
from benchmarks.engine import Note
from kb.core.settings import Settings, bundled_model_dir
from kb.embedding.embedder import SentenceEmbedder, load
from kb.embedding.priority import Priority
from kb.ingest.extract.part import Part
from kb.ingest.prepare import Preparer
from kb.ingest.requests import first_line

CACHE = Path(__file__).parent / ".cache"
PASSAGES = 10_000
QUESTIONS = 2000
QUICK = (1000, 600)  # passages and questions, to see that it works
SETS = ("scifact", "cranfield", "xquad-en", "locomo-sessions")
AT_ONCE = 256


class Passage(NamedTuple):
    document: int
    title: str
    text: str


def open_corpus(*, quick: bool) -> Corpus:
    """The corpus of these passages, which are embedded when that was not done before."""
    embedder = load(bundled_model_dir())
    preparer = Preparer(embedder, Settings().chunk_tokens, Priority())
    passages, questions = QUICK if quick else (PASSAGES, QUESTIONS)
    versions = preparer.versions
    # Whatever decides what a vector is, to its last digits.
    vectors_of = (versions.model, versions.chunker, versions.context, embedder.device)
    about = (source(), passages, questions, *vectors_of)
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:10]
    folder = CACHE / f"base-{key}"
    if not folder.exists():
        _make(folder, passages, texts.questions(questions), preparer, embedder)
    return Corpus(folder)


def source() -> str:
    """What the passages are, for the report."""
    there = _there()
    return f"passages of {', '.join(there)}" if there else "generated sentences"


def _make(folder: Path, count: int, questions: list[str], preparer: Preparer, embedder: SentenceEmbedder) -> None:
    print(f"Embedding {count} passages and {len(questions)} questions: some minutes, once.", flush=True)
    unfinished = folder.with_suffix(".part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    passages = list(_passages(count, preparer))
    with (unfinished / "passages.jsonl").open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(passage._asdict(), ensure_ascii=False) + "\n" for passage in passages)
    vectors = [
        preparer.embedded([(passage.title, None, passage.text) for passage in passages[at : at + AT_ONCE]])
        for at in range(0, count, AT_ONCE)
    ]
    np.save(unfinished / "passages.npy", np.concatenate(vectors))
    (unfinished / "questions.json").write_text(json.dumps(questions, ensure_ascii=False), encoding="utf-8")
    np.save(unfinished / "questions.npy", np.stack([embedder.embed_query(question) for question in questions]))
    unfinished.rename(folder)


def _passages(count: int, preparer: Preparer) -> Iterator[Passage]:
    """The chunks of the notes, in an order that mixes all sets."""
    made = 0
    for document, note in enumerate(_notes(count)):
        title = note.title or first_line(note.text)
        for placed in preparer.passages(Part("text", note.text), "markdown", title):
            yield Passage(document, title, placed.text)
            made += 1
            if made == count:
                return
    raise ValueError(f"there is text for {made} passages only, not for {count}")


def _notes(count: int) -> list[Note]:
    found = [note for name in _there() for note in sets.read(texts.data_dir(), name).notes]
    if not found:
        return [Note(text) for text in texts.notes(count)]
    random.Random(3).shuffle(found)
    return found


def _there() -> list[str]:
    return [name for name in SETS if sets.is_there(texts.data_dir(), name)]
