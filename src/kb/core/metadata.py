"""How much metadata a document may have: 32 levels and 64 KB.

More than that is refused in a request, and cut if a file says it of itself. Larger metadata from an older version is
not shown: a short remark takes its place, so that lists and searches stay small.
"""

import json
from typing import Any

from kb.core.sizes import readable_size
from kb.core.types import Json

MAX_DEPTH = 32  # an object or list inside another is one level more
MAX_BYTES = 64 * 2**10  # as compact JSON in UTF-8
OMITTED = "_omitted"  # the name of the remark


def excess(metadata: Json) -> str | None:
    """A message about metadata beyond the limits; None if it is within them."""
    if is_deep(metadata):
        return f"The metadata is nested more than {MAX_DEPTH} levels deep. Flatten it, or put it into the text."
    if (size := size_of(metadata)) > MAX_BYTES:
        return (
            f"The metadata is larger than {MAX_BYTES // 2**10} KB as JSON, by {readable_size(size - MAX_BYTES)}. "
            "Shorten it, or put it into the text."
        )
    return None


def is_deep(metadata: Json) -> bool:
    """Whether it has too many levels; without recursion, whose depth Python limits."""
    level: list[Any] = [metadata]
    for _ in range(MAX_DEPTH):
        inner = (value for held in level for value in (held.values() if isinstance(held, dict) else held))
        level = [value for value in inner if isinstance(value, dict | list)]
        if not level:
            return False
    return True


def size_of(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))


def fitted(metadata: Json, most: int = MAX_BYTES) -> Json:
    """The metadata that fits, in order, and a remark that names what is left out."""
    kept: Json = {}
    left_out: list[str] = []
    room = most - len(remark(["x" * 200])[OMITTED]) - 20
    for name, value in metadata.items():
        size = most if isinstance(value, dict | list) and is_deep({name: value}) else size_of({name: value})
        if size <= room:
            kept[name] = value
            room -= size
        else:
            left_out.append(name)
    return kept | remark(left_out) if left_out else metadata


def remark(names: list[str]) -> Json:
    shown = ", ".join(name[:40] for name in names[:4]) + ("" if len(names) <= 4 else f" and {len(names) - 4} more")
    return {OMITTED: f"Left out, since it is too large: {shown}"}


def read(stored: str) -> Json | None:
    """Metadata as it is stored; None when it is beyond what may be stored today."""
    try:
        metadata: Json = json.loads(stored)
    except RecursionError:
        return None
    is_small = len(stored) <= MAX_BYTES and stored.count("{") + stored.count("[") <= MAX_DEPTH
    return metadata if is_small or excess(metadata) is None else None


def shown(stored: str) -> Json:
    """Metadata as it is stored; a remark instead when it is beyond what may be stored today."""
    if stored == "{}":
        return {}
    if (metadata := read(stored)) is not None:
        return metadata
    return {
        OMITTED: f"{len(stored):,} characters of metadata are not shown: they are nested more than {MAX_DEPTH} levels "
        f"deep or have more than {MAX_BYTES // 2**10} KB. `kb doctor` names the document."
    }
