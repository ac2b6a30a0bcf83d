"""The export of Claude (`conversations.json` with `chat_messages`), and session files of Claude Code (JSON lines)."""

import json
import re
from collections.abc import Iterable
from typing import Any

from kb.cli.importing.conversation import Conversation, Message, first_line, identity, moment
from kb.core.types import Json

TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}  # fields by types of records
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SPEAKERS = {"human": "user", "user": "user", "assistant": "assistant"}


def is_one(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("chat_messages"), list)


def conversation(item: Json) -> Conversation:
    messages = [message for one in item["chat_messages"] if isinstance(one, dict) and (message := chat_message(one))]
    name = str(item.get("uuid") or identity(messages))
    metadata: Json = {"source": "claude", "conversation": name}
    if summary := item.get("summary"):
        metadata["summary"] = str(summary)
    title = str(item.get("name") or "") or first_line(messages)
    return Conversation(f"claude/{name}", title, moment(item.get("created_at")), messages, metadata)


def chat_message(item: Json) -> Message | None:
    """A message with the text of its attachments."""
    attached = [
        f"{attachment.get('file_name') or 'attachment'}:\n\n{attachment['extracted_content']}"
        for attachment in item.get("attachments") or []
        if isinstance(attachment, dict) and attachment.get("extracted_content")
    ]
    own = said(item.get("content")) or str(item.get("text") or "")
    text = "\n\n".join(filter(None, [own, *attached]))
    speaker = SPEAKERS.get(str(item.get("sender")))
    return Message(speaker, text, moment(item.get("created_at"))) if speaker and text.strip() else None


def said(content: Any) -> str:
    """The text of a message's blocks: not its thoughts, and not what tools did."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    blocks = (block for block in content if isinstance(block, dict) and block.get("type") == "text")
    return "\n\n".join(filter(None, (str(block.get("text") or "") for block in blocks)))


def session(lines: Iterable[str], name: str) -> Conversation | None:
    """A session of Claude Code; None if these lines are none.

    A session is known by the name of its file: one that was resumed may begin with the records of another.
    """
    messages: list[Message] = []
    about: Json = {}
    title = None
    for line in lines:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # the last line of a session that goes on may be half written
        if not isinstance(record, dict):
            continue
        if field := TITLES.get(str(record.get("type"))):
            title = str(record.get(field) or "") or title
        if "sessionId" not in record:
            continue
        about = about or record
        if record.get("isMeta") or record.get("isSidechain"):
            continue
        if message := session_message(record):
            add(messages, message)
    if not about:
        return None
    id_ = name if UUID.fullmatch(name) else str(about["sessionId"] or name)
    metadata: Json = {"source": "claude-code", "conversation": id_}
    metadata |= {
        key: str(about[field]) for key, field in (("folder", "cwd"), ("branch", "gitBranch")) if about.get(field)
    }
    created = moment(about.get("timestamp")) or next((message.created_at for message in messages), None)
    title = title or (first_line(messages) if messages else name)
    return Conversation(f"claude-code/{id_}", title, created, messages, metadata)


def session_message(record: Json) -> Message | None:
    message = record.get("message")
    if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return None
    text = said(message.get("content"))
    return Message(str(record["type"]), text, moment(record.get("timestamp"))) if text.strip() else None


def add(messages: list[Message], message: Message) -> None:
    """Append a message. What an assistant says between the calls of its tools is one message."""
    last = messages[-1] if messages else None
    if last and last.speaker == message.speaker == "assistant":
        messages[-1] = last._replace(text=f"{last.text}\n\n{message.text}")
    else:
        messages.append(message)
