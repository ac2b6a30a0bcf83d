"""A text that knows where each of its characters comes from, also after it was put right.

Extraction puts texts right without noting what it moves, because that is fast. To show a passage on its page, the
same steps are taken with notes.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kb.ingest.extract.tidy import LIGATURES, LINE_ENDS, STEPS

NOWHERE = -1  # the origin of a character that stands in no place of its own


@dataclass(frozen=True, slots=True)
class Traced:
    text: str
    origins: Sequence[int]  # for each character

    @staticmethod
    def of(text: str, origin: int = NOWHERE) -> "Traced":
        """A text that comes from one place."""
        return Traced(text, [origin] * len(text))

    def sub(self, pattern: re.Pattern[str], instead: str) -> "Traced":
        """As `pattern.sub` does; what is put in comes from where the match began."""
        texts: list[str] = []
        origins: list[int] = []
        at = 0
        for found in pattern.finditer(self.text):
            texts += self.text[at : found.start()], instead
            origins += self.origins[at : found.start()]
            origins += [self.origins[found.start()]] * len(instead)
            at = found.end()
        return Traced("".join([*texts, self.text[at:]]), [*origins, *self.origins[at:]])

    def translate(self, table: Mapping[int, str | None]) -> "Traced":
        """As `str.translate` does with a table of texts."""
        texts = [table.get(ord(character), character) or "" for character in self.text]
        origins = [origin for origin, text in zip(self.origins, texts, strict=True) for _ in text]
        return Traced("".join(texts), origins)

    def strip(self) -> "Traced":
        start = len(self.text) - len(self.text.lstrip())
        end = max(start, len(self.text.rstrip()))
        return Traced(self.text[start:end], self.origins[start:end])


def joined(separator: str, pieces: Iterable[Traced]) -> Traced:
    """As `separator.join` does."""
    text, origins = "", list[int]()
    for number, piece in enumerate(pieces):
        before = separator if number else ""
        text += before + piece.text
        origins += [NOWHERE] * len(before)
        origins += piece.origins
    return Traced(text, origins)


def tidied(text: Traced) -> Traced:
    """What `tidy` makes of it."""
    text = text.sub(LINE_ENDS, "\n").translate(LIGATURES)
    for pattern, instead in STEPS:
        text = text.sub(pattern, instead)
    return text.strip()
