"""A document whose new content is being prepared: what is known of it so far."""

from dataclasses import dataclass, field

from kb.core.errors import JobFailure
from kb.core.invisible import tag_characters
from kb.core.types import Json
from kb.core.values import DocType, LedgerEntry, LineBoxes, Method
from kb.ingest.extract.encoded import Encoded
from kb.ingest.extract.part import Part
from kb.ingest.publish import NewRevision
from kb.store.backend import Row

# Of a document: the vectors of more would fill a gigabyte. 100 MB of English have 130,000, of punctuation 500,000.
MAX_CHUNKS = 600_000
SEPARATOR = "\n\n"  # between the parts of a document's text


@dataclass(slots=True)
class Draft:
    revision: NewRevision
    given_title: str | None  # None: the title comes from the content
    given: Json  # the metadata that additions gave
    stored: Row | None  # the document, if its text stays and only title or metadata change
    read_before: bool = False  # something was read of these very bytes
    title: str = ""
    metadata: Json = field(default_factory=dict)  # what the file says about itself, and then what was given
    texts: list[str] = field(default_factory=list)
    offset: int = 0  # where the next part starts
    ledger: list[LedgerEntry] = field(default_factory=list)
    lines: list[tuple[int, int, LineBoxes]] = field(default_factory=list)  # page, where its text starts, and its lines
    encoded: Encoded = Encoded()  # what is in the text and not indexed
    expected: int = 0  # passages of the parts that are known

    @property
    def text(self) -> str:
        return SEPARATOR.join(self.texts)

    def take(self, part: Part, passages: int) -> None:
        self.expect(passages)
        if part.lines is not None:
            self.lines.append((part.anchor.page or 1, self.offset, part.lines))
        self.texts.append(part.text)
        self.encoded = self.encoded.with_spans(part.encoded)
        self.offset += len(part.text) + len(SEPARATOR)
        self.metadata |= part.metadata
        entry = ledger_entry(part)
        if not self.ledger or self.ledger[-1].part != part.name:
            self.ledger.append(entry)
        elif entry.state == "failed" or (entry.state == self.ledger[-1].state and not self.ledger[-1].reason):
            # Several pieces of one part share an entry: a failure wins, then the first that has a reason.
            self.ledger[-1] = entry

    def expect(self, passages: int) -> None:
        self.expected += passages
        if self.expected > MAX_CHUNKS:
            raise JobFailure(
                "too_complex", f"It would be cut into more than {MAX_CHUNKS:,} passages. Split it into smaller files."
            )

    def method(self, doc_type: DocType) -> Method:
        states = {entry.state for entry in self.ledger} & {"ok", "ocr"}
        if doc_type == "image":
            return "image_analysis"
        if "ocr" not in states:
            return "text_extraction"
        return "mixed" if "ok" in states else "ocr"


def ledger_entry(part: Part) -> LedgerEntry:
    reason = part.outcome.reason
    if tags := tag_characters(part.text):
        hidden = f"{tags} {'character is' if tags == 1 else 'characters are'} hidden (Unicode tags)"
        reason = f"{reason}; {hidden}" if reason else hidden
    return LedgerEntry(part.name, part.outcome.state, reason)
