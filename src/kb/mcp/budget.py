"""Answers that fit into an agent's context: clients cut, or refuse, what is over some 25,000 tokens."""

import json
from typing import Any

from kb.nouns import Json

# Bytes of a search answer by default. Three bytes or more make a token in any script: under 14,000 tokens.
SEARCH_BYTES = 40_000


def compact(answer: Any) -> str:
    """JSON without a space too many."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def fitting(results: list[Json], room: int = SEARCH_BYTES) -> list[Json]:
    """As many of the results as there is room for, the first in any case."""
    kept: list[Json] = []
    for result in results:
        room -= len(compact(result).encode())
        if room < 0 and kept:
            break
        kept.append(result)
    return kept


def estimated_tokens(text: str) -> int:
    """Roughly, and rather too many: the server has no tokenizer."""
    return len(text.encode()) // 3 + 1
