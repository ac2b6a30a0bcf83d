"""Answers that fit into an agent's context: clients cut, or refuse, what is over some 25,000 tokens."""

import json
from typing import Any

from kb.nouns import Json

# Bytes of a search answer by default. Three bytes or more make a token in any script: under 14,000 tokens.
SEARCH_BYTES = 40_000


def compact(answer: Any) -> str:
    """JSON without a space too many."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


def size(value: Any) -> int:
    return len(compact(value).encode())


def shortened(answer: Json, results: str = "results") -> tuple[list[Json], int]:
    """As many of the results as fit by default, the first in any case; and how many were left out."""
    kept: list[Json] = []
    room = SEARCH_BYTES
    for result in answer[results]:
        room -= size(result)
        if room < 0 and kept:
            break
        kept.append(result)
    return kept, len(answer[results]) - len(kept)


def estimated_tokens(text: str) -> int:
    """Roughly, and rather too many: the server has no tokenizer."""
    return len(text.encode()) // 3 + 1
