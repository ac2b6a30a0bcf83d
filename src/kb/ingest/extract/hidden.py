"""Text that a file holds and does not show: it stands apart from the rest, so that what is found in it can be marked.

An extractor that goes through a file's elements puts marks around what is not shown; they survive whatever is done to
the text until it is complete.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from kb.ingest.extract.part import Outcome, Part

# Noncharacters: no text has them, and what does all the same loses them (`without_marks`).
START, END = "\ufdd0", "\ufdd1"
MARKED = re.compile(f"{START}([^{END}]*)(?:{END}|\\Z)")
MARKS = str.maketrans("", "", START + END)


@dataclass(slots=True)
class Hidden:
    """What a part holds beside its text, and in which ways that is hidden."""

    text: str = ""
    ways: set[str] = field(default_factory=set)  # "white", "outside of the page"

    def __bool__(self) -> bool:
        return any(character.isalnum() for character in self.text)

    @property
    def reason(self) -> str:
        count = sum(not character.isspace() for character in self.text)
        characters = "1 character is" if count == 1 else f"{count} characters are"
        return f"{characters} hidden ({', '.join(sorted(self.ways))})"


def without_marks(text: str) -> str:
    """A text from a file, in which nothing may pass for a mark."""
    return text if text.isascii() else text.translate(MARKS)


def marked(text: str) -> str:
    return f"{START}{text}{END}" if text.strip() else text


def separated(text: str, ways: set[str]) -> tuple[str, Hidden]:
    """A text with marks as what is shown of it, and what is not."""
    if START not in text:
        return text, Hidden()
    pieces = (piece.strip() for piece in MARKED.findall(text))
    hidden = Hidden("\n".join(filter(None, pieces)), ways)
    if not hidden:
        return text.translate(MARKS), Hidden()
    return re.sub(r"\n{3,}", "\n\n", MARKED.sub("", text).translate(MARKS)).strip(), hidden


def with_hidden(part: Part, hidden: Hidden) -> Iterator[Part]:
    """The part, and what is hidden in it as one of its own, which the ledger names."""
    yield part
    if hidden:
        outcome = Outcome("ok", hidden.reason)
        yield replace(
            part, name=f"{part.name}, hidden text", text=hidden.text, outcome=outcome, hidden=True, lines=None
        )
