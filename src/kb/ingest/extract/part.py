"""A part of a document: what every extractor yields."""

from dataclasses import dataclass

from kb.nouns import Anchor, LedgerState


@dataclass(frozen=True, slots=True)
class Part:
    """A page, a slide, a sheet, or the whole of a text file."""

    name: str  # as the ledger shows it: "page 3", "slide 2", "sheet Costs", "text"
    text: str
    anchor: Anchor = Anchor()  # page, slide or sheet
    state: LedgerState = "ok"
    reason: str | None = None
    title: str | None = None  # the document's title, when this part says it
