"""Program sources: one part, decoded, with the definitions in it (functions, classes and the like)."""

import json
import re
import time
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import tree_sitter

from kb.core.values import Symbol
from kb.ingest.extract import languages
from kb.ingest.extract.encoding import decoded
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.text import said
from kb.ingest.extract.tools import Ocr, Source

MAX_BYTES = 2**20  # of a source that is parsed: the tree of a hostile one takes 400 times as much memory
MAX_SECONDS = 5
MAX_JSON = 2**19  # characters of all definitions: an answer has room for them
MAX_DEPTH = 8  # of definitions inside of others
MAX_NAME = 100  # characters
MAX_LINE = 1000  # bytes before a definition on its line

_SEPARATORS = re.compile(r"::|->|[.:\\]")  # between the names of a path, in one language or the other
_TYPE_ARGUMENTS = re.compile(r"<[^<>=]*>")
_MARKS = " \t\r\n\"'`&*[]()"  # that may surround a name
_INDENT = re.compile(rb"[ \t]*")
_WORDS = re.compile(rb"[ \t]*(?:\w+[ \t]+)*")  # before a definition on its line: "export default ", "local "
_NEXT_LINE = re.compile(rb"[ \t]*(?:\r\n?|\n)?" + _WORDS.pattern)
_CONTINUATION = bytes(range(0x80, 0xC0))  # bytes of a character of UTF-8 after its first

Found = dict[str, list[tree_sitter.Node]]  # what a match of a query captured


class TooMuchError(Exception):
    """Why the definitions of a source are not looked for."""


@dataclass(frozen=True, slots=True)
class Definition:
    start: int  # in bytes
    end: int
    name: str


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    found = decoded(source.read_bytes())
    why = None
    symbols: list[Symbol] = []
    if language := languages.language_of(source.name, found.text):
        try:
            symbols = symbols_in(found.text, language)
        except TooMuchError as error:
            why = f"cut by lines, not by its functions: {error}"
    yield Part("text", found.text, outcome=Outcome("ok", said(found.reason, why)), symbols=symbols)


def symbols_in(text: str, language: str) -> list[Symbol]:
    """The definitions in a source, outer ones before those inside them."""
    source = text.encode("utf-8", "replace")
    if len(source) > MAX_BYTES:
        raise TooMuchError(f"it has more than {MAX_BYTES // 2**20} MB")
    placed = nested(definitions(source, matches(source, language)))
    symbols = in_characters(source, placed)
    if len(json.dumps(symbols)) > MAX_JSON:
        raise TooMuchError(f"it has {len(symbols):,} functions")
    return symbols


def matches(source: bytes, language: str) -> list[Found]:
    """What the query of a language finds in a source; either step may take ages in a hostile one."""
    # The callbacks that are to replace the time limits crash, in tree-sitter 0.25.2 as in 0.26.0.
    parser = tree_sitter.Parser(languages.grammar(language), timeout_micros=MAX_SECONDS * 1_000_000)
    cursor = tree_sitter.QueryCursor(languages.query(language), timeout_micros=MAX_SECONDS * 1_000_000)
    try:
        tree = parser.parse(source)
        begun = time.monotonic()
        found = [captured for _, captured in cursor.matches(tree.root_node)]
        if time.monotonic() - begun < MAX_SECONDS:  # else the cursor stopped in the middle, without a word
            return found
    except ValueError:  # the parser stopped
        pass
    raise TooMuchError(f"parsing it takes more than {MAX_SECONDS} seconds")


def definitions(source: bytes, captured: Iterable[Found]) -> Iterator[Definition]:
    """The definitions with what stands before each of them and belongs to it."""
    longest: dict[int, tuple[int, int, Found]] = {}  # by where the name stands
    before: dict[int, int] = {}  # the start of a comment or decorator by its end
    for found in captured:
        for node in found.get("before", ()):
            end = node.end_byte
            before[end - 1 if source[end - 1 : end] == b"\n" else end] = node.start_byte
        for node in found.get("definition", ()):
            name_at = found["name"][0].start_byte
            known = longest.get(name_at)
            if known is None or node.end_byte - node.start_byte > known[1] - known[0]:
                longest[name_at] = node.start_byte, node.end_byte, found
    ends = sorted(before)
    for first, last, found in longest.values():
        if name := name_of(source, found):
            yield Definition(leading(source, first, before, ends), last, name)


def leading(source: bytes, start: int, before: dict[int, int], ends: list[int]) -> int:
    """Where a definition starts with its comments and decorators; at the start of a line if nothing else is on it."""
    while True:
        at = bisect_right(ends, start) - 1
        if at < 0 or not _NEXT_LINE.fullmatch(source, ends[at], start):
            break
        line = line_start(source, before[ends[at]])
        if not _INDENT.fullmatch(source, line, before[ends[at]]):
            break  # it ends a line of something else
        start = line
    line = line_start(source, start)
    return line if _WORDS.fullmatch(source, line, start) else start


def line_start(source: bytes, at: int) -> int:
    """Where the line begins; in a line that is too long, `at` itself."""
    begin = max(0, at - MAX_LINE)
    end = max(source.rfind(b"\n", begin, at), source.rfind(b"\r", begin, at))
    if end < 0 and begin > 0:
        return at
    return end + 1


def name_of(source: bytes, found: Found) -> str:
    """The path of names, joined by dots: a method that stands outside of its class names the class too."""
    nodes = [*found.get("owner", ())[:1], found["name"][0]]
    path = ".".join(source[node.start_byte : node.end_byte][: 4 * MAX_NAME].decode("utf-8", "ignore") for node in nodes)
    names = (" ".join(name.strip(_MARKS).split()) for name in _SEPARATORS.split(_TYPE_ARGUMENTS.sub("", path)))
    return ".".join(filter(None, names))[:MAX_NAME]


def nested(found: Iterable[Definition]) -> list[Definition]:
    """In order, outer ones first, each either inside of another or apart from it."""
    placed: list[Definition] = []
    around: list[int] = []  # ends of the definitions around the current one
    for one in sorted(found, key=lambda one: (one.start, -one.end)):
        while around and around[-1] <= one.start:
            around.pop()
        inside = replace(one, end=min([one.end, *around[-1:]]))
        if len(around) < MAX_DEPTH and not (placed and placed[-1].start == one.start and placed[-1].end == inside.end):
            placed.append(inside)
            around.append(inside.end)
    return placed


def in_characters(source: bytes, placed: Sequence[Definition]) -> list[Symbol]:
    """Definitions at characters of the text instead of bytes."""
    edges = sorted({edge for one in placed for edge in (one.start, one.end)})
    characters: dict[int, int] = {}
    for last, edge in pairwise([0, *edges]):
        begun = characters.get(last, 0)
        characters[edge] = begun + len(source[last:edge].translate(None, _CONTINUATION))
    return [(characters[one.start], characters[one.end], one.name) for one in placed]
