"""kb against its rivals: the same vectors, texts, tags and questions, all asked in turn, each in a process of its own.

One process fills a store, another opens and searches it, so what is measured is what a restart finds. The question's
vector is known to all; a search ends when the texts of the hits are there. kb is asked through its searcher in mode
`vector`.
"""

from collections.abc import Sequence
from operator import itemgetter

from benchmarks import turns
from benchmarks.corpus import Corpus
from benchmarks.pieces import Piece, Run, pieces
from benchmarks.report import Section, verdict
from benchmarks.turns import FILTERS, OWN, Contestant

CONTESTANTS = (
    Contestant(OWN, OWN),
    Contestant("chroma", "chroma"),
    Contestant("lancedb", "lancedb"),
    Contestant("txtai", "txtai"),
    Contestant("txtai, 1/4 of its cells", "txtai"),
    Contestant("txtai, 3/8 of its cells", "txtai"),
    Contestant("txtai-exact", "txtai-exact"),
    Contestant("qdrant-edge", "qdrant-edge"),
    Contestant("sqlite-vec", "sqlite-vec"),
    Contestant("pgvector", "pgvector", in_process=False),
    Contestant("pgvector, ef 100", "pgvector", in_process=False),
)
EQUAL = 0.005  # a recall that is lower by no more than this is equal
GOAL_SIZES = (10_000, 100_000)


def measure(run: Run) -> None:
    for size in run.sizes:
        run.piece(f"rivals-{size}", lambda size=size: _measure(run, size))  # type: ignore[misc]


def _measure(run: Run, size: int) -> Piece:
    rounds, asked = (2, 10) if run.quick else (10, 20)
    stores = turns.stores(run, size, CONTESTANTS, again=run.again)
    with turns.searching(run.corpus, stores) as players:
        opened = {one: player.ask(do="open") for one, player in players.items()}
        answers = turns.ask(players, rounds, asked, once=False)
        memory = {one: player.ask(do="memory")["mb"] for one, player in players.items()}
        for player in players.values():
            player.ask(do="close")
    searches = turns.figures(run.corpus, size, answers)
    return {
        "chunks": size,
        "contestants": [
            {
                "name": one.name,
                "in_process": one.in_process,
                "fill_seconds": store.seconds,
                "disk_bytes": store.disk_bytes,
                "open_seconds": opened[one]["seconds"],
                "memory_mb": memory[one] - opened[one]["before_mb"],
                "searches": searches[one.name],
            }
            for one, store in stores.items()
        ],
    }


def sections(corpus: Corpus) -> list[Section]:
    found = list(pieces(corpus, "rivals"))
    aimed_at = [piece for piece in found if piece["chunks"] in GOAL_SIZES]
    return [*map(_section, found), *([_goals(aimed_at)] if aimed_at else [])]


def of_name(piece: Piece, name: str) -> Piece:
    return next(one for one in piece["contestants"] if one["name"] == name)


def _section(piece: Piece) -> Section:
    own = of_name(piece, OWN)["searches"]
    rows = [
        [
            one["name"],
            *(_against(one["searches"][label], own[label]) for label in FILTERS.values()),
            f"{piece['chunks'] / one['fill_seconds']:,.0f}",
            f"{one['open_seconds']:.1f}",
            f"{one['memory_mb'] * 2**20 / piece['chunks']:,.0f}",
            f"{one['disk_bytes'] / piece['chunks']:,.0f}",
        ]
        for one in piece["contestants"]
    ]
    heads = ("", *FILTERS.values(), "chunks/s", "open s", "memory bytes/chunk", "disk bytes/chunk")
    about = (
        "p50 in milliseconds / recall@10 against brute force (times kb's p50). Chunks per second: filling with known "
        "vectors until all is durable and indexed; kb also segments and indexes every word, and keeps documents and "
        "note versions, which its disk shows. Memory: what opening and searching adds."
    )
    return Section(f"Vector search in process, {piece['chunks']:,} chunks", about, heads, rows)


def _against(one: Piece, own: Piece) -> str:
    return f"{one['p50']:.2f} / {one['recall']:.3f} ({one['p50'] / own['p50']:.1f}×)"


def _goals(found: Sequence[Piece]) -> Section:
    rows = []
    for piece in found:
        own = of_name(piece, OWN)["searches"]
        rivals = [one for one in piece["contestants"] if one["in_process"] and one["name"] != OWN]
        for label in FILTERS.values():
            told = sorted((one["searches"][label] | {"name": one["name"]} for one in rivals), key=itemgetter("p50"))
            as_good = [one for one in told if one["recall"] >= own[label]["recall"] - EQUAL]
            rows.append(
                [
                    f"{piece['chunks']:,} chunks, {label}",
                    *(_named(some, own[label]) for some in (told, as_good)),
                    _verdict(own[label], told, as_good),
                ]
            )
    about = (
        "Goal: in process, kb is faster than each rival at 10,000 and 100,000 chunks at an equal or better recall. "
        f"Equal is within {EQUAL}. Times kb's p50."
    )
    heads = ("", "fastest rival", "fastest that finds as much", "goal")
    return Section("Against rivals in process", about, heads, rows)


def _named(rivals: Sequence[Piece], own: Piece) -> str:
    """The fastest of them."""
    return next((f"{one['name']}: {one['p50'] / own['p50']:.2f}×, recall {one['recall']:.3f}" for one in rivals), "-")


def _verdict(own: Piece, told: Sequence[Piece], as_good: Sequence[Piece]) -> str:
    if all(_beaten(own, one) for one in told):
        return verdict(True)
    return "reached at equal recall" if all(_beaten(own, one) for one in as_good) else verdict(False)


def _beaten(own: Piece, rival: Piece) -> bool:
    return bool(own["p50"] < rival["p50"] and own["recall"] >= rival["recall"] - EQUAL)
