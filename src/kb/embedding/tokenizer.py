"""Tokens of a text, by the embedding model's tokenizer.

Offsets are indices into the given Python string, in any script. Nothing is truncated or padded, whatever the model's
`tokenizer.json` says. Long texts are encoded in segments: that is several times faster, gives the same tokens, and
bounds the memory (a token takes 540 bytes while it is encoded). Threads may share a tokenizer, and run while it works.
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
# For a tokenizer that is not known to allow cuts: a wrong token at a cut is better than unbounded memory.
UNCUT_CHARACTERS = 2**20

# A BERT tokenizer looks at single words, so a text may be cut between white space and a letter. The tokenizer knows
# fewer kinds of white space than Python.
_CUT = re.compile(r"(?<=[ \t\r\n])(?=[^\W_])")

Tokens = tokenizers.Encoding

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """Offsets of tokens for the chunker, and token ids for the model."""

    def __init__(self, path: Path) -> None:
        try:
            self._inner = tokenizers.Tokenizer.from_file(str(path))
        except Exception as wrong:  # the library raises nothing narrower
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
        self.specials: int = self._inner.num_special_tokens_to_add(False)  # special tokens added to every text

    def offsets(self, text: str) -> NDArray[np.int32]:
        """Start and end of every token, in characters of `text`, without special tokens: shape (n, 2).

        Starts and ends never fall. Tokens made of parts of one character (Hangul) share its offsets.
        """
        return np.concatenate([np.empty((0, 2), np.int32), *self.offsets_by_batch(text)])

    def offsets_by_batch(self, text: str) -> Iterator[NDArray[np.int32]]:
        """The same in batches of a few hundred thousand characters at most."""
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
        return len(self._inner.encode_batch_fast([without_surrogates(text)], add_special_tokens=False)[0])

    def encode(self, text: str) -> Tokens:
        """The tokens of a text, without special tokens, for `letters_per_token` and `windows`."""
        return self._encode([without_surrogates(text)])[0]

    def letters_per_token(self, text: str, tokens: Tokens) -> float:
        """Mean letters per token: about 4 in English, 1 in a script whose words the vocabulary does not know.

        0 for a text without letters. Each letter of an unknown token counts as a token.
        """
        letters = counted = 0
        for id_, (start, end) in zip(tokens.ids, tokens.offsets, strict=True):
            if own := sum(map(str.isalpha, text[start:end])):
                letters += own
                counted += own if id_ == self._unknown else 1
        return letters / counted if counted else 0.0

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each whole text, with special tokens."""
        return [
            encoding.ids for encoding in self._inner.encode_batch_fast([without_surrogates(text) for text in texts])
        ]

    def windows(self, text: str, tokens: Tokens, size: int) -> list[list[int]]:
        """Token ids of a text of any length, in windows of at most `size` with special tokens."""
        if len(tokens) + self.specials <= size:
            return [self._inner.post_process(tokens).ids]
        whole = self.encode(text)  # not `tokens`, since it is truncated in place
        whole.truncate(size - self.specials)
        return [self._inner.post_process(window).ids for window in (whole, *whole.overflowing)]

    def _cuts(self, text: str, start: int) -> list[int]:
        """Edges of the next segments; only `start` if white space is too far away."""
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
        segments = [without_surrogates(text[start:end]) for start, end in pairwise(cuts)]
        for base, encoding in zip(cuts, self._encode(segments), strict=False):
            yield _flat(encoding.offsets) + np.int32(base)

    def _unspaced(self, text: str, start: int) -> Generator[NDArray[np.int32], None, int]:
        """Encode a stretch without white space, in windows; return the position at which to go on.

        The tokenizer itself tells where words begin. A word that continues beyond a window is put in front of the next
        window, without the characters that the normalizer drops (accents). Of a word that is too long for the
        vocabulary, its beginning is enough.
        """
        opened, places = "", np.empty(0, np.int32)  # the open word, and where its characters stand in the text
        while True:
            end = min(start + 2 * SEGMENT_CHARACTERS, len(text))
            window = opened + without_surrogates(text[start:end])
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
        """Positions of the characters from `at` that give this many normalized ones, and of the last that gives any."""
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
    """End of the next segment for a tokenizer that is not known to allow cuts."""
    at = start + UNCUT_CHARACTERS
    if at >= len(text):
        yield len(text)
    else:
        cut = _CUT.search(text, at, at + UNCUT_CHARACTERS)
        yield cut.start() if cut else at


def without_surrogates(text: str) -> str:
    """Replace lone surrogates, which a Python string may hold but which are no text, one for one."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _is_cuttable(inner: tokenizers.Tokenizer) -> bool:
    """Whether it has BERT's rules, which look at single words."""
    kinds = ((inner.normalizer, BertNormalizer), (inner.pre_tokenizer, BertPreTokenizer), (inner.model, WordPiece))
    if not all(isinstance(part, kind) for part, kind in kinds):
        return False
    added = inner.get_added_tokens_decoder().values()
    return not any(token.lstrip or token.rstrip or re.search(r"\s", token.content) for token in added)
