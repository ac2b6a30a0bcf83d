"""JSON and JSON Lines: every value on a line with its path, in pieces that can be read on their own.

The path that all values of a piece share is its heading; each line has the rest of it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from kb.core.values import Anchor
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.rows import PIECE_CHARACTERS, grouped
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.unstructured import Unstructured

MAX_CHARACTERS = 16 * 2**20  # of one value: parsed, it takes many times that
MAX_DEPTH = 100
KEY_CHARACTERS = 300  # of a key in a path; files of translations have sentences as keys
LIST_ITEM = 80  # characters: a list of shorter ones stands on one line
HEADING = " > "  # between the parts of a heading path
LINE = re.compile(r"[^\n]*\n|[^\n]+")

Path = tuple[str, ...]  # keys, and the numbers of items as "[3]"


class Leaf(NamedTuple):
    path: Path
    text: str


class Members(list[tuple[str, Any]]):
    """The members of an object in order; a key may occur twice."""


def json_value(text: str) -> Iterator[Part]:
    """The parts of a JSON text. Raises Unstructured if it is none."""
    if len(text) > MAX_CHARACTERS:
        raise Unstructured(
            f"JSON of more than {MAX_CHARACTERS // 2**20} million characters is not read by its structure"
        )
    found = list(leaves(parsed(text)))
    outcome = Outcome("ok", f"{len(found)} values with their paths")
    return (
        Part("text", lines(piece, len(shared)), Anchor(heading=shown(shared, HEADING) or None), outcome)
        for piece, shared in ((piece, shared_path(piece)) for piece in pieces(found))
    )


def json_lines(text: str) -> Iterator[Part]:
    """The parts of JSON Lines, each of some rows. Raises Unstructured if a line is no JSON."""
    count = sum(1 for _ in records(text))  # all of them must be valid before any is read
    outcome = Outcome("ok", "1 row" if count == 1 else f"{count} rows")
    rows = ((number, lines(leaves(value), 0)) for number, value in records(text))
    return (Part("text", said, Anchor(rows=numbers), outcome) for numbers, said in grouped(rows, "\n\n"))


def records(text: str) -> Iterator[tuple[int, Any]]:
    """The values of the lines that are not empty, with their numbers."""
    for number, line in enumerate(LINE.finditer(text), 1):
        if len(line[0]) > MAX_CHARACTERS:
            raise Unstructured(f"line {number} is longer than {MAX_CHARACTERS // 2**20} million characters")
        if not line[0].isspace():
            try:
                yield number, parsed(line[0])
            except Unstructured as why:
                raise Unstructured(f"line {number}: {why}") from None


def parsed(text: str) -> Any:
    """A value with its numbers as they are written."""
    try:
        return json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=Members, parse_int=str, parse_float=str, parse_constant=str
        )
    except RecursionError:
        raise Unstructured("its JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise Unstructured(f"it is not valid JSON: {error}") from None


def leaves(value: Any) -> Iterator[Leaf]:
    """The values that hold no others, in order."""
    waiting: list[tuple[Path, Any]] = [((), value)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > MAX_DEPTH:
            raise Unstructured("its JSON is nested too deeply")
        if isinstance(value, Members) and value:
            waiting += [((*path, one_line(key)[:KEY_CHARACTERS]), inner) for key, inner in reversed(value)]
        elif isinstance(value, list) and not isinstance(value, Members) and not is_short(value):
            waiting += [((*path, f"[{number}]"), value[number]) for number in reversed(range(len(value)))]
        else:
            yield Leaf(path, scalar(value))


def is_short(items: list[Any]) -> bool:
    """Whether a list stands on one line: it holds nothing but short values."""
    return all(not isinstance(item, list) and len(scalar(item)) <= LIST_ITEM for item in items)


def scalar(value: Any) -> str:
    if isinstance(value, Members):
        return "{}"
    if isinstance(value, list):
        return ", ".join(map(scalar, value)) or "[]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def pieces(found: Sequence[Leaf]) -> Iterator[Sequence[Leaf]]:
    """Neighbours that make a passage, cut where the structure is divided most."""
    begin, size = 0, 0
    for at, leaf in enumerate(found):
        size += len(leaf.text) + len(shown(leaf.path, "."))
        if size > PIECE_CHARACTERS and at > begin:
            cut = max(range((begin + at) // 2 + 1, at + 1), key=lambda cut: (-common(found, cut), cut))
            yield found[begin:cut]
            begin = cut
            size = sum(len(one.text) + len(shown(one.path, ".")) for one in found[begin : at + 1])
    if begin < len(found):
        yield found[begin:]


def common(found: Sequence[Leaf], at: int) -> int:
    """How much of its path a value shares with the one before."""
    return len(shared_path(found[at - 1 : at + 1]))


def shared_path(found: Sequence[Leaf]) -> Path:
    """The path that all of these stand under; of a single value, the path to what holds it."""
    if len(found) == 1:
        return found[0].path[:-1]
    first, last = min(leaf.path for leaf in found), max(leaf.path for leaf in found)
    return tuple(key for key, _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))


def lines(found: Iterable[Leaf], shared: int) -> str:
    return "\n".join(": ".join(filter(None, (shown(path[shared:], "."), text))) for path, text in found)


def shown(path: Path, between: str) -> str:
    """A path in words: the number of an item belongs to the list's name."""
    return between.join(path).replace(f"{between}[", "[")
