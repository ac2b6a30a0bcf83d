"""Over HTTP, text in and ranked passages out: kb's REST, Chroma's server, pgvector behind a FastAPI route.

All embed the question with the same model and runtime: kb and the route in the server, Chroma's client before it
asks. All are asked over the same bare connection (`benchmarks.wire`). No question is asked twice, so no cache
answers it.
"""

from collections.abc import Sequence

from benchmarks import turns
from benchmarks.corpus import Corpus
from benchmarks.pieces import Piece, Run, pieces
from benchmarks.report import Section, verdict
from benchmarks.turns import FILTERS, OWN, Contestant

KB = "kb, hybrid"
CONTESTANTS = (
    Contestant(KB, OWN),
    Contestant("chroma server", "chroma"),
    Contestant("pgvector route", "pgvector"),
)


def measure(run: Run) -> None:
    for size in run.sizes:
        run.piece(f"http-{size}", lambda size=size: _measure(run, size))  # type: ignore[misc]


def _measure(run: Run, size: int) -> Piece:
    rounds, asked = (2, 10) if run.quick else (10, 20)
    stores = turns.stores(run, size, CONTESTANTS, again=False)
    with turns.searching(run.corpus, stores) as players:
        for player in players.values():
            player.ask(do="open")
        answers = turns.ask(players, rounds, asked, once=True)
        for player in players.values():
            player.ask(do="close")
    return {"chunks": size, "searches": turns.figures(run.corpus, size, answers)}


def sections(corpus: Corpus) -> list[Section]:
    found = list(pieces(corpus, "http"))
    return [_section(found)] if found else []


def _section(found: Sequence[Piece]) -> Section:
    rows = []
    for piece in found:
        searches = piece["searches"]
        own = searches[KB]
        for name, one in searches.items():
            cells = [_cell(name, one[label], own[label]) for label in FILTERS.values()]
            slower = all(one[label]["p50"] > own[label]["p50"] for label in FILTERS.values())
            rows.append([f"{piece['chunks']:,}", name, *cells, "-" if name.startswith(OWN) else verdict(slower)])
    about = (
        "p50 in milliseconds of the whole call, embedding included (times kb's hybrid search) / recall@10 of vector "
        "searches. All are asked over the same kind of bare connection (`benchmarks/wire.py`), so no client "
        "of theirs counts. Goal: kb, with its hybrid search, is faster than each rival that serves HTTP."
    )
    return Section("Over HTTP, from text to passages", about, ("chunks", "", *FILTERS.values(), "goal"), rows)


def _cell(name: str, one: Piece, own: Piece) -> str:
    text = f"{one['p50']:.1f} ({one['p50'] / own['p50']:.2f}×)"
    return text if name == KB else f"{text} / {one['recall']:.3f}"
