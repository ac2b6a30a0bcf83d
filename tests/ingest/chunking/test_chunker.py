"""How texts are cut into passages: what always holds, then the rules one by one."""

import hashlib
import random
import time
from itertools import pairwise
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.core.settings import bundled_model_dir
from kb.embedding.tokenizer import Tokenizer
from kb.ingest.chunking.breaks import breaks, text_layout
from kb.ingest.chunking.chunker import VERSION, Kind, Slice, chunk, context, fit_context

KINDS: tuple[Kind, ...] = get_args(Kind)
MEGABYTE = 1_000_000

TOKENIZER = Tokenizer(bundled_model_dir() / "tokenizer.json")


def passages(text: str, kind: Kind = "markdown", budget: int = 200) -> list[str]:
    return [text[p.start : p.end] for p in chunk(text, kind, TOKENIZER, budget)]


def headings(text: str, budget: int = 200) -> list[str | None]:
    return [p.heading for p in chunk(text, "markdown", TOKENIZER, budget)]


def words(count: int, word: str = "word") -> str:
    return " ".join([word] * count)


def assert_sound(text: str, found: list[Slice], budget: int) -> None:
    assert [p.index for p in found] == list(range(len(found)))
    edges = [0, *(edge for p in found for edge in (p.start, p.end)), len(text)]
    assert all(before <= after for before, after in pairwise(edges))
    for p in found:
        piece = text[p.start : p.end]
        assert piece == piece.strip() != ""
        assert TOKENIZER.count(piece) <= budget or len(piece) == 1
        assert len(piece) <= 8 * budget
    gaps = zip(edges[::2], edges[1::2], strict=True)
    assert not any(text[start:end].strip() for start, end in gaps)


SNIPPETS = st.sampled_from(
    [
        "# ", "## ", "### ", "\n", "\n\n", "\r\n", "\r", "\u2028", "\f", "```\n", "~~~", "- ", "1. ", "| a | b |\n",
        "|---|---|\n", "===\n", "---\n", "> ", "    ", "\t", "word ", "Sentence one. ", "e.g. ", "3.14 ", "猫。",
        "한국어", "ภาษาไทย", "\0", "\x1c", "\x85", "x" * 120, "a\u0301", "👍🏽", "\ud800", "don't ", "def f():\n",
    ]
)  # fmt: skip
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
ANY_DOCUMENT = st.lists(SNIPPETS | ANY_TEXT, max_size=80).map("".join)


@given(ANY_DOCUMENT, st.sampled_from(KINDS), st.sampled_from([8, 20, 64, 200]))
@settings(max_examples=300, deadline=None)
def test_any_text_is_cut_without_loss_overlap_or_excess(text: str, kind: Kind, budget: int) -> None:
    assert_sound(text, list(chunk(text, kind, TOKENIZER, budget)), budget)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "unit",
    [
        "a", "0123456789abcdef", "lorem ipsum ", "a\n", "a\r", "# a\n", "# a\n\nb\n\n", "a\n---\n", "- a\n", "| a |\n",
        "|-", "```\n", "```\nx\n```\n", "`", "#", "[x](", ".", ". ", '."', "e.g. ", "猫。", "한국어", "ภาษาไทย", "\0",
        "\ud800", "\n", " ", "-", "a\u0301", "\u0301", "---\na: b\n",
    ],
)  # fmt: skip
def test_hostile_text_is_cut_in_linear_time(kind: Kind, unit: str) -> None:
    def seconds(characters: int) -> float:
        text = "---\na: b\n" + unit * (characters // len(unit)) + " end"
        started = time.process_time()
        found = list(chunk(text, kind, TOKENIZER, 200))
        taken = time.process_time() - started
        if characters < 10_000:
            assert_sound(text, found, 200)
        return taken

    assert seconds(64_000) < max(0.05, seconds(8_000)) * 30


def test_a_megabyte_without_spaces_is_cut() -> None:
    noise = random.Random(1)
    text = "".join(noise.choices("ABCDEFabcdef0123456789+/", k=MEGABYTE // 4))
    assert_sound(text, list(chunk(text, "text", TOKENIZER, 200)), 200)


def test_texts_are_cut_as_they_always_were() -> None:
    """Whoever changes where texts are cut raises `VERSION`, so that every base is indexed anew."""
    chance = random.Random(1)
    snippets = [
        "# ", "## ", "### ", "\n", "\n\n", "```\n", "~~~", "- ", "1. ", "| a | b |\n", "|---|---|\n", "===\n", "---\n",
        "> ", "    ", "\t", "word ", "Sentence one. ", "e.g. ", "3.14 ", "猫。", "한국어", "ภาษาไทย", "x" * 120,
        "a\u0301", "👍🏽",
        "don't ", "def f():\n", "---\ntitle: a\n---\n", "Some longer words follow here, as in prose. ",
        "A heading\n", "a | b\n-|-\n1 | 2\n", "* item one\n  more of it. And more.\n", "!!!???", "[SEP]", "* * *\n",
    ]  # fmt: skip
    cuts = hashlib.sha256()
    for number in range(200):
        some = chance.sample(snippets, chance.randint(2, len(snippets)))
        text = "".join(chance.choices(some, k=chance.choice([20, 80, 300, 1200])))
        for kind in KINDS:
            for p in chunk(text, kind, TOKENIZER, [8, 20, 64, 200][number % 4]):
                cuts.update(f"{p.index} {p.start} {p.end} {p.heading}\n".encode())
    assert (VERSION, cuts.hexdigest()) == ("2", "801fb1895ac2abbfd76942a8b44425d25075d6644796ead1beed6e623f72eef6")


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u2028\u3000\x85"])
def test_nothing_but_white_space_gives_nothing(text: str) -> None:
    assert passages(text) == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_fits_is_one_passage_trimmed(kind: Kind) -> None:
    assert passages("\n\n  One thing.\n\nAnd another.\n ", kind) == ["One thing.\n\nAnd another."]


# Prose


@pytest.mark.parametrize("kind", ["markdown", "text"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028"])
def test_paragraphs_are_preferred_to_lines_and_lines_to_sentences(kind: Kind, end: str) -> None:
    one, two, three = "Aa bb cc dd. Ee ff gg.", "Hh ii jj kk ll mm.", "Nn oo pp qq rr ss."
    text = f"{one}{end}{end}{two}{end}{three}"
    assert passages(text, kind, 24) == [one, f"{two}{end}{three}"]
    assert passages(text, kind, 14) == [one, two, three]


def test_even_passages_are_preferred_to_a_full_one_and_a_rest() -> None:
    text = " ".join(["Four words are here."] * 12)  # 60
    assert [TOKENIZER.count(p) for p in passages(text, "text", 50)] == [30, 30]


@pytest.mark.parametrize(
    "sentences",
    [
        ["It ends here. ", "Next one starts."],
        ["Really?! ", "Yes! ", "Good… ", "Fine."],
        ['He said "no." ', "She left."],
        ["As shown.[12][13] ", "Then more."],
        ["(In brackets.) ", "Then more."],
        ["Some fruit, e.g. Apples, is red."],
        ["They met at 5 p.m. in the U.S. Embassy."],
        ["Pi is 3.14 or so. ", "In 1990. ", "Not now."],
        ["Ask Dr. Smith or J. Doe, see vol. two, etc. Enough."],
        ["1. The number of an item ends nothing. ", "This does."],
        ["我有一只猫。", "它是黑色的！", "真的吗？”", "是。"],
        ["هل هذا صحيح؟ ", "نعم."],
        ["यह एक वाक्य है। ", "यह दूसरा है।"],
    ],
)
def test_sentences_end_where_a_reader_thinks(sentences: list[str]) -> None:
    text = "".join(sentences)
    found = breaks(text, text_layout(text, lambda: None), lambda: None)
    edges = [*(at for at, _, _ in found), len(text)]
    assert [text[start:end] for start, end in pairwise(edges)] == sentences


def test_a_sentence_is_not_cut_where_its_lines_wrap() -> None:
    text = "The first sentence is wrapped\nin the middle. The second one\nis wrapped as well, of course."
    assert passages(text, "text", 16) == [
        "The first sentence is wrapped\nin the middle.",
        "The second one\nis wrapped as well, of course.",
    ]


def test_what_has_no_better_place_is_cut_between_words_evenly() -> None:
    assert [len(p.split()) for p in passages(words(30), "text", 20)] == [15, 15]


# Sections


def test_sections_of_level_1_and_2_are_not_joined() -> None:
    text = f"# One\n\n{words(30)}\n\n## Two\n\n{words(30)}\n\n# Three\n\n{words(30)}"
    assert [p.split("\n")[0] for p in passages(text, budget=100)] == ["# One", "## Two", "# Three"]


def test_deeper_sections_are_joined_when_they_fit() -> None:
    text = f"### One\n\n{words(30)}\n\n### Two\n\n{words(30)}"
    assert len(passages(text, budget=100)) == 1


def test_a_small_section_is_joined_with_its_neighbour() -> None:
    text = f"# One\n\n{words(40)}\n\n## Two\n\nTiny.\n\n# Three\n\n{words(80)}"
    assert [p.startswith("# ") for p in passages(text, budget=100)] == [True, True]


def test_a_document_of_one_line_sections_becomes_few_passages() -> None:
    text = "\n\n".join(f"## Term {number}\n\nIt means {number}." for number in range(300))
    sizes = [TOKENIZER.count(p) for p in passages(text)]
    assert min(sizes) >= 40
    assert len(sizes) < 80


def test_a_heading_is_not_left_without_its_text() -> None:
    text = f"{words(60)}.\n\n### Heading\n\n{words(30)}. {words(40)}."
    assert "### Heading" in passages(text, budget=100)[1]


# Blocks of Markdown


def test_a_fence_stays_whole_when_it_fits_and_holds_no_heading() -> None:
    fence = "```python\n# no heading\n\nx = 1\n\ny = 2\n```"
    text = f"{words(30)}.\n\n{fence}\n\n{words(30)}."
    assert any(fence in p for p in passages(text, budget=40))
    assert headings(text, budget=40) == [None] * 3


@pytest.mark.parametrize("fence", ["```", "~~~", "````"])
def test_a_long_fence_is_cut_between_lines(fence: str) -> None:
    lines = [f"value_{number} = {number}" for number in range(40)]
    found = passages("\n".join([fence, *lines, fence]), budget=60)
    assert len(found) > 1
    assert [line for p in found for line in p.split("\n")] == [fence, *lines, fence]


def test_an_open_fence_runs_to_the_end() -> None:
    assert headings("# A\n\n```\n# B\n\ntext") == ["A"]


@pytest.mark.parametrize("bar", ["|", ""])
def test_a_table_is_cut_between_rows_only_and_its_head_keeps_a_row(bar: str) -> None:
    rows = [f"{bar} name {number}. Next | value {number} {bar}".strip() for number in range(30)]
    head = [f"{bar} Name | Value {bar}".strip(), f"{bar}---|---{bar}"]
    found = passages("\n".join(head + rows), budget=60)
    assert len(found) > 1
    assert found[0].startswith("\n".join([*head, rows[0]]))
    assert [row for p in found for row in p.split("\n")] == head + rows


def test_a_list_is_cut_between_items() -> None:
    items = [f"- Item {number} is long. It has two sentences\n  and two lines." for number in range(12)]
    found = passages("\n".join(items), budget=40)
    assert len(found) > 1
    assert all(p.startswith("- Item") and p.endswith("two lines.") for p in found)


def test_front_matter_is_a_block_of_its_own() -> None:
    front = "---\ntitle: Some\ntags: [a, b]\n# comment\n---"
    text = f"{front}\nFirst paragraph. {words(20)}"
    assert passages(text, budget=40)[0] == front
    assert headings(text, budget=40) == [None, None]


# Heading paths


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Some text.", None),
        ("# A\n\ntext", "A"),
        ("# A #\n\ntext", "A"),
        ("   ## A\n\ntext", "A"),
        ("    # A\n\ntext", None),
        ("#A\n\ntext", None),
        ("A\n===\n\ntext", "A"),
        ("A\n---\ntext", "A"),
        ("a paragraph\nof two lines\n---\ntext", None),
        ("# A\n\n## B\n\n### C\n\ntext", "A > B > C"),
        ("# A\n\n### C\n\ntext", "A > C"),
        ("A\n===\n\nB\n---\n\ntext", "A > B"),
        ("# A\n\n## B\n\ntext\n\n## C\n\ntext", "A"),
        ("# A\n\ntext\n\n## B\n\ntext", "A"),
        ("# A\n\ntext\n\n# B\n\ntext", None),
        ("text\n\n# A\n\ntext", None),
        ("# A\n## B\n# C", None),
        ("#\n\ntext", None),
        ("# `kb` and [a **link**](http://example.com)\n\ntext", "kb and a link"),
        ("# A\r\n\r\ntext", "A"),
        ("# A\r\rtext", "A"),
    ],
)
def test_the_heading_path_is_the_deepest_that_all_of_a_passage_shares(text: str, path: str | None) -> None:
    assert headings(text) == [path]


def test_the_path_goes_on_after_a_cut_and_ends_with_its_section() -> None:
    text = f"# A\n\n## B\n\n{words(50)}. {words(50)}.\n\n## C\n\n{words(40)}"
    assert headings(text, budget=60) == ["A > B", "A > B", "A > C"]


def test_only_markdown_has_headings() -> None:
    assert [p.heading for kind in ("text", "code") for p in chunk("# A\n\ntext", kind, TOKENIZER, 200)] == [None, None]


# Code


def test_code_is_cut_before_definitions_first() -> None:
    one = "def one():\n    a = 1\n\n    b = 2\n    return a + b"
    two = "# About two.\ndef two():\n    return 2"
    three = "class Three:\n    x = 1\n\n    y = 2"
    assert passages("\n\n\n".join([one, two, three]), "code", 30) == [one, two + "\n\n\n" + three]


def test_a_long_function_is_cut_at_blank_lines_then_at_lines() -> None:
    blocks = ["\n".join(f"    value = compute({block}, {line})" for line in range(4)) for block in range(4)]
    found = passages("def f():\n" + "\n\n".join(blocks), "code", 60)
    assert found == ["def f():\n" + blocks[0], *(block.strip() for block in blocks[1:])]


# The context that is embedded with a passage


@pytest.mark.parametrize(
    ("title", "heading", "expected"),
    [
        (None, None, ""),
        ("Title", None, "Title"),
        (None, "A > B", "A > B"),
        ("Title", "A > B", "Title > A > B"),
        ("A", "A > B", "A > B"),
        ("A", "A", "A"),
        ("", "", ""),
    ],
)
def test_context_says_where_a_passage_stands(title: str | None, heading: str | None, expected: str) -> None:
    assert context(title, heading) == expected


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (50, "Title > Part one > Chapter two > Section"),
        (8, "Title > Chapter two > Section"),
        (3, "Title > Section"),
        (2, "Title"),
        (1, "Title"),
        (0, ""),
        (-5, ""),
    ],
)
def test_a_context_is_shortened_from_the_middle(room: int, expected: str) -> None:
    assert fit_context("Title > Part one > Chapter two > Section", TOKENIZER, room) == expected


@given(st.text(max_size=200), st.integers(-2, 40))
def test_a_context_fits_its_room(ctx: str, room: int) -> None:
    assert TOKENIZER.count(fit_context(ctx, TOKENIZER, room)) <= max(room, 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("budget", [8, 200])
def test_what_is_skipped_is_in_no_passage_and_all_else_is(kind: Kind, budget: int) -> None:
    before, middle, after = "# Mill\n\nSold twice.", "Empty since the war.", "## Lane\n\nGrass grows there."
    blob = "Zm9vYmFy" * 300
    text = f"{before} {blob}\n{middle}{blob} {after}"
    skip = [(at, at + len(blob)) for at in (text.index(blob), text.rindex(blob))]
    found = list(chunk(text, kind, TOKENIZER, budget, skip=skip))
    pieces = [text[p.start : p.end] for p in found]
    assert "".join("".join(pieces).split()) == "".join((before + middle + after).split())
    assert all(p.end <= start or p.start >= end for p in found for start, end in skip)
    if kind == "markdown":
        assert found[-1].heading == "Mill > Lane"


def test_a_text_of_which_all_is_skipped_has_no_passage() -> None:
    assert len(chunk("Zm9v" * 500, "text", TOKENIZER, 200, skip=[(0, 2000)])) == 0
