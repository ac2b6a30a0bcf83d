"""RTF: headings, tables, notes, code pages and Unicode; pictures, objects and control words are no text."""

from collections.abc import Callable

import pytest

from kb.ingest.extract import Part
from made import rtf

Extract = Callable[..., list[Part]]


def text_of(extract: Extract, body: str | bytes, head: str = r"\ansi\ansicpg1252") -> str:
    (part,) = extract(rtf(body, head))
    return part.text


def test_styles_and_outlines_are_headings(extract: Extract) -> None:
    styles = r"{\stylesheet{\s1\outlinelevel0 heading 1;}{\s7 Title;}{\*\cs9 heading 3;}{\s5\outlinelevel1 Abschnitt;}}"
    body = r"\pard\s7 Tides\par\pard\s1 Ebb\par\pard\s5 Neap\par\pard\outlinelevel2 Moon\par\pard Low {\b wat}er.\par"
    (part,) = extract(rtf(styles + body))
    assert part.text == "# Tides\n\n# Ebb\n\n## Neap\n\n### Moon\n\nLow water."
    assert part.title == "Tides"


def test_rows_of_a_table_are_a_table(extract: Extract) -> None:
    row = r"\trowd\cellx1000\cellx2000\pard\intbl {}\cell {}\cell\row "
    body = row.format("Port", "Height") + row.format(r"Brest\par north", "7 m") + r"\pard After.\par"
    assert text_of(extract, body) == "| Port | Height |\n| --- | --- |\n| Brest north | 7 m |\n\nAfter."


def test_notes_comments_boxes_and_margins_are_read(extract: Extract) -> None:
    body = (
        r"{\header Tidal office\par}"
        r"Low{\footnote \pard Twice a day.} water{\*\atnauthor Ann}{\*\annotation Really?}.\par"
        r"{\shp{\*\shpinst{\sp{\sn x}{\sv 1}}{\shptxt In a box\par}}{\shprslt In a box}}\par"
    )
    assert text_of(extract, body) == "Low water.\n\n[Twice a day.]\n\n[Ann: Really?]\n\n[In a box]\n\nTidal office"


@pytest.mark.parametrize(
    ("body", "head", "text"),
    [
        (r"caf\'e9", r"\ansi\ansicpg1252", "café"),
        (b"caf\xe9 raw", r"\ansi\ansicpg1252", "café raw"),
        (r"\'ef\'f0\'e8\'eb\'e8\'e2", r"\ansi\ansicpg1251", "прилив"),
        (r"{\f2 \'92\'aa\'90\'af}", r"\ansi{\fonttbl{\f0 A;}{\f2\fcharset128 B;}}", "潮星"),
        (r"caf\'8e", r"\mac", "café"),
        (r"\u233?\u-10179?\u-8704? \uc2\u8364 EUx\uc0\u937.", r"\ansi", "é😀 €xΩ."),
        (r"{\upr{a?b}{\*\ud{a\u233?b}}}", r"\ansi", "aéb"),
        (r"a\~b\_c\-d\emdash e\tab f\{\\\}", r"\ansi", "a b‑cd—e f{\\}"),
    ],
)
def test_characters_are_read_in_the_code_page_of_their_font(
    extract: Extract, body: str | bytes, head: str, text: str
) -> None:
    assert text_of(extract, body, head) == text


def test_what_is_no_text_is_left_out(extract: Extract) -> None:
    picture = r"{\pict\pngblip\bin5 }}{{\x }" + r"{\pict 89504e470d0a1a0a}{\*\shppict{\pict 8950}}"
    field = r'{\field{\*\fldinst HYPERLINK "http://example.org"}{\fldrslt link}}'
    body = (
        f"{picture}A {field}{{\\*\\unknown\\x secret}}{{\\object{{\\*\\objdata 0105}}{{\\result shown}}}}\\deleted gone"
    )
    assert text_of(extract, body) == "A linkshown"


def test_the_file_says_who_wrote_it(extract: Extract) -> None:
    info = r"{\info{\title Caf\'e9 tides}{\author Ann {\b B}}{\keywords ebb}{\doccomm about}{\operator nobody}}"
    (part,) = extract(rtf(info + "Text"))
    assert (part.title, part.text) == ("Café tides", "Text")
    assert part.metadata == {"author": "Ann B", "keywords": "ebb", "description": "about"}


def test_hidden_text_is_a_part_of_its_own(extract: Extract) -> None:
    shown, hidden = extract(rtf(r"Shown {\v not shown}{\fs1 tiny}again\plain .\par"))
    assert (shown.text, shown.hidden) == ("Shown again.", False)
    assert (hidden.text, hidden.hidden) == ("not shown\ntiny", True)
    assert hidden.outcome.reason == "12 characters are hidden (tiny, vanish)"


def test_a_file_that_was_cut_off_says_so(extract: Extract) -> None:
    (part,) = extract(rb"{\rtf1\ansi Ebb and {\b flo")
    assert part.text == "Ebb and flo"
    assert part.outcome.reason == "the file ends in the middle: it was cut off"


def test_wide_rtf_is_read(extract: Extract) -> None:
    (part,) = extract(r"{\rtf1\ansi Hello ebb}".encode("utf-16"), "wide.txt")
    assert part.text == "Hello ebb"


def test_endless_groups_are_refused(fails: Callable[..., str]) -> None:
    assert fails(rb"{\rtf1 " + b"{" * 1_000_000) == "too_complex"
    assert fails(rb"{\rtf1 {\pict 8950}}") == "no_text"
