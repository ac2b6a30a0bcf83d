"""The older workbooks: cells with their sheets and ranges, and refusals that say why."""

from collections.abc import Callable

from kb.ingest.extract import Part
from made import container, record, xls, xlsb

Extract = Callable[..., list[Part]]


def test_an_old_workbook_has_sheets_and_cells(extract: Extract) -> None:
    (part,) = extract(xls("Herds", [["Animal", "Count"], ["Saiga", 7]]))
    assert (part.name, part.anchor.sheet) == ("sheet Herds", "Herds")
    assert part.anchor.heading == "Herds > A1:B2 > Animal | Count"
    assert part.text == "Herds\nAnimal | Count\nSaiga | 7"


def test_comments_and_text_boxes_of_an_old_workbook_are_read(extract: Extract) -> None:
    cells, said = extract(xls("Herds", [["Animal"], ["Saiga"]], box="Counted from the air → twice", note="Too late"))
    assert cells.text == "Herds\nAnimal\nSaiga"
    assert said.text == "B2 [Ana: Too late]\nCounted from the air → twice"
    assert said.anchor.sheet == "Herds"


def test_an_old_workbook_that_is_damaged_or_encrypted_says_so(fails: Callable[..., str]) -> None:
    good = xls("Herds", [["Saiga"]])
    assert fails(good[:1500], "a.xls") == "corrupt"
    assert fails(container({"Other": b"x"}), "a.xls") == "corrupt"
    assert fails(container({"EncryptedPackage": b"x"}), "a.xls") == "encrypted"
    assert fails(xls("Herds", [["Saiga"]], is_encrypted=True)) == "encrypted"
    assert fails(container({"EncryptedPackage": b"x"}), "a.xlsb") == "encrypted"


def test_a_sheet_that_the_reader_panics_over_is_damaged(fails: Callable[..., str]) -> None:
    assert fails(xlsb(record(148, b"x") + record(145)), "a.xlsb") == "corrupt"
