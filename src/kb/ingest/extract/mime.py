"""Headers and texts of a mail or a saved web page, decoded (RFC 2047, RFC 2231)."""

import codecs
from email.errors import MessageError
from email.header import decode_header
from email.message import Message
from email.utils import parsedate_to_datetime

from kb.core.errors import JobFailure
from kb.ingest.extract.detect import NEVER_IN_TEXT
from kb.ingest.extract.encoding import Decoded, decoded, strictly
from kb.ingest.extract.tidy import one_line

ASCII_ONLY = ("utf-7", "hz")  # encodings whose bytes look like ASCII
HEADER_CHARACTERS = 20_000  # of one header: more is a list of recipients that says nothing


def payload(message: Message) -> bytes:
    data = message.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def file_name(message: Message) -> str | None:
    try:
        name = message.get_filename()
    except (LookupError, ValueError, TypeError):
        return None
    return words(name) if name else None


def header(message: Message, name: str) -> str:
    """A header as text on one line; empty if there is none."""
    value = next((value for key, value in message.raw_items() if key.lower() == name), "")
    return words(str(value)[:HEADER_CHARACTERS])


def words(value: str) -> str:
    """A header with its encoded words decoded; bytes beyond ASCII are text that does not say its encoding."""
    raw = value.encode("utf-8", "surrogateescape")
    value = value if strictly(raw, "utf-8") is not None and value.isprintable() else text_of(raw, None).text
    try:
        pieces = decode_header(value)
    except (MessageError, ValueError):
        return one_line(value)
    return one_line(
        "".join(text_of(piece, charset).text if isinstance(piece, bytes) else piece for piece, charset in pieces)
    )


def text_of(data: bytes, charset: str | None) -> Decoded:
    """The text of these bytes, in the encoding that the mail declares if the bytes agree.

    Nothing is refused: what cannot be read becomes �, and the ledger says it.
    """
    said = codec(charset)
    if said in ASCII_ONLY and (text := strictly(data, said)) is not None:
        return Decoded(text)
    if said is None or not said.startswith(("utf-16", "utf-32")):
        data = data.translate(None, NEVER_IN_TEXT)
    try:
        return decoded(data, said)
    except JobFailure:
        name = said or "cp1252"
        return Decoded(data.decode(name, "replace"), f"read as {name}; what it has no characters for became �")


def codec(charset: str | None) -> str | None:
    """The name that Python has for a charset; None if it knows none for text."""
    try:
        found = codecs.lookup((charset or "").strip())
    except (LookupError, ValueError):
        return None
    return found.name if getattr(found, "_is_text_encoding", True) else None


def moment(text: str) -> str:
    """A date in ISO 8601; as it is if it cannot be read."""
    try:
        return parsedate_to_datetime(text).isoformat()
    except (ValueError, TypeError, IndexError, OverflowError):
        return text
