"""Answers that fit into an agent's context: clients cut, or refuse, what is over some 25,000 tokens."""

import json
from typing import Any

from kb.core.metadata import fitted
from kb.core.types import Json

# Bytes of a search answer by default. Three bytes or more make a token in any script: under 14,000 tokens.
SEARCH_BYTES = 40_000
BYTES_PER_TOKEN = 3


def compact(answer: Any) -> str:
    """JSON without optional spaces."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def fitting(results: list[Json], room: int = SEARCH_BYTES) -> list[Json]:
    """The results that fit into `room` bytes, at least the first; metadata that is too large for it is cut."""
    kept: list[Json] = []
    for result in results:
        size = len(compact(result).encode())
        if size > room and not kept and "metadata" in result:
            result = result | {"metadata": fitted(result["metadata"], room // 4)}  # noqa: PLW2901
        room -= size
        if room < 0 and kept:
            break
        kept.append(result)
    return kept


def estimated_tokens(text: str) -> int:
    """An upper estimate: the server has no tokenizer."""
    return len(text.encode()) // BYTES_PER_TOKEN + 1
