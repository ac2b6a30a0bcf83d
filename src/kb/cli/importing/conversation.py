"""A conversation on its way into kb: messages with speaker and time, whatever program they come from."""

import hashlib
import json
from datetime import UTC, datetime
from typing import NamedTuple

from kb.core.times import stamp
from kb.core.types import Json

FORMAT = "kb-conversation/1"  # the engine recognises it by this


class Message(NamedTuple):
    speaker: str  # user, assistant
    text: str
    created_at: str | None


class Conversation(NamedTuple):
    source_path: str  # its identity: importing again updates the same document
    title: str
    created_at: str | None
    messages: list[Message]
    metadata: Json

    def content(self) -> bytes:
        """The same bytes for the same conversation, so that an unchanged one is recognised."""
        told = {"format": FORMAT, "title": self.title, "messages": [message._asdict() for message in self.messages]}
        return json.dumps(told, ensure_ascii=False, indent=1).encode("utf-8", "replace")


class Broken(NamedTuple):
    """Something in an export that cannot be understood."""

    name: str
    reason: str


def moment(value: object) -> str | None:
    """A time as exports write it, seconds since 1970 or ISO 8601, in kb's form; None if it is neither."""
    try:
        if isinstance(value, int | float):
            return stamp(datetime.fromtimestamp(value, UTC))
        found = datetime.fromisoformat(str(value))
        return stamp(found if found.tzinfo else found.replace(tzinfo=UTC))
    except (ValueError, OverflowError, OSError):
        return None


def identity(messages: list[Message]) -> str:
    """A name for a conversation that has none, the same however it goes on: a hash of how it began."""
    return hashlib.sha256("\n".join(map(str, messages[0] if messages else ())).encode("utf-8", "replace")).hexdigest()


def first_line(messages: list[Message]) -> str:
    """A title for a conversation that has none: the start of what was asked."""
    text = next((message.text for message in messages if message.speaker == "user"), "") or "Conversation"
    line = text.strip().splitlines()[0].strip() if text.strip() else "Conversation"
    return line if len(line) <= 80 else f"{line[:79]}…"
