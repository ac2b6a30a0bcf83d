"""How programs are cut whose definitions are known: at them, with their names."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.core.settings import bundled_model_dir
from kb.core.values import Symbol
from kb.embedding.tokenizer import Tokenizer
from kb.ingest.chunking.chunker import Slice, chunk

TOKENIZER = Tokenizer(bundled_model_dir() / "tokenizer.json")


def body(name: str, lines: int, indent: str = "    ") -> str:
    return "".join(f"{indent}{name} = use({number})\n" for number in range(lines))


def cut(text: str, symbols: list[Symbol], budget: int = 60) -> list[Slice]:
    return list(chunk(text, "code", TOKENIZER, budget, symbols=symbols))


def placed(text: str, piece: str, name: str) -> Symbol:
    start = text.index(piece)
    return start, start + len(piece), name


def test_a_definition_that_fits_is_not_cut_and_a_large_neighbour_begins_a_passage_of_its_own() -> None:
    one, two = "def one():\n" + body("a", 3) + "\n" + body("b", 3), "def two():\n" + body("c", 5)
    text = f"{one}\n{two}"
    symbols = [placed(text, one.strip(), "one"), placed(text, two.strip(), "two")]
    found = cut(text, symbols, 80)
    assert [text[p.start : p.end] for p in found] == [one.strip(), two.strip()]
    assert [(p.symbol, p.heading) for p in found] == [("one", "one"), ("two", "two")]


def test_a_class_is_cut_at_its_methods_and_each_passage_names_the_path() -> None:
    first, second = "    def row(self):\n" + body("a", 5, " " * 8), "    def moor(self):\n" + body("b", 5, " " * 8)
    text = f"class Boat:\n{first}\n{second}"
    symbols = [(0, len(text), "Boat"), placed(text, first, "row"), placed(text, second, "moor")]
    found = cut(text, symbols, 70)
    assert [text[p.start : p.end].partition("(")[0] for p in found] == ["class Boat:\n    def row", "def moor"]
    assert [p.symbol for p in found] == ["Boat", "Boat.moor"]
    assert [p.heading for p in found] == ["Boat", "Boat > moor"]


def test_every_piece_of_a_long_method_names_it() -> None:
    method = "    def row(self):\n" + body("a", 40, " " * 8)
    text = f"class Boat:\n    x = 1\n\n{method}"
    found = cut(text, [(0, len(text), "Boat"), placed(text, method, "row")])
    assert len(found) > 3
    assert {p.symbol for p in found[1:]} == {"Boat.row"}


def test_small_neighbours_share_a_passage_that_names_each_under_the_heading_that_they_share() -> None:
    lines = [f"    def f{number}(self): pass\n" for number in range(10, 22)]
    text = "class Boat:\n" + "".join(lines)
    symbols = [(0, len(text), "Boat"), *(placed(text, line, line[8:11]) for line in lines)]
    found = cut(text, symbols, 80)
    assert [p.symbol for p in found[:2]] == ["Boat", "Boat.f13, Boat.f14, Boat.f15"]
    assert {p.heading for p in found} == {"Boat"}


def test_of_many_definitions_in_a_passage_the_first_are_named() -> None:
    lines = [f"def f{number}(): pass\n" for number in range(6)]
    (only,) = cut("".join(lines), [placed("".join(lines), line, line[4:6]) for line in lines], 200)
    assert (only.symbol, only.heading) == ("f0, f1, f2, f3, ...", None)


@pytest.mark.parametrize("closing", ["}\n", "end\n", "  });\n"])
def test_what_only_closes_a_class_does_not_make_it_the_symbol(closing: str) -> None:
    method = "  row()\n" + body("a", 5)
    text = "class Boat\n" + body("x", 12) + "\n" + method + closing
    found = cut(text, [(0, len(text), "Boat"), placed(text, method, "row")], 90)
    assert found[-1].symbol == "Boat.row"


def test_code_outside_of_definitions_has_no_symbol() -> None:
    text = body("a", 20, "") + "\n\ndef f():\n" + body("b", 5)
    found = cut(text, [(text.index("def f"), len(text), "f")])
    assert [p.symbol for p in found][-1] == "f"
    assert (found[0].symbol, found[0].heading) == (None, None)


def test_definitions_in_one_line_are_cut_apart() -> None:
    functions = [
        f"function f{number}(a,b){{return a+b*{number}+use(a)+use(b)+use(a*b)+use(a/b)}}" for number in range(9)
    ]
    text = "".join(functions)
    found = cut(text, [placed(text, function, f"f{number}") for number, function in enumerate(functions)])
    assert [text[p.start : p.end] for p in found] == functions


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 200)), max_size=12), st.sampled_from([8, 40, 200]))
def test_wherever_definitions_stand_every_character_is_in_one_passage(
    spans: list[tuple[int, int]], budget: int
) -> None:
    text = "".join(f"line {number} of code\n" * 2 + "\n" for number in range(15))
    symbols: list[Symbol] = []
    around = [(0, len(text))]
    for start, length in sorted(spans, key=lambda span: (span[0], -span[1])):
        while len(around) > 1 and around[-1][1] <= start:
            around.pop()
        end = min(start + length, around[-1][1])
        if start < end:
            symbols.append((start, end, "f"))
            around.append((start, end))
    found = cut(text, symbols, budget)
    edges = [0, *(edge for p in found for edge in (p.start, p.end)), len(text)]
    assert all(before <= after for before, after in pairwise(edges))
    assert not any(text[a:b].strip() for a, b in zip(edges[::2], edges[1::2], strict=True))
    assert all(TOKENIZER.count(text[p.start : p.end]) <= budget for p in found)
