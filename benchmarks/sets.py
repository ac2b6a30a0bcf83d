"""Evaluation sets in BEIR's layout: documents, questions, judgements, and what others published about them.

`corpus.jsonl` {_id, title, text}, `queries.jsonl` {_id, text}, `qrels/<split>.tsv` (query, document, grade). None of
them is part of this project; docs/benchmarks/quality.md says where they come from.
"""

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from benchmarks.engine import Note
from benchmarks.texts import read_lines

Measure = Literal["nDCG@10", "R@10"]


class Known(NamedTuple):
    """One evaluation set: where it lies, how it is measured, what was published and what is aimed at."""

    folder: str
    split: str
    measure: Measure = "nDCG@10"
    bm25: str = "-"
    minilm: str = "-"
    goal: float | None = None  # for hybrid


SETS: dict[str, Known] = {
    "scifact": Known("scifact", "test", bm25=".665-.687", minilm=".645", goal=0.735),
    "cranfield": Known("cranfield", "test", bm25=".374", minilm=".381", goal=0.42),
    "adi": Known("adi", "test"),
    "xquad-en": Known("xquad-en", "validation", bm25=".965", minilm=".944", goal=0.97),
    "xquad-es": Known("xquad-es", "validation", bm25=".952", minilm=".632", goal=0.945),
    "xquad-zh": Known("xquad-zh", "validation", bm25=".121", minilm=".242", goal=0.96),
    "xquad-ar": Known("xquad-ar", "validation", bm25=".888", minilm=".038", goal=0.885),
    "locomo-turns": Known("locomo", "turn", "R@10", bm25=".594", minilm=".418", goal=0.63),
    "locomo-sessions": Known("locomo", "session", "R@10", bm25=".936", goal=0.95),
    "locomo-dated": Known("locomo", "session", "R@10"),
}


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    relevant: dict[str, int]  # document id → grade, above zero
    tags: tuple[str, ...]  # within which it is asked


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    name: str
    notes: list[Note]  # `source_path` is the document's id
    questions: list[Question]
    empty: int  # documents without any text, which cannot be added


def is_there(data: Path, name: str) -> bool:
    return (data / SETS[name].folder / "corpus.jsonl").is_file()


def read(data: Path, name: str, sample: int | None = None) -> EvaluationSet:
    """The whole set, or a sample: that many questions, and the documents that they need among as many others."""
    known = SETS[name]
    folder = data / known.folder
    rows = read_lines(folder / "corpus.jsonl")
    if name in ("locomo-sessions", "locomo-dated"):
        notes = _sessions(rows, dated=name == "locomo-dated")
    else:
        notes = [_note(row) for row in rows]
    questions = _questions(folder, known.split)
    if sample is not None:
        chance = random.Random(7)
        questions = chance.sample(questions, min(sample, len(questions)))
        needed = {document for question in questions for document in question.relevant}
        others = set(chance.sample([note.source_path for note in notes], min(len(notes), 2 * sample)))
        notes = [note for note in notes if note.source_path in needed | others]
    full = [note for note in notes if note.text.strip()]
    return EvaluationSet(name, full, questions, len(notes) - len(full))


def _note(row: dict[str, Any]) -> Note:
    return Note(row["text"], row["title"] or None, _tags(row), row["_id"])


def _sessions(turns: Sequence[dict[str, Any]], *, dated: bool) -> list[Note]:
    """One note for each conversation of a day: its turns, one a line; its date is its title, or nowhere."""
    dates: dict[str, str] = {}
    lines: dict[str, list[str]] = defaultdict(list)
    tags: dict[str, tuple[str, ...]] = {}
    for turn in turns:
        lines[turn["session"]].append(turn["text"])
        tags[turn["session"]] = _tags(turn)
        dates[turn["session"]] = turn["date"]
    return [
        Note("\n".join(text), dates[session] if dated else None, tags[session], session)
        for session, text in lines.items()
    ]


def _questions(folder: Path, split: str) -> list[Question]:
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "qrels" / f"{split}.tsv").open(encoding="utf-8") as judgements:
        next(judgements)
        for line in judgements:
            query, document, grade = line.rstrip("\n").split("\t")
            if int(grade) > 0:
                relevant[query][document] = int(grade)
    return [
        Question(row["text"], relevant[row["_id"]], _tags(row))
        for row in read_lines(folder / "queries.jsonl")
        if row["_id"] in relevant
    ]


def _tags(row: dict[str, Any]) -> tuple[str, ...]:
    return (row["conversation"],) if "conversation" in row else ()
