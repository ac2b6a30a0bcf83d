"""A text that is put right with notes of where it comes from is the text that is put right without."""

import random

from kb.ingest.extract.pdf import CUT_WORD
from kb.ingest.extract.tidy import tidy
from kb.ingest.extract.traced import NOWHERE, Traced, joined, tidied

ODD = "ab \t\n\r\v\f\x00\x07\x1c\x85\u00a0\u00ad\u200b\u2028\ufb01\ufb03\ufeff\ufffe\U0001f9a2"


def test_it_is_the_text_that_extraction_makes_and_each_letter_knows_its_place() -> None:
    chance = random.Random(7)
    for _ in range(3000):
        text = "".join(chance.choices(ODD, k=chance.randrange(40)))
        made = tidied(Traced(text, range(len(text))).sub(CUT_WORD, ""))
        assert made.text == tidy(CUT_WORD.sub("", text)), ascii(text)
        assert list(made.origins) == sorted(made.origins)
        letters = [(c, origin) for c, origin in zip(made.text, made.origins, strict=True) if c in "ab\U0001f9a2"]
        assert all(text[origin] == letter for letter, origin in letters)


def test_what_joins_texts_stands_nowhere() -> None:
    made = joined("--", [Traced.of("ab", 4), Traced.of("c")])
    assert (made.text, list(made.origins)) == ("ab--c", [4, 4, NOWHERE, NOWHERE, NOWHERE])
