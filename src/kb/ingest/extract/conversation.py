"""A conversation with an assistant, as `kb import` writes it: one part per message, with speaker and time."""

import json
from collections.abc import Iterator

from kb.core.errors import JobFailure
from kb.core.types import Json
from kb.core.values import Anchor
from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tools import Ocr, Source

MAX_MESSAGES = 50_000


def parts(source: Source, _: Ocr) -> Iterator[Part]:
    conversation = opened(source)
    messages = conversation["messages"]
    title = conversation.get("title") or None
    for number, message in enumerate(messages, 1):
        speaker, text = str(message.get("speaker") or "unknown"), str(message.get("text") or "").strip()
        told = ", ".join(filter(None, (speaker, readable(message.get("created_at")))))
        yield Part(
            f"message {number}",
            f"**{told}**\n\n{text}" if text else "",
            Anchor(message=f"{number}, {told}"),
            Outcome() if text else EMPTY,
            title,
            number=number,
            total=len(messages),
        )


def opened(source: Source) -> Json:
    try:
        found = json.loads(source.read_bytes())
    except RecursionError:
        raise JobFailure("too_complex", "The conversation's JSON is nested too deeply.") from None
    except ValueError as error:
        raise JobFailure("corrupt", f"The conversation is cut off or damaged: {error}") from None
    messages = found.get("messages") if isinstance(found, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise JobFailure("corrupt", "The conversation has no list of messages.")
    if len(messages) > MAX_MESSAGES:
        raise JobFailure("too_complex", f"The conversation has {len(messages)} messages.")
    return dict(found)


def readable(moment: object) -> str:
    """A time that kb wrote, to the minute."""
    return str(moment)[:16].replace("T", " ") if moment else ""
