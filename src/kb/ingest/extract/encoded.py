"""Encoded bytes in a text: base64, hex dumps, uuencode and the like. They stay in the text, and are not indexed.

No one searches for them, and a picture in a mail makes hundreds of passages. Words, tables, numbers, lists of hashes
and long addresses are none of it: what is taken for encoded is long, and has no words in it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

Span = tuple[int, int]

MOST = 10_000  # places of a part: beyond that, the longest
LONG = 400  # characters of lines that are encoded
BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{1000,}={0,2}")  # longer than keys, hashes and tokens are
# Lines are matched whole or not at all (?>): a text that nearly fits would otherwise be tried in endless ways.
BASE64_LINES = re.compile(
    r"(?:(?>^[ \t>\"']*[A-Za-z0-9+/]{40,100}={0,2}[\"',+\\ \t]*(?:\r?\n|\Z))){5,}+"
    r"(?:[ \t>\"']*(?=\S*[A-Z])(?=\S*[a-z])(?=\S*[0-9+/=])[A-Za-z0-9+/]{2,39}={0,2}[\"',;]*$)?",  # the rest of it
    re.MULTILINE,
)
BASE64_LINE = re.compile(r"[A-Za-z0-9+/]{40,100}={0,2}")
HEX = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{1000,}+(?![0-9A-Za-z])")
HEX_LINES = re.compile(r"(?:(?>^[ \t]*[0-9A-Fa-f]{40,400}[ \t]*(?:\r?\n|\Z))){5,}+", re.MULTILINE)
DUMP = re.compile(
    r"(?:(?>^[0-9A-Fa-f]{6,16}:?[ \t]+(?:[0-9A-Fa-f]{2,8}[ \t]+){4,}[^\n]*(?:\n|\Z))){16,}+", re.MULTILINE
)
UUENCODED = re.compile(r"^begin [0-7]{3,4} [^\n]+\n(?:(?>[!-`][!-` ]{1,84}\r?\n))++[`\s]*end\b", re.MULTILINE)
UNBROKEN = re.compile(r"(?<!\S)[!-~]{2000,}(?!\S)")
ADDRESS = re.compile(r"\W*[a-z]+://")
LETTERS = re.compile(r"[A-Za-z]+")
# As words are written. Of base64's letters, a tenth stand together like this by chance.
WORD = re.compile(r"(?<![A-Za-z])(?:[A-Z]?[a-z]{2,}|[A-Z]{3,})(?![a-z])")
WORDS = 0.35  # of the letters, beyond which it is writing
HASHES = frozenset((32, 40, 48, 56, 64, 96, 128))  # digits of a hash: lines of them are a list


@dataclass(frozen=True, slots=True)
class Encoded:
    """How much of a document is left out."""

    places: int = 0
    characters: int = 0

    def with_spans(self, spans: Sequence[Span]) -> "Encoded":
        return Encoded(self.places + len(spans), self.characters + sum(end - start for start, end in spans))

    @property
    def reason(self) -> str:
        places = "1 place" if self.places == 1 else f"{self.places} places"
        return f"encoded bytes left out of the index: {places}, {max(1, round(self.characters / 1000))} KB"


def encoded_spans(text: str) -> list[Span]:
    """Where encoded bytes stand in a text: in order, without overlaps."""
    spans: list[Span] = []
    for start, end in sorted(found(text)):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans if len(spans) <= MOST else sorted(sorted(spans, key=lambda span: span[0] - span[1])[:MOST])


def found(text: str) -> Iterator[Span]:
    for match in BASE64.finditer(text):
        if mixed(match[0]) and not worded(match[0]):
            yield match.span()
    for match in BASE64_LINES.finditer(text):
        if wrapped(match[0]):
            yield match.span()
    for match in HEX_LINES.finditer(text):
        if len({len(line) for line in match[0].split()[:-1]} - HASHES) == 1:
            yield match.span()
    for match in UNBROKEN.finditer(text):
        if lettered(match[0]) and not worded(match[0]) and not ADDRESS.match(match[0]):
            yield match.span()
    for pattern in (HEX, DUMP, UUENCODED):
        yield from (match.span() for match in pattern.finditer(text))


def wrapped(lines: str) -> bool:
    """Whether lines are one stream: of one length but for the last, and only that one padded."""
    bare = BASE64_LINE.findall(lines)
    whole = "".join(bare)
    padded = any(line.endswith("=") for line in bare[:-1])
    alike = len({len(line) for line in bare[:-1]}) == 1
    return alike and not padded and len(whole) >= LONG and mixed(whole) and not worded(whole)


def mixed(run: str) -> bool:
    """Whether capitals, small letters and digits are all frequent, as in base64."""
    least = len(run) / 20
    capital = sum(character.isupper() for character in run)
    small = sum(character.islower() for character in run)
    return capital > least * 3 and small > least * 3 and sum(character.isdigit() for character in run) > least


def lettered(run: str) -> bool:
    """Whether letters make up a third of it: rows of numbers are data."""
    return sum(map(len, LETTERS.findall(run))) > len(run) / 3


def worded(run: str) -> bool:
    letters = sum(map(len, LETTERS.findall(run)))
    return sum(map(len, WORD.findall(run))) > WORDS * letters
