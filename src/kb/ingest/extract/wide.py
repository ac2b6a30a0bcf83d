"""UTF-16 and UTF-32 without a byte order mark: recognised by what their bytes say about each other.

The engine uses this too, when it asks whether a file is text at all: it takes the standard library only.
"""

import codecs
import math
import unicodedata
from collections import Counter

SAMPLE = 16384  # bytes that are looked at
STRAY = 0.002  # characters of text that may be unknown here: newer than this Python's Unicode, or of private use
NO_TEXT = frozenset(("Cn", "Co", "Cs"))
CONTROLS = frozenset("\b\t\n\f\r\x1b")
# Any two bytes are likely to be some letter of Asia. Text also has characters that every text has, or one alphabet.
COMMON = frozenset(" \n\u3000\u3001\u3002\uff0c\uff0e\uff01\uff1f\uff1a")
ONE_ALPHABET = 0.75  # of the characters, which then share their upper byte


def wide_encoding(data: bytes) -> str | None:
    """The encoding of text whose characters take two or four bytes each, or None."""
    sample = data[:SAMPLE]
    if len(sample) < 4:
        return None
    if len(data) % 4 == 0:
        for encoding, highest in (("utf-32-le", 3), ("utf-32-be", 0)):
            if not any(sample[highest::4]) and spells_text(sample, encoding):
                return encoding
    if len(data) % 2:
        return None
    # The upper bytes of neighbouring characters are alike, the lower ones are not: that tells which comes first.
    big, little = entropy(sample[0::2]), entropy(sample[1::2])
    order = ("utf-16-be", "utf-16-le") if big < little else ("utf-16-le", "utf-16-be")
    return next((encoding for encoding in order if spells_text(sample, encoding)), None)


def spells_text(sample: bytes, encoding: str) -> bool:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    kinds = Counter(unicodedata.category(character) for character in text)
    if any(unicodedata.category(character) == "Cc" and character not in CONTROLS for character in set(text)):
        return False
    alphabet = max(Counter(ord(character) >> 8 for character in text).values())
    if COMMON.isdisjoint(text) and alphabet < ONE_ALPHABET * len(text):
        return False
    letters = sum(count for kind, count in kinds.items() if kind[0] in "LMNZP")
    return sum(kinds[kind] for kind in NO_TEXT) <= STRAY * len(text) and letters > len(text) / 2


def entropy(data: bytes) -> float:
    counts = Counter(data)
    return -sum(count / len(data) * math.log2(count / len(data)) for count in counts.values())
