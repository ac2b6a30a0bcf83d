"""The older workbooks: cells with their sheets and ranges, and refusals that say why."""

from collections.abc import Callable

from kb.ingest.extract import Part
from made import container, xls

Extract = Callable[..., list[Part]]


def test_an_old_workbook_has_sheets_and_cells(extract: Extract) -> None:
    (part,) = extract(xls("Herds", [["Animal", "Count"], ["Saiga", 7]]))
    assert (part.name, part.anchor.sheet) == ("sheet Herds", "Herds")
    assert part.anchor.heading == "Herds > A1:B2 > Animal | Count"
    assert part.text == "Herds\nAnimal | Count\nSaiga | 7"


def test_an_old_workbook_that_is_damaged_or_encrypted_says_so(fails: Callable[..., str]) -> None:
    good = xls("Herds", [["Saiga"]])
    assert fails(good[:1500], "a.xls") == "corrupt"
    assert fails(container("Other", b"x"), "a.xls") == "corrupt"
    assert fails(container("EncryptedPackage", b"x"), "a.xls") == "encrypted"
    assert fails(container("EncryptedPackage", b"x"), "a.xlsb") == "encrypted"
