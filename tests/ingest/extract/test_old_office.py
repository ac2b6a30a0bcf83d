"""DOC and PPT: the texts of old Office files, and what of them is refused."""

import struct
from collections.abc import Callable

import pytest

from kb.ingest.extract import Part
from kb.ingest.extract.compound import details
from made import WordRun, container, doc, ppt

Extract = Callable[..., list[Part]]
IN_TABLE, ROW_END = b"\x16\x24\x01", b"\x17\x24\x01"
VANISHES, DELETED = b"\x3c\x08\x01", b"\x00\x08\x01"
ENCRYPTED_SHOW = 0xF3D1C4DF


def test_a_document_is_read_piece_by_piece(extract: Extract) -> None:
    (part,) = extract(
        doc(
            [
                WordRun("Café tides\r", 1),
                WordRun("Ebb \x13 HYPERLINK x \x14and\x15 flood Ω\v\x1fagain\r"),
                WordRun("Neap\r", 2),
                WordRun("gone\r", 0, b"", DELETED),
            ],
            footnotes="Twice a day.\r",
        ),
        "a.bin",
    )
    assert part.text == "# Café tides\n\nEbb and flood Ω\nagain\n\n## Neap\n\n[Twice a day.]"
    assert part.title == "Café tides"


def test_cells_of_a_document_are_a_table(extract: Extract) -> None:
    cells = [
        WordRun("Before\r"),
        WordRun("Port\a", 0, IN_TABLE),
        WordRun("Height\a", 0, IN_TABLE),
        WordRun("\a", 0, IN_TABLE + ROW_END),
        WordRun("Brest\r", 0, IN_TABLE),
        WordRun("north\a", 0, IN_TABLE),
        WordRun("\a", 0, IN_TABLE),
        WordRun("\a", 0, IN_TABLE + ROW_END),
        WordRun("After\r"),
    ]
    (part,) = extract(doc(cells))
    assert part.text == "Before\n\n| Port | Height |\n| --- | --- |\n| Brest north |  |\n\nAfter"


def test_text_that_vanishes_is_a_part_of_its_own(extract: Extract) -> None:
    shown, hidden = extract(doc([WordRun("Shown\r"), WordRun("not shown\r", 0, b"", VANISHES)]))
    assert (shown.text, hidden.text, hidden.hidden) == ("Shown", "not shown", True)


def test_slides_have_titles_texts_and_notes(extract: Extract) -> None:
    parts = extract(
        ppt([[(0, "Tides"), (1, "Ebb\rFlood Ω")], [(1, "Low water"), (6, "Neap")]], notes="Say slowly"), "x"
    )
    assert [(part.name, part.anchor.slide, part.text) for part in parts] == [
        ("slide 1", 1, "# Tides\n\nEbb\nFlood Ω\n\nNotes: Say slowly"),
        ("slide 2", 2, "# Neap\n\nLow water"),
    ]
    assert parts[0].title == "Tides"


def test_hidden_slides_are_marked(extract: Extract) -> None:
    (part,) = extract(ppt([[(0, "Tides")]], is_hidden=True))
    assert (part.hidden, part.outcome.reason) == (True, "the slide is hidden")


@pytest.mark.parametrize(
    ("data", "name", "code"),
    [
        (doc([WordRun("x\r")], flags=0x0100), "a.doc", "encrypted"),
        (doc([WordRun("x\r")], version=0x65), "a.doc", "unsupported_format"),
        (doc([WordRun("x\r")])[:1500], "a.doc", "corrupt"),
        (container({"WordDocument": bytes(9)}), "a.doc", "unsupported_format"),
        (container({"Other": b"x"}), "a.doc", "corrupt"),
        (ppt([[(0, "x")]], key=ENCRYPTED_SHOW), "a.ppt", "encrypted"),
        (container({"PowerPoint Document": b"x"}), "a.ppt", "unsupported_format"),
        (container({"Other": b"x"}), "a.pps", "corrupt"),
    ],
)
def test_what_cannot_be_read_says_why(fails: Callable[..., str], data: bytes, name: str, code: str) -> None:
    assert fails(data, name) == code


def test_a_file_that_claims_endless_details_says_those_that_it_has() -> None:
    listed = struct.pack("<II", 2, 8 + 8 * 100) + bytes(8 * 99)
    data = bytes(44) + struct.pack("<III", 48, 0, 2**32 - 1) + listed + struct.pack("<II", 0x1E, 6) + b"Tides\0"
    assert details(data) == {2: "Tides"}
