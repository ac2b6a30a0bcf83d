"""`kb eval`: how well the engine finds what you know to be there."""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kb.cli.options import Commands, command, connect, print_json, text_or_stdin
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient
    from kb.core.searches import Mode

EXAMPLES = """
kb eval questions.jsonl
kb eval questions.jsonl --json
echo '{"query": "where is the router", "relevant": ["router.md"]}' | kb eval -
"""
MODES: "tuple[Mode, ...]" = ("fts", "vector", "hybrid")
TOP = 100
PAGE = 1000
SHOWN = 10  # questions that found nothing


class EvalQuestion(NamedTuple):
    text: str
    relevant: dict[str, int]  # a document's id → grade
    tags: list[str]


def register(commands: Commands) -> None:
    parser = command(commands, "eval", run, EXAMPLES)
    parser.add_argument(
        "file",
        metavar="FILE",
        help='one JSON object a line: {"query": ..., "relevant": [...], "tags": [...]}; relevant names documents by '
        "id, uid, source path, file name or title, as a list or with grades; - reads standard input",
    )


def run(args: argparse.Namespace) -> int:
    client = connect()
    questions = read(_content(args.file), names_of(client))
    screen = None
    if not args.json and sys.stderr.isatty():
        from kb.cli.screen import Screen

        screen = Screen(sys.stderr)
    rankings: dict[str, list[list[str]]] = {mode: [] for mode in MODES}
    for number, question in enumerate(questions, 1):
        for mode in MODES:
            rankings[mode].append(ranking(client, question, mode))
        if screen:
            screen.progress(f"question {number} of {len(questions)}", number / len(questions))
    if screen:
        screen.clear()
    answer = measured(questions, rankings)
    print_json(answer) if args.json else show(answer)
    return 0


def known_answers(client: "SocketClient", file: str) -> list[Json]:
    """The questions of a file as the engine takes them."""
    found = read(_content(file), names_of(client))
    return [{"query": one.text, "relevant": one.relevant, "tags": one.tags} for one in found]


def _content(file: str) -> str:
    if file == "-":
        return text_or_stdin(file)
    try:
        with open(file, encoding="utf-8-sig") as opened:
            return opened.read()
    except (OSError, UnicodeDecodeError) as wrong:
        raise InvalidRequest(f"{file} cannot be read: {wrong}.") from wrong


def names_of(client: "SocketClient") -> dict[str, set[str]]:
    """The ids of documents by each name that a question may use for them."""
    names: dict[str, set[str]] = {}
    offset, total = 0, 1
    while offset < total:
        page = client.documents(limit=PAGE, offset=offset, sort="created", order="asc")
        for document in page["documents"]:
            for name in ("id", "uid", "source_path", "filename", "title"):
                if document[name] is not None:
                    names.setdefault(str(document[name]), set()).add(str(document["id"]))
        offset, total = offset + PAGE, page["total"]
    return names


def read(content: str, names: dict[str, set[str]]) -> list[EvalQuestion]:
    questions = []
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            questions.append(_question(json.loads(line), names))
        except (ValueError, TypeError, KeyError, AttributeError) as wrong:
            reason = f"there is no {wrong}" if isinstance(wrong, KeyError) else wrong
            raise InvalidRequest(f"Line {number} is not a question: {reason}; see: kb eval --help") from wrong
    if not questions:
        raise InvalidRequest("There is no question in it; see: kb eval --help")
    return questions


def _question(given: Any, names: dict[str, set[str]]) -> EvalQuestion:
    named = given["relevant"]
    grades = named if isinstance(named, dict) else dict.fromkeys(named, 1)
    relevant: dict[str, int] = {}
    for name, grade in grades.items():
        if str(name) not in names:
            raise ValueError(f"no document is called {name!r}")
        if int(grade) > 0:
            relevant.update(dict.fromkeys(names[str(name)], int(grade)))
    if not relevant:
        raise ValueError("it names no relevant document")
    return EvalQuestion(str(given["query"]), relevant, list(given.get("tags", ())))


def ranking(client: "SocketClient", question: EvalQuestion, mode: "Mode") -> list[str]:
    """The documents in the order of their best passages; copies of a passage follow it."""
    answer = client.search(question.text, top=TOP, mode=mode, tags=question.tags)
    places = [place for hit in answer["results"] for place in (hit, *hit.get("also_in", ()))]
    return list(dict.fromkeys(str(place["document_id"]) for place in places))


def measured(questions: "Sequence[EvalQuestion]", rankings: dict[str, list[list[str]]]) -> dict[str, Any]:
    from kb.core import measures

    def scores(mode: str, measure: Any) -> list[float]:
        return [measure(found, asked.relevant) for found, asked in zip(rankings[mode], questions, strict=True)]

    quality = {mode: scores(mode, measures.ndcg) for mode in MODES}
    better = max(MODES[:2], key=lambda mode: measures.mean(quality[mode]))
    low, mean, high = measures.paired_difference(quality["hybrid"], quality[better])
    missed = [
        asked.text for asked, share in zip(questions, scores("hybrid", measures.recall), strict=True) if not share
    ]
    return {
        "questions": len(questions),
        "modes": {
            mode: {
                "ndcg_at_10": round(measures.mean(quality[mode]), 4),
                "recall_at_10": round(measures.mean(scores(mode, measures.recall)), 4),
            }
            for mode in MODES
        },
        "hybrid_over": {"mode": better, "mean": round(mean, 4), "low": round(low, 4), "high": round(high, 4)},
        "missed": missed,
    }


def show(answer: dict[str, Any]) -> None:
    from kb.cli.screen import Screen

    screen = Screen(sys.stdout)
    rows: Iterable[tuple[str, str, str]] = (
        (mode, f"{found['ndcg_at_10']:.3f}", f"{found['recall_at_10']:.3f}") for mode, found in answer["modes"].items()
    )
    screen.table(("mode", "nDCG@10", "recall@10"), rows)
    over = answer["hybrid_over"]
    screen.say(
        f"{answer['questions']} questions; hybrid is {over['mean']:+.3f} over {over['mode']} "
        f"(95%: {over['low']:+.3f} to {over['high']:+.3f})."
    )
    for text in answer["missed"][:SHOWN]:
        screen.say(f"nothing relevant among the first 10: {text}")
    if len(answer["missed"]) > SHOWN:
        screen.say(f"... and {len(answer['missed']) - SHOWN} more; --json lists them all.")
