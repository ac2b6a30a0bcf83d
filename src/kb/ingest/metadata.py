"""Metadata as text that can be searched: one `name: value` a line."""

from collections.abc import Iterator
from typing import Any

from kb.core.types import Json

MAX_CHARACTERS = 2**16  # of all lines; as much as metadata may hold
MAX_DEPTH = 32
MAX_NAME = 200  # characters; the name of a deep value is its whole path


def metadata_text(metadata: Json, title: str) -> str:
    """The values with their names; empty when there are none. A value that became the title is left out."""
    lines: list[str] = []
    room = MAX_CHARACTERS
    for name, value in metadata.items():
        if name == "title" and value == title:
            continue
        for line in _lines(name, value, 1):
            room -= len(line) + 1
            if room < 0:
                return "\n".join([*lines, line[: len(line) + room]])
            lines.append(line)
    return "\n".join(lines)


def _lines(name: str, value: Any, depth: int) -> Iterator[str]:
    """Lists of plain values stay on one line; deeper values are named by their path."""
    items = value if isinstance(value, list) else [value]
    plain = ", ".join(text for item in items if (text := _plain(item)))
    if plain:
        yield f"{name[:MAX_NAME]}: {plain}"
    if depth == MAX_DEPTH:
        return
    for item in items:
        if isinstance(item, list):
            yield from _lines(name, item, depth + 1)
        elif isinstance(item, dict):
            for inner, held in item.items():
                yield from _lines(f"{name}.{inner}", held, depth + 1)


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip() if isinstance(value, str | int | float) else ""
