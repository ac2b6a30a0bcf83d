"""Characters that people do not see and programs read.

Unicode tags repeat ASCII invisibly, so that a text can hold a second one. Controls of direction can show a text in
another order than a program reads it in.
"""

import re
from typing import Any

# The flags of England, Scotland and Wales are written with tags, and with nothing else in common use.
FLAGS = "|".join(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f"
    for region in ("gbeng", "gbsct", "gbwls")
)
TAG = "[\U000e0000-\U000e007f]"
DIRECTION = "[\u202a-\u202e\u2066-\u2069]"
TAGS = re.compile(TAG)
INVISIBLE = re.compile(f"(?P<flag>{FLAGS})|{TAG}|{DIRECTION}")


def tag_characters(text: str) -> int:
    """How many characters of a text are tags; those of flags do not count."""
    if text.isascii() or not TAGS.search(text):
        return 0
    return sum(1 for found in INVISIBLE.finditer(text) if found["flag"] is None and found[0] >= "\U000e0000")


def plain(value: Any) -> Any:
    """JSON data without tags and controls of direction, in all its texts."""
    if isinstance(value, str):
        return value if value.isascii() else INVISIBLE.sub(lambda found: found["flag"] or "", value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    return value
