"""Vectors of words of a hundred languages: a text's vector is the mean of those of its pieces.

No model runs: the pieces of a text are looked up in a table (potion-multilingual-128M, reduced to 118,948 pieces and
128 dimensions). That tells far less than the embedding model where that one reads the language, but it reads all of
them alike, so a question finds documents in another language. Figures: docs/decisions/029.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from kb.embedding.description import MULTILINGUAL
from kb.embedding.tokenizer import without_surrogates

VECTORS, PIECES = MULTILINGUAL.files
DIMENSIONS = MULTILINGUAL.dimensions
UNKNOWN = 1  # the rows below are no pieces: padding, and what is not known

StaticVectors = NDArray[np.int8]  # of unit vectors, scaled so that the largest component is 127


class StaticEmbedder:
    """Reads its table when it is first needed: a third of a second, and 60 MB."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._reading = Lock()

    @property
    def is_installed(self) -> bool:
        return all((self._folder / name).is_file() for name in (VECTORS, PIECES))

    def embed(self, texts: Sequence[str]) -> StaticVectors:
        """The vector of each passage; zeros for one without any known piece."""
        means = self._means(texts)
        largest = np.abs(means).max(axis=1, keepdims=True)
        scaled: StaticVectors = np.rint(means * (127 / np.maximum(largest, np.float32(1e-9)))).astype(np.int8)
        return scaled

    def embed_query(self, text: str) -> NDArray[np.float32]:
        """The unit vector of a question."""
        (mean,) = self._means([text])
        unit: NDArray[np.float32] = mean / np.maximum(np.linalg.norm(mean), np.float32(1e-9))
        return unit

    def _means(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The sum of the pieces' vectors of each text: of the same direction as their mean."""
        with self._reading:
            tokenizer, table = self._tokenizer, self._table
        sums = np.zeros((len(texts), DIMENSIONS), np.float32)
        for row, encoding in enumerate(tokenizer.encode_batch_fast([*map(without_surrogates, texts)])):
            ids = np.array(encoding.ids, np.int64)
            sums[row] = table[ids[ids > UNKNOWN]].sum(axis=0, dtype=np.float32)
        return sums

    @cached_property
    def _table(self) -> NDArray[np.float16]:
        table: NDArray[np.float16] = np.load(self._folder / VECTORS, mmap_mode="r", allow_pickle=False)
        return table

    @cached_property
    def _tokenizer(self) -> Any:
        """Cuts each word into the longest known pieces, from its beginning. The table's own tokenizer weighs them."""
        pieces = (self._folder / PIECES).read_text(encoding="utf-8").split("\n")
        known = {piece: at for at, piece in enumerate(pieces)}
        tokenizer = Tokenizer(models.WordPiece(known, unk_token=pieces[UNKNOWN], continuing_subword_prefix=""))
        tokenizer.normalizer = normalizers.NFKC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                # In a script without spaces a word has no end, and the time grows with the square of its length.
                pre_tokenizers.Split(Regex(r"\w{1,64}|[^\w\s]{1,64}"), "removed", invert=True),
                pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
            ]
        )
        return tokenizer
