"""A letter: what a mail says, whichever format it came in, as parts and members of a document."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from kb.core.types import Json
from kb.core.values import Anchor
from kb.ingest.extract.member import About, Member, in_pieces, skipped, unique
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import detail

SMALL_PICTURE = 8 * 2**10  # bytes: logos, and pictures that tell the sender that the mail was opened
SIGNATURES = ("application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature")
LABEL = 300  # characters of what a citation says about a message
NAME = 200
SEPARATORS = re.compile(r"[\\/]")
# By the media type, where an attachment has no name; else the content tells what it is.
SUFFIXES = {
    "text/plain": ".txt",
    "text/html": ".html",
    "text/csv": ".csv",
    "text/markdown": ".md",
    "text/calendar": ".ics",
    "message/rfc822": ".eml",
}


@dataclass(frozen=True, slots=True)
class Attachment:
    name: str | None
    media_type: str
    data: bytes
    inline: bool = False  # the text shows it
    failure: str | None = None  # why there is no data

    @property
    def outcome(self) -> Outcome:
        if self.failure:
            return Outcome("failed", self.failure)
        if self.media_type in SIGNATURES:
            return skipped("left out: the signature of the mail")
        if self.inline and self.media_type.startswith("image/") and len(self.data) < SMALL_PICTURE:
            return skipped("left out: a small picture within the text")
        return Outcome()


@dataclass(frozen=True, slots=True)
class Body:
    """One text of a letter: what it shows, and what it hides."""

    parts: Sequence[Part]

    @property
    def words(self) -> int:
        return sum(len(WORD.findall(ADDRESS.sub("", part.text))) for part in self.parts if not part.hidden)


WORD = re.compile(r"\w\w+")
ADDRESS = re.compile(r"\bhttps?:\S+")


@dataclass(frozen=True, slots=True)
class Letter:
    subject: str = ""
    sender: str = ""
    to: str = ""
    cc: str = ""
    date: str = ""
    bodies: list[Body] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What a citation says: date, sender, subject."""
        told = (self.date[:16].replace("T", " "), self.sender, self.subject)
        return ", ".join(filter(None, map(detail, told)))[:LABEL] or "without date, sender and subject"

    @property
    def metadata(self) -> Json:
        told = {"subject": self.subject, "from": self.sender, "to": self.to, "cc": self.cc, "date": self.date}
        return {name: detail(value) for name, value in told.items() if detail(value)}

    def parts(self, name: str) -> Iterator[Part]:
        """The headers and the text; text that is not shown apart."""
        told = {"Subject": self.subject, "From": self.sender, "To": self.to, "Cc": self.cc, "Date": self.date}
        headers = "\n".join(f"{title}: {value}" for title, value in told.items() if value)
        pieces = [part for body in self.bodies for part in body.parts]
        shown = [part for part in pieces if not part.hidden]
        text = "\n\n".join(filter(None, [headers, *(part.text.strip() for part in shown)]))
        reason = next((part.outcome.reason for part in shown if part.text and part.outcome.reason), None)
        anchor = Anchor(message=self.label)
        yield Part(
            name,
            text,
            anchor,
            Outcome("ok", reason) if text else EMPTY,
            title=detail(self.subject) or None,
            metadata=self.metadata,
        )
        for part in pieces:
            if part.hidden:
                yield replace(part, name=f"{name}, hidden text", anchor=anchor, title=None, metadata={})

    def members(self, before: str = "", taken: dict[str, int] | None = None) -> Iterator[Member]:
        """The attachments; `before` says which message of several brought them."""
        taken = {} if taken is None else taken
        total = len(self.attachments)
        for number, attachment in enumerate(self.attachments, 1):
            filename = file_name(attachment, number)
            path = unique(f"{before}{filename}", taken)
            name = f"attachment {path}"
            yield Member(
                About(name, path, filename, self.label, attachment.outcome, number, total), in_pieces(attachment.data)
            )


def file_name(attachment: Attachment, number: int) -> str:
    """The name that the sender gave, without folders and control characters."""
    given = SEPARATORS.split(detail(attachment.name))[-1].strip()
    plain = "".join(character for character in given if character.isprintable())
    if plain.strip("."):
        stem, dot, suffix = plain.rpartition(".")
        return plain if len(plain) <= NAME else f"{(stem or plain)[: NAME - 20]}{dot}{suffix[:19]}"
    return f"attachment {number}{SUFFIXES.get(attachment.media_type, '')}"
