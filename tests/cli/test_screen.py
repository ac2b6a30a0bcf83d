"""Text for people: nothing in it drives the terminal, and wide characters keep their place."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.cli.screen import Screen, cut, escaped, one_line, width, wrapped


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("not a real one")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ünïcode 世界 👩‍🔬", "plain ünïcode 世界 👩‍🔬"),
        ("\x1b[31mred\x1b]0;title\x07", r"\x1b[31mred\x1b]0;title\x07"),
        ("a\x00b\x7fc\x9bd", r"a\x00b\x7fc\x9bd"),
        ("a\rb", r"a\rb"),
        ("a\r\nb\tc", "a\nb\tc"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("one\u2028two", r"one\u2028two"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_a_title_stays_on_one_line() -> None:
    assert one_line(" a\n\tb\x1b[2J ") == r"a b\x1b[2J"


@given(st.text())
def test_no_text_at_all_reaches_a_terminal_with_controls(text: str) -> None:
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", escaped(text))
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("abc", 3),
        ("世界", 4),
        ("ｆｕｌｌ", 8),
        ("ﾊﾝｶｸ", 4),
        ("e\u0301", 1),
        ("👍", 2),
        ("👍🏽", 2),
        ("❤️", 2),
        ("नमस्ते", 4),
        ("한국", 4),
        ("\u1112\u1161\u11ab", 2),
        ("a\u200bb", 2),
        ("\x1b[1mbold\x1b[0m", 4),
    ],
)
def test_width_is_counted_in_cells(text: str, cells: int) -> None:
    assert width(text) == cells


@given(st.text(), st.integers(min_value=8, max_value=100))
def test_wrapped_lines_fit_and_lose_no_character(text: str, columns: int) -> None:
    lines = wrapped(escaped(text), columns)
    assert all(width(line) <= columns + 1 for line in lines)  # an emoji form may follow a sign at the edge
    assert "".join("".join(lines).split()) == "".join(escaped(text).split())


def test_wrapping_breaks_scripts_without_spaces_and_long_addresses() -> None:
    assert wrapped("世界" * 6, 8) == ["世界世界"] * 3
    assert wrapped("see https://example.org/long/path now", 12) == ["see", "https://exam", "ple.org/long", "/path now"]


def test_wrapping_keeps_indents() -> None:
    assert wrapped("if x:\n    do this and that", 16) == ["if x:", "    do this and", "    that"]


def test_wrapping_keeps_paragraphs() -> None:
    assert wrapped("\n\none\ntwo\n\n\n\nthree\n", 20) == ["one", "two", "", "three"]


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs"])), st.integers(min_value=2, max_value=40))
def test_a_text_that_is_cut_fits(text: str, columns: int) -> None:
    short = cut(text, columns)
    assert short == text or short.endswith("…")
    assert width(short) <= columns + 1


def test_a_table_is_aligned_whatever_the_script() -> None:
    terminal = Terminal()
    Screen(terminal, {"COLUMNS": "40", "NO_COLOR": "1"}).table(
        ("ID", "NAME", "TITLE"), [(1, "世界", "short"), (22, "abc", "long " * 20)]
    )
    head, first, second = terminal.getvalue().splitlines()
    assert head == "ID  NAME  TITLE"
    assert first == "1   世界  short"
    assert second.startswith("22  abc   long long")
    assert width(second) <= 40


def test_elsewhere_a_table_is_lines_of_tab_separated_values() -> None:
    file = io.StringIO()
    Screen(file, {}).table(("ID", "TITLE"), [(1, "a\tb\nc"), (2, None)])
    assert file.getvalue() == "1\ta b c\n2\t\n"


@pytest.mark.parametrize(
    ("stream", "environment", "colour"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(stream: io.StringIO, environment: dict[str, str], colour: bool) -> None:
    assert ("\x1b" in Screen(stream, environment).style("x", "bold")) is colour


def test_progress_is_for_terminals() -> None:
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        screen = Screen(stream, {"COLUMNS": "50"})
        screen.progress("report.pdf: page 3", 0.5)
        screen.clear()
    assert "[##########----------]  50%  report.pdf" in terminal.getvalue()
    assert file.getvalue() == ""
