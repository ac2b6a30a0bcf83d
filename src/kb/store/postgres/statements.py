"""Shared SQL as psycopg takes it, and texts as PostgreSQL takes them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

# A literal, a cast, a parameter, or a percent sign, which psycopg would take for one.
TOKEN = re.compile(r"'(?:[^']|'')*'|::|:([A-Za-z_]\w*)|%")

# A text of PostgreSQL cannot hold the character NUL. The mark is no character that Unicode ever gives a meaning.
MARK = "\U0010fffe"
MARKED_NUL = f"{MARK}0"
MARKED_MARK = f"{MARK}1"


@lru_cache(maxsize=2048)
def translated(sql: str) -> str:
    """`:name` as `%(name)s`."""

    def replaced(found: re.Match[str]) -> str:
        if found[1]:
            return f"%({found[1]})s"
        return found[0].replace("%", "%%")

    return TOKEN.sub(replaced, sql)


def escaped(text: str) -> str:
    if "\0" not in text and MARK not in text:
        return text
    return text.replace(MARK, MARKED_MARK).replace("\0", MARKED_NUL)


def unescaped(text: str) -> str:
    return text.replace(MARKED_NUL, "\0").replace(MARKED_MARK, MARK) if MARK in text else text


def escaped_params(params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {name: escaped(value) if type(value) is str else value for name, value in (params or {}).items()}


def unescaped_rows(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows with their texts as they were given; nearly always the very same list."""
    for row in rows:
        for value in row:
            if type(value) is str and MARK in value:
                return [tuple(unescaped(one) if type(one) is str else one for one in row) for row in rows]
    return rows
