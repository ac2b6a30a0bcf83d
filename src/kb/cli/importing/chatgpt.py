"""The export of ChatGPT: `conversations.json`, where each conversation is a tree of messages.

The branch that ChatGPT shows is imported: from `current_node` up to the root. Answers that were generated again and
edited questions are other branches; their number is kept in the metadata.
"""

from collections.abc import Iterator
from typing import Any

from kb.cli.importing.conversation import Conversation, Message, first_line, identity, moment
from kb.core.types import Json

SPEAKERS = ("user", "assistant")  # not the system's instructions and the output of tools
TEXTS = ("text", "multimodal_text", "code")


def is_one(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("mapping"), dict)


def conversation(item: Json) -> Conversation:
    nodes: dict[str, Json] = {name: node for name, node in item["mapping"].items() if isinstance(node, dict)}
    shown = list(branch(nodes, item.get("current_node")))
    messages = [message for node in shown if (message := message_of(node))]
    others = sum(1 for node in nodes.values() if message_of(node)) - len(messages)
    name = str(item.get("conversation_id") or item.get("id") or identity(messages))  # exports of 2023 have no id
    metadata: Json = {"source": "chatgpt", "conversation": name}
    if others:
        metadata["messages_in_other_branches"] = others
    if model := item.get("default_model_slug"):
        metadata["model"] = str(model)
    title = str(item.get("title") or "") or first_line(messages)
    return Conversation(f"chatgpt/{name}", title, moment(item.get("create_time")), messages, metadata)


def branch(nodes: dict[str, Json], last: Any) -> Iterator[Json]:
    """The nodes from the root to the last one that is shown; without such a node, to the newest leaf."""
    if last not in nodes:
        leaves = [name for name, node in nodes.items() if not node.get("children")]
        last = max(leaves, key=lambda name: (nodes[name].get("message") or {}).get("create_time") or 0, default=None)
    path: list[Json] = []
    seen = set()
    while last in nodes and last not in seen:
        seen.add(last)
        path.append(nodes[last])
        last = nodes[last].get("parent")
    yield from reversed(path)


def message_of(node: Json) -> Message | None:
    """What a person saw at this node; None for instructions, tools and hidden messages."""
    message = node.get("message")
    if not isinstance(message, dict) or (message.get("metadata") or {}).get("is_visually_hidden_from_conversation"):
        return None
    if message.get("recipient") not in (None, "all"):  # what was said to a tool
        return None
    speaker = str((message.get("author") or {}).get("role"))
    content = message.get("content") or {}
    if speaker not in SPEAKERS or content.get("content_type") not in TEXTS:
        return None
    parts = content.get("parts") or [content.get("text") or ""]
    text = "\n\n".join(filter(None, (piece(part) for part in parts)))
    return Message(speaker, text, moment(message.get("create_time"))) if text.strip() else None


def piece(part: Any) -> str:
    """A part of a message: its text, the words of a recording, or a remark that something was attached."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        return ""
    return str(part.get("text") or f"[{str(part.get('content_type') or 'attachment').replace('_', ' ')}]")
