"""The heading that a page of figures opens with: only there it says what they are figures of.

Every passage of such a page stands under it: a balance sheet is cut into several, and each is of a balance sheet. A
page of prose may have several headings, and its passages speak for themselves.
"""

import re

LOOKED_AT = 8  # lines at the top of a page
TAKEN = 2  # lines that a heading may have
CHARACTERS = 100
LETTERS = 4
DIGITS = 0.3  # share of a line, at most
FIGURES = 0.4  # share of a page's lines that hold a number, at least
NUMBER = re.compile(r"\d")
WORD = re.compile(r"[^\W\d_]+")
SMALL = frozenset("a an and as at by for from in of on or the to with de der die du la le und von".split())


class PageHeads:
    """Goes through the pages in order: what stood at the top of the page before as well is no heading of this one."""

    def __init__(self) -> None:
        self._before: set[str] = set()

    def of(self, text: str) -> str | None:
        lines = [line for line in text.split("\n") if line]
        top = lines[:LOOKED_AT]
        found: list[str] = []
        for line in top:
            if line not in self._before and is_heading(line):
                found.append(line)
            elif found:
                break
        self._before = set(top)
        of_figures = sum(bool(NUMBER.search(line)) for line in lines) >= FIGURES * len(lines)
        return " ".join(found[:TAKEN]) or None if of_figures else None


def is_heading(line: str) -> bool:
    """Short, without an end like a sentence's, its words written large."""
    if len(line) > CHARACTERS or line[-1] in ".,;:" or not (line[0].isalnum()):
        return False
    words = WORD.findall(line)
    if sum(map(len, words)) < LETTERS or sum(map(str.isdigit, line)) > DIGITS * len(line):
        return False
    return all(word[0].isupper() or word in SMALL for word in words) and any(len(word) >= LETTERS for word in words)
