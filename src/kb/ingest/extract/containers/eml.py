"""A mail as it travels: headers, texts in several forms, attachments (RFC 5322, MIME)."""

import email
from collections.abc import Iterator
from email.errors import MessageError
from email.message import Message

from kb.core.errors import JobFailure
from kb.ingest.extract import html
from kb.ingest.extract.containers.letter import Attachment, Body, Letter
from kb.ingest.extract.encoding import Decoded
from kb.ingest.extract.mime import file_name, header, moment, payload, text_of
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tidy import tidy

MAX_ATTACHMENTS = 1000
ENOUGH = 0.95  # of the words of the formatted text: then the plain one says the same
TEXTS = ("text/plain", "text/html")


def letter_of(data: bytes) -> Letter:
    message = email.message_from_bytes(data)
    bodies: list[Body] = []
    attachments: list[Attachment] = []
    collect(message, bodies, attachments)
    return Letter(
        subject=header(message, "subject"),
        sender=header(message, "from"),
        to=header(message, "to"),
        cc=header(message, "cc"),
        date=moment(header(message, "date")),
        bodies=bodies,
        attachments=attachments,
    )


def collect(message: Message, bodies: list[Body], attachments: list[Attachment]) -> None:
    """Add the texts and the attachments of a message, or of a part of one, in order."""
    kind = message.get_content_type()
    if kind == "multipart/alternative" and message.is_multipart():
        alternatives: list[list[Body]] = []
        for part in subparts(message):
            alternatives.append([])
            collect(part, alternatives[-1], attachments)
        bodies.extend(chosen([found for found in alternatives if found]))
    elif message.is_multipart() and message.get_content_maintype() == "multipart":
        for part in subparts(message):
            collect(part, bodies, attachments)
    elif len(attachments) >= MAX_ATTACHMENTS:
        raise JobFailure("too_complex", f"The mail has more than {MAX_ATTACHMENTS} attachments.")
    elif message.is_multipart():
        attachments.append(forwarded(message, len(attachments) + 1))
    elif kind in TEXTS and message.get_content_disposition() != "attachment" and not file_name(message):
        bodies.append(Body(list(text_parts(message, kind))))
    elif message.get_content_maintype() != "multipart" or message.get_payload():
        attachments.append(attached(message, kind))


def subparts(message: Message) -> Iterator[Message]:
    for part in message.get_payload():
        if isinstance(part, Message):
            yield part


def chosen(alternatives: list[list[Body]]) -> list[Body]:
    """Of several forms of the same text: the first, which is the plain one, unless another says more."""
    if not alternatives:
        return []
    words = [sum(body.words for body in bodies) for bodies in alternatives]
    return next(found for found, count in zip(alternatives, words, strict=True) if count >= ENOUGH * max(words))


def text_parts(message: Message, kind: str) -> Iterator[Part]:
    found = text_of(payload(message), message.get_content_charset())
    if kind != "text/html":
        yield Part("text", tidy(found.text), outcome=Outcome("ok", found.reason))
        return
    yield from html_parts(found)


def html_parts(page: Decoded) -> Iterator[Part]:
    """The text of a formatted mail. One that cannot be read does not keep the headers from being found."""
    try:
        yield from html.text_parts(page.text, page.reason)
    except JobFailure as failure:
        yield Part("text", "", outcome=Outcome("failed", failure.message))


def attached(message: Message, kind: str) -> Attachment:
    inline = message.get("content-id") is not None or message.get_content_disposition() == "inline"
    return Attachment(file_name(message), kind, payload(message), inline)


def forwarded(message: Message, number: int) -> Attachment:
    """A message within the message; other things that are made of headers are kept as text."""
    inner = [part for part in message.get_payload() if isinstance(part, Message)]
    if message.get_content_type() != "message/rfc822":
        text = "\n".join(str(part) for part in inner).encode("utf-8", "replace")
        return Attachment(file_name(message) or f"{message.get_content_subtype()} {number}.txt", "text/plain", text)
    subject = header(inner[0], "subject") if inner else ""
    name = file_name(message) or (f"{subject[:100]}.eml" if subject else None)
    try:
        return Attachment(name, "message/rfc822", inner[0].as_bytes() if inner else b"")
    except (MessageError, ValueError, LookupError, TypeError, KeyError) as error:
        return Attachment(name, "message/rfc822", b"", failure=f"It cannot be taken out of the mail: {error}")
