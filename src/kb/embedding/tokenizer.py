"""A text as the embedding model's tokenizer sees it.

Offsets are indices into the Python string that was given, whatever the script, and lengths are never cut: the
truncation and padding that a model's `tokenizer.json` may ask for are switched off. Long texts are encoded in
segments, which is several times faster, gives the same tokens and takes the same memory for any length: a token takes
540 bytes while it is being encoded. A tokenizer may be shared by threads, and other threads run while it works.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from itertools import chain, islice, pairwise
from pathlib import Path

import numpy as np
import tokenizers
from numpy.typing import NDArray
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

from kb.core.arrays import starts_of
from kb.core.errors import Unavailable

# Longer segments are slower per character; shorter ones gain nothing more.
SEGMENT_CHARACTERS = 10_000
BATCH_SEGMENTS = 16  # that are encoded at a time
# Of a text whose tokenizer is not known to allow cuts: rather a token too many than any amount of memory.
UNCUT_CHARACTERS = 2**20

# A BERT tokenizer looks at nothing beyond a word, so a text may be cut between white space and a letter. Not all
# that Python calls white space is some to the tokenizer.
_CUT = re.compile(r"(?<=[ \t\r\n])(?=[^\W_])")

Tokens = tokenizers.Encoding

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
        # The batch call lets other threads run; encoding a single text would hold the interpreter's lock.
        self._encode = partial(self._inner.encode_batch, add_special_tokens=False)
        self._cuttable = _is_cuttable(self._inner)
        # A word of more characters is one unknown token.
        self._longest_word: int = getattr(self._inner.model, "max_input_chars_per_word", 0)
        added = self._inner.get_added_tokens_decoder().values()
        self._longest_added = max((len(token.content) for token in added), default=0)
        self._unknown = self._inner.token_to_id(getattr(self._inner.model, "unk_token", None) or "<unk>")
        self.specials: int = self._inner.num_special_tokens_to_add(False)  # what a model adds to every text

    def offsets(self, text: str) -> NDArray[np.int32]:
        """Start and end of every token, in characters of `text`, without special tokens: shape (n, 2).

        Starts and ends never fall. Tokens made of parts of one character (Hangul) share its offsets.
        """
        return np.concatenate([np.empty((0, 2), np.int32), *self.offsets_by_batch(text)])

    def offsets_by_batch(self, text: str) -> Iterator[NDArray[np.int32]]:
        """The same, some at a time: each batch is of a few hundred thousand characters at most."""
        start = 0
        while start < len(text):
            cuts = self._cuts(text, start)
            if len(cuts) > 1:
                yield from self._segments(text, cuts)
                start = cuts[-1]
            else:
                start = yield from self._unspaced(text, start)

    def count(self, text: str) -> int:
        """Tokens of `text`, without special tokens."""
        if len(text) > SEGMENT_CHARACTERS:
            return sum(map(len, self.offsets_by_batch(text)))
        return len(self._inner.encode_batch_fast([_text(text)], add_special_tokens=False)[0])

    def encode(self, text: str) -> Tokens:
        """The tokens of a text, without special tokens, for `letters_per_token` and `windows`."""
        return self._encode([_text(text)])[0]

    def letters_per_token(self, text: str, tokens: Tokens) -> float:
        """How much of a word the vocabulary knows at once: about 4 in English, 1 in a script that it has to spell.

        0 for a text without letters. A word that it does not know at all counts as spelt.
        """
        letters = counted = 0
        for id_, (start, end) in zip(tokens.ids, tokens.offsets, strict=True):
            if own := sum(map(str.isalpha, text[start:end])):
                letters += own
                counted += own if id_ == self._unknown else 1
        return letters / counted if counted else 0.0

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """What the model is fed for each text: whole, with special tokens."""
        return [encoding.ids for encoding in self._inner.encode_batch_fast([_text(text) for text in texts])]

    def windows(self, text: str, tokens: Tokens, size: int) -> list[list[int]]:
        """What the model is fed for a text of any length: windows of at most `size` with special tokens."""
        if len(tokens) + self.specials <= size:
            return [self._inner.post_process(tokens).ids]
        whole = self.encode(text)  # a copy, since it is truncated
        whole.truncate(size - self.specials)
        return [self._inner.post_process(window).ids for window in (whole, *whole.overflowing)]

    def _cuts(self, text: str, start: int) -> list[int]:
        """Edges of the segments that come next; only `start` when white space is too far away."""
        if not self._cuttable:
            return [start, *_uncut(text, start)]
        cuts = [start]
        while len(cuts) <= BATCH_SEGMENTS and cuts[-1] < len(text):
            at = cuts[-1] + SEGMENT_CHARACTERS
            if at >= len(text):
                cuts.append(len(text))
            elif cut := _CUT.search(text, at, at + SEGMENT_CHARACTERS):
                cuts.append(cut.start())
            else:
                break
        return cuts

    def _segments(self, text: str, cuts: list[int]) -> Iterator[NDArray[np.int32]]:
        segments = [_text(text[start:end]) for start, end in pairwise(cuts)]
        for base, encoding in zip(cuts, self._encode(segments), strict=False):
            yield _flat(encoding.offsets) + np.int32(base)

    def _unspaced(self, text: str, start: int) -> Generator[NDArray[np.int32], None, int]:
        """Encode a stretch without white space, in windows; return where it is safe to go on.

        The tokenizer itself tells where words begin. A word that is still open where a window ends is put before the
        next window, as far as it counts: what the normalizer drops (accents) is left out, and of a word that is too
        long to be known, its beginning is enough.
        """
        opened, places = "", np.empty(0, np.int32)  # the open word, and where its characters stand in the text
        while True:
            end = min(start + 2 * SEGMENT_CHARACTERS, len(text))
            window = opened + _text(text[start:end])
            places = np.concatenate((places, np.arange(start, end, dtype=np.int32)))
            (encoding,) = self._encode([window])
            offsets = _flat(encoding.offsets)
            in_text = np.stack((places[offsets[:, 0]], places[offsets[:, 1] - 1] + 1), axis=1)
            words = starts_of(np.array(encoding.word_ids, np.int32))  # the first token of each
            if end == len(text) or not len(words):
                yield in_text
                return end
            # A special token that the window cuts begins nearer to its end than this.
            late = words[offsets[words, 0] > len(window) - self._longest_added]
            if len(late):
                yield in_text[: late[0]]
                return int(in_text[late[0], 0])
            last, at = int(words[-1]), int(offsets[words[-1], 0])
            if last > 0 and len(window) - at <= SEGMENT_CHARACTERS:
                yield in_text[:last]
                return int(in_text[last, 0])
            rest = self._normalized(window[at:])
            if " " in rest:  # white space follows the word
                yield in_text
                return end
            yield in_text[:last]
            kept = self._kept(window, at, min(len(rest), self._longest_word + 1))
            opened, places, start = "".join(window[index] for index in kept), places[kept], end

    def _kept(self, window: str, at: int, characters: int) -> list[int]:
        """Which of the characters from `at` make up so many of the normalized text; and the last, where it ends."""
        kept: list[int] = []
        while characters > 0:
            if grown := len(self._normalized(window[at])):
                kept.append(at)
                characters -= grown
            at += 1
        later = (index for index in range(len(window) - 1, at - 1, -1) if self._normalized(window[index]))
        return [*kept, *islice(later, 1)]

    def _normalized(self, text: str) -> str:
        return str(self._inner.normalizer.normalize_str(text)) if self._inner.normalizer else text


def _flat(offsets: list[tuple[int, int]]) -> NDArray[np.int32]:
    return np.fromiter(chain.from_iterable(offsets), np.int32).reshape(-1, 2)


def _uncut(text: str, start: int) -> Iterator[int]:
    """Where the next piece ends of a text that is better not cut."""
    at = start + UNCUT_CHARACTERS
    if at >= len(text):
        yield len(text)
    else:
        cut = _CUT.search(text, at, at + UNCUT_CHARACTERS)
        yield cut.start() if cut else at


def _text(text: str) -> str:
    """Python strings may hold halves of surrogate pairs, which are not text; one character takes the place of one."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _is_cuttable(inner: tokenizers.Tokenizer) -> bool:
    """Only BERT's rules are known to look at nothing beyond a word."""
    kinds = ((inner.normalizer, BertNormalizer), (inner.pre_tokenizer, BertPreTokenizer), (inner.model, WordPiece))
    if not all(isinstance(part, kind) for part, kind in kinds):
        return False
    added = inner.get_added_tokens_decoder().values()
    return not any(token.lstrip or token.rstrip or re.search(r"\s", token.content) for token in added)
