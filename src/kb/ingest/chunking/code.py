"""Program sources: cut at their definitions where these are known, else at the left margin and at blank lines.

A definition that fits into a passage stays whole; one that does not is cut at the definitions inside it, and then like
any other code. What stands before a definition and belongs to it (comments, decorators) is part of it.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import takewhile

from kb.core.types import Interrupt
from kb.core.values import Symbol
from kb.ingest.chunking.breaks import Layout, Rank, is_blank, lines

MAX_PATHS = 4  # of definitions that share a passage
LEVELS = (2, 2)  # of a definition as a section, and of one inside it; deeper ones begin none
NONE = -1  # the owner of what stands outside of every definition
_SAYS = re.compile(r"\b(?!end\b)\w")  # something else than what closes a definition


def code_layout(text: str, interrupt: Interrupt, symbols: Sequence[Symbol] = ()) -> Layout:
    """Definitions, blank lines, lines."""
    layout = Layout(has_sentences=False, symbols=symbols)
    heads = zip((start for start, _, _ in symbols), _levels(symbols), strict=True)
    head, level = next(heads, (len(text), 0))
    blank = False
    for start, end in lines(text, interrupt):
        if is_blank(text, start, end):
            blank = True
            continue
        at_margin = not text[start].isspace() and text[start] not in ")]}"
        best = Rank.HEADING if at_margin else Rank.BLOCK
        layout.add(start, best if blank else Rank.LINE)
        blank = False
        while head < end:
            layout.add(max(start, head), Rank.HEADING, level)
            head, level = next(heads, (len(text), 0))
    for start, end, _ in symbols:
        layout.whole.add(start, end)
    return layout


def _levels(symbols: Sequence[Symbol]) -> Iterator[int]:
    """The level of each definition as a section."""
    around: list[int] = []  # ends of the definitions around the current one
    for start, end, _ in symbols:
        while around and around[-1] <= start:
            around.pop()
        yield LEVELS[len(around)] if len(around) < len(LEVELS) else 0
        around.append(end)


class SymbolOutline:
    """Finds the definitions that a passage stands in."""

    def __init__(self, text: str, symbols: Sequence[Symbol]) -> None:
        self._text = text
        self._paths: list[str] = []  # of every definition
        # Stretches that belong to one definition and to none inside it: where each starts, and the definition.
        self._starts, self._owners = array("i", [0]), array("i", [NONE])
        around: list[tuple[int, int]] = []  # number and end of the definitions around the current one
        for number, (start, end, name) in enumerate(symbols):
            self._leave(around, start)
            self._paths.append(f"{self._paths[around[-1][0]]}.{name}" if around else name)
            self._add(start, number)
            around.append((number, end))
        self._leave(around, len(text))

    def place(self, start: int, end: int) -> tuple[list[str], str | None]:
        """The names that all definitions in the passage share, outermost first; and the paths of the definitions."""
        paths = self._paths_in(start, end)
        if not paths:
            return [], None
        levels = zip(*(path.split(".") for path in paths), strict=False)
        shared = [names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)]
        return shared, ", ".join(paths[:MAX_PATHS]) + (", ..." if len(paths) > MAX_PATHS else "")

    def _paths_in(self, start: int, end: int) -> list[str]:
        """The definitions that own some of the passage, in order, without those inside of another."""
        paths: dict[str, None] = {}
        for at in range(bisect_right(self._starts, start) - 1, bisect_left(self._starts, end)):
            until = self._starts[at + 1] if at + 1 < len(self._starts) else end
            if self._owners[at] != NONE and _SAYS.search(self._text, max(start, self._starts[at]), min(end, until)):
                paths[self._paths[self._owners[at]]] = None
        return [path for path in paths if not any(path.startswith(f"{other}.") for other in paths)]

    def _leave(self, around: list[tuple[int, int]], at: int) -> None:
        """End the definitions that end before `at`: what follows belongs to the one around them."""
        while around and around[-1][1] <= at:
            _, end = around.pop()
            self._add(end, around[-1][0] if around else NONE)

    def _add(self, start: int, owner: int) -> None:
        self._starts.append(start)
        self._owners.append(owner)
