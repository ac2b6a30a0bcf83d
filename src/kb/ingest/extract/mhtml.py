"""MHTML: the page in a saved web page. What it shows beside its text is saved with it, and is not read."""

import email
from email.message import Message

from kb.core.errors import JobFailure
from kb.ingest.extract.mime import payload, text_of


def saved_page(data: bytes) -> tuple[str, str | None]:
    """The page as text, and what the ledger says about the rest."""
    message = email.message_from_bytes(data.lstrip())
    leaves = [part for part in message.walk() if not part.is_multipart()]
    pages = [part for part in leaves if part.get_content_type() in ("text/html", "application/xhtml+xml")]
    if not pages:
        raise JobFailure("corrupt", "The saved web page holds no page.")
    page = next((part for part in pages if is_start(message, part)), pages[0])
    found = text_of(payload(page), page.get_content_charset())
    others = len(leaves) - 1
    rest = f"{others} pictures, styles and frames of the page are not read" if others else None
    return found.text, "; ".join(filter(None, (found.reason, rest))) or None


def is_start(message: Message, part: Message) -> bool:
    """Whether the message names this part as the one to begin with."""
    told = (message.get_param("start"), message.get("snapshot-content-location"))
    return any(name is not None and name in told for name in (part.get("content-id"), part.get("content-location")))
