"""The numbers that Word counts for lists and headings: "2.1", "(a)", "iv". They are cited, but stand in no text."""

import re
from collections import defaultdict
from dataclasses import dataclass

from lxml import etree

from kb.ingest.extract.ooxml import Package
from kb.ingest.extract.xml import attribute, child_value

PLACE = re.compile(r"%([1-9])")
ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"))
ROMAN_ONES = ((9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
NO_NUMBER = ("bullet", "none")
MAX_NUMBER = 10_000  # beyond it, letters and Roman numbers are no longer written out


@dataclass(frozen=True, slots=True)
class Level:
    form: str  # decimal, lowerLetter, bullet, ...
    text: str  # "%1.%2"
    start: int


class Numbering:
    """Counts along as a document is read from its start."""

    def __init__(self, package: Package, document: str) -> None:
        self._levels: dict[str, dict[int, Level]] = {}  # by abstract list
        self._lists: dict[str, str] = {}  # a list is an abstract one with its own name
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        for name in package.related(document, "numbering"):
            root = package.xml(name)
            for abstract in root.iterchildren("{*}abstractNum"):
                levels = {number_of(level): level_of(level) for level in abstract.iterchildren("{*}lvl")}
                self._levels[attribute(abstract, "abstractNumId") or ""] = levels
            for made in root.iterchildren("{*}num"):
                self._lists[attribute(made, "numId") or ""] = child_value(made, "abstractNumId") or ""

    def label(self, list_id: str, depth: int) -> str:
        """What stands before the next paragraph of this list: "2.1", or "-" for a bullet."""
        abstract = self._lists.get(list_id, "")
        levels = self._levels.get(abstract, {})
        level = levels.get(depth)
        if level is None or level.form in NO_NUMBER:
            return "-"
        counts = self._counts[abstract]
        counts[depth] = counts.get(depth, level.start - 1) + 1
        for deeper in [other for other in counts if other > depth]:
            del counts[deeper]

        def written(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            other = levels.get(at, level)
            return in_form(counts.get(at, other.start), other.form)

        return PLACE.sub(written, level.text).strip() or "-"


def number_of(level: etree._Element) -> int:
    text = attribute(level, "ilvl") or "0"
    return int(text) if text.isdigit() else 0


def level_of(level: etree._Element) -> Level:
    start = child_value(level, "start") or "1"
    text = child_value(level, "lvlText") or ""
    return Level(child_value(level, "numFmt") or "decimal", text, int(start) if start.isdigit() else 1)


def in_form(number: int, form: str) -> str:
    if not 0 < number < MAX_NUMBER:
        return str(number)
    if form in ("lowerLetter", "upperLetter"):
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if form == "upperLetter" else letters
    if form in ("lowerRoman", "upperRoman"):
        return roman(number).upper() if form == "upperRoman" else roman(number)
    return str(number)


def roman(number: int) -> str:
    written = ""
    for value, letters in (*ROMAN, *ROMAN_ONES):
        written += letters * (number // value)
        number %= value
    return written
