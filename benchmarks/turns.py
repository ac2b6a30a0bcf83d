"""Contestants of a storage race: their stores filled once, then all asked in turn, round by round."""

import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import machine
from benchmarks.corpus import Corpus, nearest, recall
from benchmarks.environment import RIVALS
from benchmarks.pieces import Piece, Run, kept
from benchmarks.player import Player, playing
from benchmarks.report import median, percentile
from benchmarks.shelf import shelf

WARM_UP = 20  # questions, of each filter
FILTERS: dict[str | None, str] = {None: "no filter", "tenth": "10%", "hundredth": "1%", "thousandth": "0.1%"}
OWN = "kb"


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str  # as `benchmarks.storing` knows it
    store: str  # whose folder it searches
    in_process: bool = True

    def python(self) -> Path:
        return Path(sys.executable) if self.store == OWN else RIVALS.python()


@dataclass(frozen=True, slots=True)
class Filled:
    folder: str
    seconds: float
    disk_bytes: int


@dataclass(slots=True)
class Answers:
    """Of one contestant with one filter."""

    questions: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)  # milliseconds
    found: list[list[int]] = field(default_factory=list)


Asked = dict[tuple[Contestant, str | None], Answers]


def stores(run: Run, size: int, contestants: Sequence[Contestant], *, again: bool) -> dict[Contestant, Filled]:
    """All contestants that take part, each with the store that it searches."""
    playing_now = [one for one in contestants if one.store not in run.without]
    held = {name: _filled(run.corpus, name, size, again) for name in dict.fromkeys(one.store for one in playing_now)}
    return {one: held[one.store] for one in playing_now}


def _filled(corpus: Corpus, name: str, size: int, again: bool) -> Filled:
    """The store with the first `size` chunks, filled now unless an earlier run did it."""
    if name == OWN:
        own = shelf(corpus, size)
        return Filled(own.folder, own.seconds, own.disk_bytes)
    folder = corpus.folder / f"{name}-{size}"

    def fill() -> Piece:
        print(f"  filling {name}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        with playing(name, RIVALS.python(), "benchmarks.storing", name, corpus.folder, folder) as player:
            seconds = float(player.ask(do="fill", count=size)["seconds"])
        return asdict(Filled(str(folder), seconds, machine.folder_bytes(folder)))

    return Filled(**kept(folder.with_suffix(".json"), fill, again=again) | {"folder": str(folder)})


@contextmanager
def searching(corpus: Corpus, contestants: Mapping[Contestant, Filled]) -> Iterator[dict[Contestant, Player]]:
    """Start each contestant in a process of its own, on its filled store."""
    with ExitStack() as stack:
        yield {
            one: stack.enter_context(
                playing(
                    one.name,
                    one.python(),
                    "benchmarks.storing",
                    one.name,
                    corpus.folder,
                    own.folder,
                )
            )
            for one, own in contestants.items()
        }


def ask(players: Mapping[Contestant, Player], rounds: int, asked: int, *, once: bool) -> Asked:
    """Ask all contestants the same `asked` questions in each round; with `once`, no question for two filters."""
    answers: Asked = {(one, tag): Answers() for one in players for tag in FILTERS}
    seats = list(players.items())
    for number in range(rounds + 1):
        seats = seats[1:] + seats[:1]  # none always follows the same one
        warming = number == 0
        for at, tag in enumerate(FILTERS):
            first = (number * len(FILTERS) + at) * asked if once else number * asked
            questions = list(range(first, first + (min(asked, WARM_UP) if warming else asked)))
            for one, player in seats:
                said = player.ask(do="search", questions=questions, tag=tag)
                if not warming:
                    own = answers[one, tag]
                    own.questions += questions[: len(said["found"])]
                    own.times += [second * 1000 for second in said["seconds"]]
                    own.found += said["found"]
    return answers


def figures(corpus: Corpus, size: int, answers: Asked) -> dict[str, dict[str, Piece]]:
    """For each contestant and filter: times, and the share found of what exact search finds."""
    vectors = corpus.questions()[1]
    told: dict[str, dict[str, Piece]] = {}
    for tag, label in FILTERS.items():
        own = {one: said for (one, within), said in answers.items() if within == tag}
        questions = sorted({question for said in own.values() for question in said.questions})
        exact = dict(zip(questions, nearest(corpus, size, vectors[questions], tag), strict=True))
        for one, said in own.items():
            told.setdefault(one.name, {})[label] = {
                "p50": median(said.times),
                "p95": percentile(said.times, 0.95),
                "recall": recall(said.found, [exact[question] for question in said.questions]),
            }
    return told
