"""The parts about scale and rivals: measured size by size, in as many runs as it takes; one page tells them all."""

from collections.abc import Sequence
from types import ModuleType

from benchmarks import base, plot, rivals, routes, scale
from benchmarks.corpus import Corpus
from benchmarks.environment import RIVALS
from benchmarks.pieces import Run, pieces
from benchmarks.report import DOCS, write_page

# Each part has `measure(run)`, which keeps its figures, and `sections(corpus)`, which tells all that are kept.
PARTS: dict[str, ModuleType] = {"scale": scale, "rivals": rivals, "http": routes}
SIZES = {
    "scale": (1000, 10_000, 100_000, 1_000_000),
    "rivals": (1000, 10_000, 100_000),
    "http": (10_000, 100_000),
}
QUICK_SIZES = (1000, 3000)
PLOT = "scale.svg"
HOW = """Repeat it with `make bench`, or in pieces: `.venv/bin/python -m benchmarks --part scale --sizes 1000,10000`,
then `--part rivals`, `--part http`. What is measured is kept in `benchmarks/.cache`, and this page is written from what
is there; `--again` measures anew. Rivals live in an environment of their own, `benchmarks/.env`.

The first {real:,} chunks are {source}, cut and embedded as kb does it.
Beyond them text and vectors are made: sentences of a real passage and of a neighbour by meaning; the vector of the
passage, moved as far as that neighbour lies from another. That is a little harder than real text: grown tenfold from
1,000 passages, the 400 nearest by sign bits hold .987 of the exact top 10, and .993 among 10,000 real ones. Questions
are real: claims and sentences of 8 words.
Ratios carry over to other machines better than times do."""


def measure(
    parts: Sequence[str], sizes: Sequence[int] | None, without: Sequence[str], *, quick: bool, again: bool
) -> Corpus:
    """Run these parts; the corpus that they used."""
    corpus = base.open_corpus(quick=quick)
    for part in parts:
        wanted = sizes or (QUICK_SIZES if quick else SIZES[part])
        PARTS[part].measure(Run(corpus, quick, tuple(wanted), again, frozenset(without)))
    return corpus


def tables(corpus: Corpus) -> list[str]:
    """All that was ever measured with this corpus."""
    return [section.markdown() for part in PARTS.values() for section in part.sections(corpus)]


def write(corpus: Corpus, head: str) -> None:
    served, raced = (list(pieces(corpus, part)) for part in ("scale", "rivals"))
    plot.draw(RIVALS.python(), served, raced, scale.GOAL_ABOVE_MS, scale.slope(served), DOCS / PLOT)
    how = HOW.format(real=corpus.real, source=base.source())
    picture = f"![Latency, recall, memory and disk against the number of chunks]({PLOT})"
    page = write_page("scale.md", ["# Scale and rivals", head, how, picture, *tables(corpus)])
    print(f"\nWritten to {page.relative_to(page.parents[2])}.")
