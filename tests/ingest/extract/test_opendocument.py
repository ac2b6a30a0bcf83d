"""OpenDocument: texts, presentations and workbooks, with what stands beside their text."""

from collections.abc import Callable

import pytest

from kb.ingest.extract import Part
from made import OPEN, opendocument

Extract = Callable[..., list[Part]]


def test_a_text_keeps_headings_lists_tables_and_notes(extract: Extract) -> None:
    note = "<text:note-citation>1</text:note-citation><text:note-body><text:p>Since 1900</text:p></text:note-body>"
    body = (
        '<text:h text:outline-level="2">White<text:s text:c="2"/>dunes</text:h>'
        f"<text:p>Wind<text:note>{note}</text:note> moves<text:line-break/>sand.</text:p>"
        "<text:list><text:list-item><text:p>Marram</text:p><text:list><text:list-item><text:p>Roots</text:p>"
        "</text:list-item></text:list></text:list-item></text:list>"
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Dune</text:p></table:table-cell>"
        "<table:table-cell><text:p>Metres</text:p></table:table-cell></table:table-row></table:table-header-rows>"
        "<table:table-row><table:table-cell><text:p>Grey</text:p></table:table-cell><table:table-cell><text:p>12</text:p>"
        "</table:table-cell></table:table-row></table:table>"
        "<text:tracked-changes><text:p>Deleted</text:p></text:tracked-changes>"
        "<text:p><draw:frame><draw:text-box><text:p>Boxed</text:p></draw:text-box></draw:frame></text:p>"
    )
    same = "<text:p>Every page</text:p>"
    styles = f"<styles {OPEN}><header>{same}</header><footer>{same}</footer></styles>"
    (part,) = extract(opendocument("text", body, {"styles.xml": styles}))
    assert part.text == (
        "## White dunes\n\nWind moves\nsand.\n\n[Since 1900]\n\n- Marram\n  - Roots\n\n"
        "| Dune | Metres |\n| --- | --- |\n| Grey | 12 |\n\nBoxed\n\nEvery page"
    )
    assert (part.name, part.title, part.metadata) == ("text", "On dunes", {"author": "Bo Sand"})


def test_a_presentation_has_a_part_for_every_slide(extract: Extract) -> None:
    def frame(text: str, kind: str) -> str:
        box = f"<draw:text-box><text:p>{text}</text:p></draw:text-box>"
        return f'<draw:frame presentation:class="{kind}">{box}</draw:frame>'

    notes = f"<presentation:notes>{frame('Speak up', 'notes')}{frame('7', 'page-number')}</presentation:notes>"
    slide = f"<draw:page>{frame('Sand', 'outline')}{frame('Dunes', 'title')}{notes}</draw:page>"
    first, second = extract(opendocument("presentation", f"{slide}<draw:page/>"))
    assert (first.name, first.anchor.slide, first.text) == ("slide 1", 1, "# Dunes\n\nSand\n\nNotes: Speak up")
    assert (second.outcome.state, second.total) == ("empty", 2)


def test_a_workbook_has_sheets_cells_and_comments(extract: Extract) -> None:
    def cell(text: str) -> str:
        return f'<table:table-cell office:value-type="string"><text:p>{text}</text:p></table:table-cell>'

    remark = "<office:annotation><text:p>Measured</text:p></office:annotation>"
    height = (
        f'<table:table-cell office:value-type="float" office:value="12">{remark}<text:p>12</text:p></table:table-cell>'
    )
    lines = (cell("Dune") + cell("Metres"), cell("Grey") + height)
    rows = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    first, second = extract(opendocument("spreadsheet", f'<table:table table:name="Heights">{rows}</table:table>'))
    assert (first.name, first.anchor.sheet, first.anchor.heading) == (
        "sheet Heights",
        "Heights",
        "Heights > A1:B2 > Dune | Metres",
    )
    assert first.text == "Heights\nDune | Metres\nGrey | 12"
    assert second.text == "[Measured]"


@pytest.mark.parametrize("kind", ["text", "spreadsheet", "presentation"])
def test_hostile_files_fail_within_bounds(fails: Callable[..., str], kind: str) -> None:
    good = opendocument(kind, "<text:p>x</text:p>")
    assert fails(good[: len(good) // 2], f"a.{kind}") == "corrupt"
    locked = f"<m {OPEN}><manifest:encryption-data/></m>"
    assert fails(opendocument(kind, "", {"META-INF/manifest.xml": locked})) == "encrypted"
    assert fails(opendocument(kind, "", {"content.xml": "<office/>"})) == "corrupt"
    assert fails(opendocument(kind, "<text:p>" * 5000)) in ("too_complex", "corrupt")
    assert fails(opendocument(kind, " " * (60 * 2**20))) == "too_complex"
    bomb = '<!DOCTYPE p [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><body>&b;</body>'
    assert fails(opendocument(kind, "", {"content.xml": bomb})) == "too_complex"


def test_a_cell_that_is_repeated_without_end_is_bounded(fails: Callable[..., str]) -> None:
    text = 'office:value-type="string"><text:p>x</text:p>'
    cell = f'<table:table-cell table:number-columns-repeated="16384" {text}</table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    code = fails(opendocument("spreadsheet", f'<table:table table:name="S">{row}</table:table>'))
    assert code in ("too_complex", "corrupt", "out_of_memory", "crashed", "no_text")
