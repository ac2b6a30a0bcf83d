"""`python -m benchmarks.quality`: what the shipped defaults find, set by set, in each search mode.

Every set gets a fresh engine. Its documents are added as notes through REST, and its questions asked through REST
with `top` 100; of a document's passages the best one counts. A full run also writes `docs/benchmarks/quality.md`;
a sample or a choice of sets only prints.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine, sets, texts
from benchmarks.engine import Connection, EngineProcess, fill, running_engine
from benchmarks.report import Section, verdict, write_page
from benchmarks.sets import SETS, EvaluationSet, Question
from kb.core import measures
from kb.core.searches import Mode

LEGS: tuple[Mode, ...] = ("fts", "vector")
MODES: tuple[Mode, ...] = (*LEGS, "hybrid")
TOP = 100
ASKERS = 2
HEADS = ("", "documents", "chunks", "questions", *MODES, "hybrid - better leg", "95%", "BM25¹", "MiniLM¹", "goal")
NOTES = """¹ Published: BM25 of BEIR, Anserini and MTEB's bm25s, all-MiniLM-L6-v2 of MTEB; over whole documents.

The interval is of the paired bootstrap over questions: where it does not hold 0, the difference is not luck. LoCoMo is
asked within one conversation, by a filter on its tag: turns as notes, or whole sessions, or sessions with their date as
the title. Recall counts the share of
the evidence among the first 10 notes."""
HOW = """Repeat it with `make eval`, or with `.venv/bin/python -m benchmarks.quality scifact` for one set; `--sample 50`
is a quick look. `KB_BENCH_DATA` names the folder with the sets in BEIR's layout, one folder
each: SciFact (allenai/scifact), Cranfield and ADI (the SMART collections), XQuAD (google-deepmind/xquad: its
paragraphs as documents), LoCoMo (snap-research/LoCoMo)."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One set: for each mode the score of every question."""

    data: EvaluationSet
    chunks: int
    scores: dict[Mode, list[float]]

    def mean(self, mode: Mode) -> float:
        return sum(self.scores[mode]) / len(self.scores[mode])


def evaluate(data: EvaluationSet, folder: Path) -> Outcome:
    with running_engine(folder) as engine:
        filled = fill(engine, data.notes)
        say(f"{data.name}: {filled.notes} notes, {filled.chunks} chunks in {filled.seconds:.0f} s")
        if data.empty:
            say(f"{data.name}: {data.empty} documents have no text and were left out")
        scores = {mode: ask_all(engine, data, mode) for mode in MODES}
    return Outcome(data, filled.chunks, scores)


def ask_all(engine: EngineProcess, data: EvaluationSet, mode: Mode) -> list[float]:
    score = measures.ndcg if SETS[data.name].measure == "nDCG@10" else measures.recall

    def ask(share: Sequence[Question]) -> list[float]:
        connection = engine.connect()
        found = [score(ranking(connection, question, mode), question.relevant) for question in share]
        connection.close()
        return found

    size = -(-len(data.questions) // ASKERS)
    shares = [data.questions[at : at + size] for at in range(0, len(data.questions), size)]
    with ThreadPoolExecutor(ASKERS) as askers:
        return [one for share in askers.map(ask, shares) for one in share]


def ranking(connection: Connection, question: Question, mode: Mode) -> list[str]:
    """The documents, each at the place of its best passage."""
    answer = connection.search(question.text, top=TOP, mode=mode, tags=question.tags)
    places = [place for hit in answer["results"] for place in (hit, *hit.get("also_in", ()))]
    return list(dict.fromkeys(str(place["source_path"]) for place in places))


def row(outcome: Outcome) -> list[str]:
    known = SETS[outcome.data.name]
    better = max(LEGS, key=outcome.mean)
    difference = measures.paired_difference(outcome.scores["hybrid"], outcome.scores[better])
    means = {mode: outcome.mean(mode) for mode in MODES}
    goal = known.goal
    return [
        outcome.data.name if known.measure == "nDCG@10" else f"{outcome.data.name} ({known.measure})",
        str(len(outcome.data.notes)),
        str(outcome.chunks),
        str(len(outcome.data.questions)),
        *(f"{mean:.3f}" for mean in means.values()),
        f"{difference.mean:+.3f} ({better})",
        f"{difference.low:+.3f} .. {difference.high:+.3f}",
        known.bm25,
        known.minilm,
        "-" if goal is None else f"≥ {goal:.3f}, {verdict(means['hybrid'] >= goal)}",
    ]


@contextmanager
def folder_for(name: str, keep: Path | None) -> Iterator[Path]:
    """Where the engine keeps the set: for this run, or in a folder that a later run finds filled already."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep / name
        return
    with tempfile.TemporaryDirectory() as scratch:
        yield Path(scratch) / name


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"{', '.join(SETS)}; all unless given")
    parser.add_argument("--sample", type=int, metavar="N", help="only N questions of each set, and few documents")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the engines' data there, and use it again")
    args = parser.parse_args(argv)
    if unknown := set(args.sets) - set(SETS):
        parser.error(f"there is no set {', '.join(sorted(unknown))}; there are {', '.join(SETS)}")
    data = texts.data_dir()
    names = args.sets or list(SETS)
    if missing := [name for name in names if not sets.is_there(data, name)]:
        say(f"Not in {data}, so left out: {', '.join(missing)}. KB_BENCH_DATA names another folder.")
    rows = []
    for name in names:
        if name not in missing:
            with folder_for(name, args.keep) as folder:
                rows.append(row(evaluate(sets.read(data, name, args.sample), folder)))
    if not rows:
        return 1
    head = f"Measured on {time.strftime('%Y-%m-%d', time.gmtime())}: {machine.describe()}."
    about = "nDCG@10 with the shipped defaults, unless a row says otherwise."
    section = Section("Retrieval quality", about, HEADS, rows).markdown()
    print(f"{head}\n\n{section}\n\n{NOTES}")
    if not missing and not args.sets and args.sample is None:
        page = write_page("quality.md", ["# Quality", head, HOW, section, NOTES])
        print(f"\nWritten to {page.relative_to(page.parents[2])}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
