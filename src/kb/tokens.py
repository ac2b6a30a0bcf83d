"""A text as the embedding model's tokenizer sees it.

Offsets are indices into the Python string that was given, whatever the script, and lengths are never cut: the
truncation and padding that a model's `tokenizer.json` may ask for are switched off. Long texts are encoded in
segments, which is several times faster and gives the same tokens. A tokenizer may be shared by threads, and
other threads run while it works.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from kb.errors import Unavailable

# Longer segments are slower per character; shorter ones gain nothing more.
SEGMENT_CHARACTERS = 10_000
LATEST = 16  # texts whose tokens are kept, in case somebody asks again

# A BERT tokenizer looks at nothing beyond a word, so a text may be cut between white space and a letter. Not all
# that Python calls white space is some to the tokenizer.
_CUT = re.compile(r"(?<=[ \t\r\n])(?=[^\W_])")

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """What a chunker needs to know about tokens, and what a model needs to be fed."""

    def __init__(self, path: Path) -> None:
        try:
            self._inner = tokenizers.Tokenizer.from_file(str(path))
        except Exception as wrong:  # the library knows no narrower one
            raise Unavailable(f"The tokenizer {path} cannot be read: {wrong}. Run `make setup` again.") from wrong
        self._inner.no_truncation()
        self._inner.no_padding()
        self._cuttable = _is_cuttable(self._inner)
        self._unknown = self._inner.token_to_id(getattr(self._inner.model, "unk_token", None) or "<unk>")
        # A question is looked at twice: by the model, and for how well the model knows its words.
        self._latest = lru_cache(maxsize=LATEST)(lambda text: self._encode([_text(text)])[0])
        self.specials: int = self._inner.num_special_tokens_to_add(False)  # what a model adds to every text

    def offsets(self, text: str) -> NDArray[np.int32]:
        """Start and end of every token, in characters of `text`, without special tokens: shape (n, 2).

        Starts and ends never fall. Tokens made of parts of one character (Hangul) share its offsets.
        """
        segments = list(self._segments(text))
        parts = []
        base = 0
        for segment, encoding in zip(segments, self._encode(segments), strict=True):
            flat = np.fromiter(chain.from_iterable(encoding.offsets), np.int32)
            parts.append(flat.reshape(-1, 2) + np.int32(base))
            base += len(segment)
        return np.concatenate(parts)

    def count(self, text: str) -> int:
        """Tokens of `text`, without special tokens."""
        batch = self._inner.encode_batch_fast(list(self._segments(text)), add_special_tokens=False)
        return sum(len(encoding) for encoding in batch)

    def letters_per_token(self, text: str) -> float:
        """How much of a word the vocabulary knows at once: about 4 in English, 1 in a script that it has to spell.

        0 for a text without letters. A word that it does not know at all counts as spelt.
        """
        letters = tokens = 0
        encoding = self._latest(text)
        for id_, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if own := sum(map(str.isalpha, text[start:end])):
                letters += own
                tokens += own if id_ == self._unknown else 1
        return letters / tokens if tokens else 0.0

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """What the model is fed for each text: whole, with special tokens."""
        return [encoding.ids for encoding in self._inner.encode_batch_fast([_text(text) for text in texts])]

    def windows(self, text: str, size: int) -> list[list[int]]:
        """What the model is fed for a text of any length: windows of at most `size` with special tokens."""
        whole = self._latest(text)
        if len(whole) + self.specials <= size:
            return [self._inner.post_process(whole).ids]
        (whole,) = self._encode([_text(text)])  # another one, since it is changed
        whole.truncate(size - self.specials)
        return [self._inner.post_process(window).ids for window in (whole, *whole.overflowing)]

    def _encode(self, texts: list[str]) -> list[tokenizers.Encoding]:
        # The batch call lets other threads run; encoding a single text would hold the interpreter's lock.
        return self._inner.encode_batch(texts, add_special_tokens=False)

    def _segments(self, text: str) -> Iterator[str]:
        """The text in pieces that can be encoded on their own; at least one, if only an empty one."""
        text = _text(text)
        start = 0
        while self._cuttable and len(text) - start > SEGMENT_CHARACTERS:
            cut = _CUT.search(text, start + SEGMENT_CHARACTERS)
            if cut is None:
                break
            yield text[start : cut.start()]
            start = cut.start()
        yield text[start:]


def _text(text: str) -> str:
    """Python strings may hold halves of surrogate pairs, which are not text; one character takes the place of one."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _is_cuttable(inner: tokenizers.Tokenizer) -> bool:
    """Only BERT's rules are known to look at nothing beyond white space."""
    if not isinstance(inner.normalizer, BertNormalizer) or not isinstance(inner.pre_tokenizer, BertPreTokenizer):
        return False
    added = inner.get_added_tokens_decoder().values()
    return not any(token.lstrip or token.rstrip or re.search(r"\s", token.content) for token in added)
