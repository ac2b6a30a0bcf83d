"""Offsets point into the text that was given, nothing is cut, and segments change nothing."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from kb.core.errors import Unavailable
from kb.core.settings import bundled_model_dir
from kb.embedding import tokenizer as tokens
from kb.embedding.tokenizer import Tokenizer

# Letters that change length when lowercased or decomposed, marks, astral characters, white space of all kinds,
# control characters, special tokens.
PIECES = [
    "a",
    "Straße",
    "İ",
    "é",
    "e\u0301",
    "\u0301",
    "😀",
    "👩‍👩‍👧",
    "𝒳",
    "中",
    "한",
    "각",
    "ﬁ",
    "ก็",
    "हिन्दी",
    "שָׁלוֹם",
]
PIECES += ["\u0301" * 5, "カ", "“", "。", "!!!", "[", "]", "[MA", "SK]", "y" * 40, "x" * 101]
PIECES += [" ", "\n", "\u00a0", "\u3000", "\u2028", "\x00", "\x1c", "\x85", "\ufffd", "\ud800", ".", "_", "[SEP]", "7"]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=40).map("".join)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(bundled_model_dir() / "tokenizer.json")


def whole(path: Path, text: str) -> list[tuple[int, int]]:
    """What the library says when it is given the text in one piece."""
    library = tokenizers.Tokenizer.from_file(str(path))
    library.no_truncation()
    library.no_padding()
    return list(library.encode(text.replace("\ud800", "\ufffd"), add_special_tokens=False).offsets)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Reset the password.", ["Reset", "the", "password", "."]),
        ("naïve crème", ["naïve", "cr", "ème"]),
        ("nai\u0308ve cre\u0300me", ["nai\u0308ve", "cr", "e\u0300me"]),
        ("😀 after 👩‍👩‍👧 all", ["😀", "after", "👩‍👩‍👧", "all"]),
        ("𝒳 is 𝟜 here", ["𝒳", "is", "𝟜", "here"]),
        ("東京 tower", ["東", "京", "tower"]),
        ("각 one", ["각", "각", "각", "one"]),
        ("İstanbul\u0000 x", ["İstanbul", "x"]),
        ("half \ud83d pair", ["half", "pair"]),
        ("[CLS] is text", ["[CLS]", "is", "text"]),
        (" \n\t ", []),
        ("", []),
    ],
)
def test_offsets_are_indices_into_the_text_that_was_given(tokenizer: Tokenizer, text: str, pieces: list[str]) -> None:
    offsets = tokenizer.offsets(text)
    assert [text[start:end] for start, end in offsets] == pieces
    assert offsets.dtype == np.int32
    assert offsets.shape == (len(pieces), 2)


@given(text=texts)
def test_starts_and_ends_never_fall_and_stay_within_the_text(tokenizer: Tokenizer, text: str) -> None:
    offsets = tokenizer.offsets(text)
    assert (offsets[:, 0] < offsets[:, 1]).all()
    assert (np.diff(offsets, axis=0) >= 0).all()
    assert offsets.max(initial=0) <= len(text)
    assert tokenizer.count(text) == len(offsets)


def test_nothing_is_cut_or_padded(tokenizer: Tokenizer) -> None:
    assert tokenizer.count("one") == 1
    assert tokenizer.count("word " * 1000) == 1000
    assert [len(ids) for ids in tokenizer.ids(["word " * 1000, "one", ""])] == [1002, 3, 2]


@given(text=texts, characters=st.sampled_from([3, 5, 17, 50]))
def test_segments_give_the_same_tokens(tokenizer: Tokenizer, text: str, characters: int) -> None:
    """However small they are, and wherever they end: between words, in a word, in a special token."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "SEGMENT_CHARACTERS", characters)
        in_segments = tokenizer.offsets(text).tolist()
    assert in_segments == tokenizer.offsets(text).tolist()


@pytest.mark.parametrize("unit", [".", "!?", "a", "字", "한", "a\u0301", "[SEP]", "[SE", "“”", "x" * 99 + "-"])
def test_text_without_white_space_gives_the_same_tokens_as_in_one_piece(tokenizer: Tokenizer, unit: str) -> None:
    text = f"a {unit * (100_000 // len(unit))}b {unit}"
    assert tokenizer.offsets(text).tolist() == [
        list(pair) for pair in whole(bundled_model_dir() / "tokenizer.json", text)
    ]


def test_a_megabyte_gives_the_same_tokens_as_in_one_piece(tokenizer: Tokenizer) -> None:
    text = (
        "The café at 7 Rue de l’Été — 東京タワー, 각각 — opened in 1998.\n\n\tIt’s 😀 inside; e\u0301t cetera.\n"
        * 13_000
    )
    assert len(text) > 2**20
    offsets = tokenizer.offsets(text)
    expected = whole(bundled_model_dir() / "tokenizer.json", text)
    assert np.array_equal(offsets, np.array(expected, np.int32))
    assert tokenizer.count(text) == len(expected)


@pytest.mark.parametrize("character", ["字", "a", "😀", " ", "\u0301", "[SEP]"])
def test_a_megabyte_without_a_place_to_cut_is_safe(tokenizer: Tokenizer, character: str) -> None:
    text = character * 2**18
    assert tokenizer.count(text) == len(tokenizer.offsets(text))


def test_other_tokenizers_see_the_text_in_one_piece(tmp_path: Path) -> None:
    """Most glue a space to the word that follows: cutting there would change the tokens."""
    other = tokenizers.Tokenizer(tokenizers.models.WordLevel({"▁word": 0, "word": 1, "?": 2}, unk_token="?"))
    other.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    other.save(str(tmp_path / "tokenizer.json"))
    text = "word " * 5000
    offsets = Tokenizer(tmp_path / "tokenizer.json").offsets(text)
    assert offsets.tolist() == [list(pair) for pair in whole(tmp_path / "tokenizer.json", text)]


@pytest.mark.parametrize("count", [0, 1, 254, 255, 1000])
def test_windows_hold_every_token_once_between_special_tokens(tokenizer: Tokenizer, count: int) -> None:
    text = " ".join(f"w{number}" for number in range(count))
    (ids,) = tokenizer.ids([text])
    windows = tokenizer.windows(text, tokenizer.encode(text), 256)
    assert all(len(window) <= 256 for window in windows)
    assert all((window[0], window[-1]) == (ids[0], ids[-1]) for window in windows)
    assert [token for window in windows for token in window[1:-1]] == ids[1:-1]


def test_threads_may_share_a_tokenizer(tokenizer: Tokenizer) -> None:
    given_texts = [f"text {number} " * number for number in range(1, 200)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(tokenizer.count, given_texts))
    assert found == [tokenizer.count(text) for text in given_texts]


def test_a_broken_tokenizer_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "tokenizer.json"
    broken.write_text("{}")
    with pytest.raises(Unavailable, match=r"tokenizer\.json cannot be read.*make setup"):
        Tokenizer(broken)


@pytest.mark.parametrize("text", ["how herons hunt", "herons hunt " * 300])
def test_looking_at_a_text_again_changes_nothing(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    first = (tokenizer.letters_per_token(text, tokens), tokenizer.windows(text, tokens, 64))
    assert (tokenizer.letters_per_token(text, tokens), tokenizer.windows(text, tokens, 64)) == first
