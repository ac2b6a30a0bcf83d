"""`python -m benchmarks.models`: both models on every set, questions in other languages, and how sure a score is.

Everything is asked through REST, of engines with the shipped defaults but for the model or the third leg. A full run
writes `docs/benchmarks/models.md`; a sample or a choice of sets only prints.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks import machine, sets, texts
from benchmarks.engine import EngineProcess, fill, running_engine
from benchmarks.quality import ASKERS, ask_all, say
from benchmarks.report import Section, percentile, write_page
from benchmarks.sets import SETS, EvaluationSet, Question
from kb.core import measures

MINILM, GTE = {"KB_MODEL": "all-MiniLM-L6-v2"}, {"KB_MODEL": "gte-small"}
PAIRS = ("es→en", "zh→en", "ar→en", "en→es", "en→zh", "en→ar")
STRANGERS = 300  # questions of other sets that a set is asked
MODEL_HEADS = (
    "",
    "chunks",
    "questions",
    "MiniLM",
    "without the third leg",
    "difference",
    "95%",
    "gte-small",
    "difference",
    "95%",
)
PAIR_HEADS = ("", "questions", "MiniLM", "without the third leg")
SURE_HEADS = ("", "model", "own: 5% / 50% / 95%", "others: 5% / 50% / 95%", "AUC", "notice, own", "notice, others")
HOW = """Repeat it with `.venv/bin/python -m benchmarks.models`, or with the name of a set; `--sample 50` is a quick
look. gte-small has to be installed ([models.md](../models.md)). The sets are those of [quality.md](quality.md)."""


class Answer(NamedTuple):
    best: float  # score of the best passage; 0 without any
    doubted: bool  # the notice says that nothing fits well


@dataclass(frozen=True, slots=True)
class Asked:
    """A set with one model: for each question what was found, and how sure the answers were."""

    chunks: int
    found: list[float]
    own: list[Answer]
    others: list[Answer]


def asked(data: EvaluationSet, strangers: Sequence[Question], folder: Path, **settings: str) -> Asked:
    with running_engine(folder, **settings) as engine:
        filled = fill(engine, data.notes)
        say(f"{data.name}, {settings['KB_MODEL']}: {filled.chunks} chunks in {filled.seconds:.0f} s")
        found = ask_all(engine, data, "hybrid")
        chance = random.Random(3)
        own = chance.sample(data.questions, min(STRANGERS, len(data.questions)))
        return Asked(filled.chunks, found, answers(engine, own), answers(engine, strangers))


def without_third_leg(data: EvaluationSet, folder: Path) -> list[float]:
    with running_engine(folder, **MINILM, KB_MULTILINGUAL_DIR=str(folder / "none")) as engine:
        return ask_all(engine, data, "hybrid")


def answers(engine: EngineProcess, questions: Sequence[Question]) -> list[Answer]:
    def ask(question: Question) -> Answer:
        connection = engine.connect()
        answer = connection.search(question.text[:2000], top=1, tags=question.tags)
        connection.close()
        best = answer["results"][0]["score"] if answer["results"] else 0.0
        return Answer(best, not answer["results"] or "fits the question well" in (answer.get("notice") or ""))

    with ThreadPoolExecutor(ASKERS) as askers:
        return list(askers.map(ask, questions))


def strangers_to(data: EvaluationSet, all_sets: Sequence[EvaluationSet]) -> list[Question]:
    """Questions of other sets, asked as this one's are. Sets about the same texts are no strangers."""
    kin = data.name.partition("-")[0]
    foreign = [one.text for other in all_sets if other.name.partition("-")[0] != kin for one in other.questions]
    chance = random.Random(5)
    tags = [question.tags for question in data.questions]
    return [Question(text, {}, chance.choice(tags)) for text in chance.sample(foreign, min(STRANGERS, len(foreign)))]


def area(own: Sequence[float], others: Sequence[float]) -> float:
    """The chance that a question of the set's own has the better score."""
    wins = sum((a > b) + (a == b) / 2 for a in own for b in others)
    return wins / (len(own) * len(others))


def both_models(data: EvaluationSet, strangers: Sequence[Question], room: Path) -> tuple[list[str], list[list[str]]]:
    """The row of this set among the models, and its rows among the scores."""
    folder = room / data.name
    minilm = asked(data, strangers, folder, **MINILM)
    alone = without_third_leg(data, folder)
    gte = asked(data, strangers, room / f"{data.name}-gte", **GTE)
    leg = measures.paired_difference(minilm.found, alone)
    model = measures.paired_difference(gte.found, minilm.found)
    row = [
        data.name if SETS[data.name].measure == "nDCG@10" else f"{data.name} ({SETS[data.name].measure})",
        str(minilm.chunks),
        str(len(data.questions)),
        *(f"{value:.3f}" for value in (measures.mean(minilm.found), measures.mean(alone))),
        *difference(leg),
        f"{measures.mean(gte.found):.3f}",
        *difference(model),
    ]
    return row, [sure(data.name, "MiniLM", minilm), sure(data.name, "gte-small", gte)]


def difference(interval: measures.Interval) -> tuple[str, str]:
    return f"{interval.mean:+.3f}", f"{interval.low:+.3f} .. {interval.high:+.3f}"


def sure(name: str, model: str, found: Asked) -> list[str]:
    own, others = ([answer.best for answer in group] for group in (found.own, found.others))
    doubted = (sum(answer.doubted for answer in group) / len(group) for group in (found.own, found.others))
    return [
        name,
        model,
        *(" / ".join(f"{percentile(group, at):.2f}" for at in (0.05, 0.5, 0.95)) for group in (own, others)),
        f"{area(own, others):.3f}",
        *(f"{share:.3f}" for share in doubted),
    ]


def across(pair: str, data: Path, room: Path, sample: int | None) -> list[str]:
    """Questions in one language, passages in another."""
    asking, held = (sets.read(data, f"xquad-{language}") for language in pair.split("→"))
    questions = asking.questions[:sample] if sample else asking.questions
    mixed = EvaluationSet(held.name, held.notes, questions, held.empty)
    folder = room / held.name
    found = []
    for settings in ({}, {"KB_MULTILINGUAL_DIR": str(folder / "none")}):
        with running_engine(folder, **MINILM, **settings) as engine:
            fill(engine, held.notes)  # what is there already is recognised
            found.append(measures.mean(ask_all(engine, mixed, "hybrid")))
    say(f"{pair}: {found}")
    return [pair, str(len(questions)), *(f"{value:.3f}" for value in found)]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; all unless given")
    parser.add_argument("--sample", type=int, metavar="N", help="only N questions of each set, and few documents")
    args = parser.parse_args(argv)
    data = texts.data_dir()
    everything = [sets.read(data, name, args.sample) for name in SETS if sets.is_there(data, name)]
    model_rows, sure_rows, pair_rows = [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        for one in everything:
            if not args.sets or one.name in args.sets:
                row, rows = both_models(one, strangers_to(one, everything), Path(scratch))
                model_rows.append(row)
                sure_rows += rows
        if not args.sets and sets.is_there(data, "xquad-en"):
            whole = Path(scratch) / "across"
            whole.mkdir()
            pair_rows = [across(pair, data, whole, args.sample) for pair in PAIRS]
    head = f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}: {machine.describe()}."
    about = (
        "`hybrid`, nDCG@10, for LoCoMo R@10; the differences are paired, with the bootstrap's interval over questions."
    )
    sections = [
        Section("Both models, and the third leg", about, MODEL_HEADS, model_rows),
        Section("Across languages", "XQuAD, questions → passages, nDCG@10.", PAIR_HEADS, pair_rows),
        Section(
            "How sure a score is",
            f"The best score of a set's own questions, and of {STRANGERS} questions of other sets asked of it. AUC: "
            "how well it tells the two apart. Notice: how many are told that nothing fits well.",
            SURE_HEADS,
            sure_rows,
        ),
    ]
    parts = ["# Models, languages and scores", head, HOW, *(each.markdown() for each in sections if each.rows)]
    print("\n\n".join(parts))
    if not args.sets and args.sample is None and len(everything) == len(SETS):
        write_page("models.md", parts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
