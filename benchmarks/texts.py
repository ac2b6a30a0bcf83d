"""Text to measure with: SciFact when its folder is there, otherwise sentences made here. The same in every run.

`KB_BENCH_DATA` names the folder that holds evaluation sets, by default `shared/data` beside the project.
"""

import json
import os
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kb.embedding.tokenizer import Tokenizer

QUESTION_WORDS = 8
NOTE_WORDS = 60  # at least; a note ends with its sentence

_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")
_SUBJECTS = """engineer gardener pharmacist sailor teacher auditor baker surveyor translator mechanic nurse archivist
botanist librarian farmer chemist pilot curator potter judge plumber geologist driver clerk physicist""".split()
_VERBS = """measured repaired described compared ordered delivered rejected calibrated painted translated sampled
replaced recorded inspected funded postponed approved doubled isolated labelled cleaned catalogued stored""".split()
_THINGS = """boiler turbine manuscript orchard vaccine bridge ledger contract antenna reservoir membrane protein
telescope violin dictionary harbour greenhouse engine sensor catalogue mineral bicycle pension glacier kidney""".split()
_QUALITIES = """narrow fragile recent expensive northern empty acidic digital ancient seasonal rotating porous metallic
public missing bilingual faulty frozen temporary statistical hollow certified tropical silent""".split()
_PLACES = """in the cellar|near the old station|before the annual meeting|during the second winter|for the city council
|after a long delay|under strict supervision|with borrowed instruments|at the request of the owner|beside the canal
|without any visible effect|for three consecutive weeks|in spite of the heavy rain|for the insurer""".split("|")


def data_dir() -> Path:
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("KB_BENCH_DATA") or beside).expanduser()


def source() -> str:
    """What the text is, for the report."""
    return "SciFact abstracts" if _scifact() else "generated sentences"


def read_lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def notes(count: int) -> list[str]:
    """Distinct texts of whole sentences, about 60 to 90 words each."""
    made: dict[str, None] = {}
    held: list[str] = []
    for sentence in _sentences():
        held.append(sentence)
        if sum(len(part.split()) for part in held) >= NOTE_WORDS:
            made[" ".join(held)] = None
            held = []
            if len(made) == count:
                break
    if len(made) < count:
        raise ValueError(f"there is text for {len(made)} notes only, not for {count}")
    return list(made)


def passages(count: int, tokens: int, tokenizer: Tokenizer) -> list[str]:
    """Passages of `tokens` tokens each, give or take a word cut in two."""
    made: list[str] = []
    held = ""
    for sentence in _sentences():
        held = f"{held} {sentence}".lstrip()
        offsets = tokenizer.offsets(held)
        if len(offsets) >= tokens:
            made.append(held[: int(offsets[tokens - 1][1])])
            held = ""
            if len(made) == count:
                return made
    raise ValueError(f"there is text for {len(made)} passages only, not for {count}")


def questions(count: int) -> list[str]:
    """Distinct questions of 8 words: openings of SciFact's claims, then of sentences."""
    openings = (" ".join(words[:QUESTION_WORDS]) for text in _askable() if len(words := text.split()) >= QUESTION_WORDS)
    made: dict[str, None] = {}
    for opening in openings:
        made[opening] = None
        if len(made) == count:
            return list(made)
    raise ValueError(f"there is text for {len(made)} questions only, not for {count}")


def one_token_words(tokenizer: Tokenizer) -> list[str]:
    """Words that the model reads as one token each, so that a text of any length in tokens can be made."""
    words = dict.fromkeys([*_SUBJECTS, *_VERBS, *_THINGS, *_QUALITIES])
    return [word for word in words if tokenizer.count(word) == 1]


def _sentences() -> Iterator[str]:
    if abstracts := _scifact():
        for row in abstracts:
            yield from _SENTENCE_END.split(row["text"])
        return
    chance = random.Random(5)
    for number in range(200_000):
        yield _sentence(chance, number)


def _askable() -> Iterator[str]:
    if _scifact():
        claims = [str(row["text"]) for row in read_lines(data_dir() / "scifact" / "queries.jsonl")]
        yield from claims
    # From the end, so that few questions are the beginning of a note.
    yield from reversed(list(_sentences()))


def _sentence(chance: random.Random, number: int) -> str:
    pick = chance.choice
    name = "".join(pick("bdfgklmnprstvz") + pick("aeiou") for _ in range(3)).title()
    return (
        f"The {pick(_SUBJECTS)} {name} {pick(_VERBS)} the {pick(_QUALITIES)} {pick(_THINGS)} {pick(_PLACES).strip()}, "
        f"and {chance.randrange(2, 90)} {pick(_QUALITIES)} {pick(_THINGS)}s were {pick(_VERBS)} under number {number}."
    )


@cache
def _scifact() -> Sequence[dict[str, Any]]:
    corpus = data_dir() / "scifact" / "corpus.jsonl"
    return read_lines(corpus) if corpus.is_file() else ()
