"""An export of mem0: a list of memories, or an object that holds one. Each memory becomes a note."""

from typing import Any, NamedTuple

from kb.cli.importing.conversation import moment
from kb.core.types import Json

HOLDERS = ("results", "memories", "data")
OWNERS = ("user_id", "agent_id", "app_id", "run_id")


class Memory(NamedTuple):
    source_path: str
    text: str
    tags: list[str]
    metadata: Json
    created_at: str | None


def memories(found: Any) -> list[Any] | None:
    """The memories of an export, as they stand there; None if it is none."""
    if isinstance(found, dict):
        found = next((found[name] for name in HOLDERS if isinstance(found.get(name), list)), None)
    return found if isinstance(found, list) and any(map(is_one, found)) else None


def is_one(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("memory"), str) and item.get("id") is not None


def memory(item: Json) -> Memory:
    metadata: Json = {"source": "mem0"}
    metadata |= {name: item[name] for name in OWNERS if item.get(name)}
    if isinstance(item.get("metadata"), dict):
        metadata |= item["metadata"]
    given = item.get("categories") or []
    categories = [str(category) for category in ([given] if isinstance(given, str) else given) if category]
    return Memory(f"mem0/{item['id']}", item["memory"], categories, metadata, moment(item.get("created_at")))
