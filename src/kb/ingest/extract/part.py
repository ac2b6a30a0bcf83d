"""A part of a document: what every extractor yields."""

from dataclasses import asdict, dataclass, field

from kb.core.types import Json
from kb.core.values import Anchor, FailureCode, LedgerState, LineBoxes, Symbol


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a part. `code` is what the job fails with when no part has any text."""

    state: LedgerState = "ok"
    reason: str | None = None
    code: FailureCode = "no_text"


@dataclass(frozen=True, slots=True)
class Part:
    """A page, a slide, a sheet, or the whole of a text file.

    Neighbours with the same name are pieces of one part: the ledger has one entry for them.
    """

    name: str  # as the ledger shows it: "page 3", "slide 2", "sheet Costs", "text"
    text: str
    anchor: Anchor = Anchor()  # page, slide or sheet, and the heading that all of it stands under
    outcome: Outcome = Outcome()
    title: str | None = None  # the document's title, when this part says it
    metadata: Json = field(default_factory=dict)  # author and the like, when this part says it
    number: int = 1  # which of `total` parts this is
    total: int = 1
    hidden: bool = False  # a reader of the file does not see this text
    encoded: list[tuple[int, int]] = field(default_factory=list)  # where bytes stand in the text that are not indexed
    lines: LineBoxes | None = None  # where they stand, of a part that was read by OCR
    symbols: list[Symbol] = field(default_factory=list)  # the definitions in a program, outer ones before inner ones

    def message(self) -> Json:
        """Everything but the text, as JSON."""
        return asdict(self) | {"text": ""}


EMPTY = Outcome("empty", "no text")
