"""The cells around a citation of a workbook."""

from urllib.parse import quote

import pytest

from made import pdf, xlsx
from support import Http

ROWS = [[f"Grettle {row}{column}" for column in "ABCDEFGHIJ"] for row in range(1, 101)]


@pytest.fixture
def workbook(http: Http) -> int:
    reply = http.add_file("grettle.xlsx", xlsx({"Grettle costs": ROWS, "Other": [["Grettle"]]}))
    assert reply.json.get("status") == "completed", reply.body
    return int(reply.json["document_id"])


def test_the_cells_of_a_citation_come_with_some_around_them(http: Http, workbook: int) -> None:
    answer = http("GET", f"/api/v1/documents/{workbook}/table?sheet=Grettle%20costs&range=E10:F12").json
    assert (answer["sheet"], answer["range"], answer["first_row"]) == ("Grettle costs", "E10:F12", 5)
    assert answer["columns"] == list("BCDEFGHI")
    assert len(answer["rows"]) == 13
    assert answer["rows"][5][3] == "Grettle 10E"
    assert answer["cited"] == {"rows": [10, 12], "columns": ["E", "F"]}


def test_a_citation_names_cells_that_can_be_shown(http: Http, workbook: int) -> None:
    hit = http("POST", "/api/v1/search", {"query": "Grettle 57C", "mode": "fts"}).json["results"][0]
    cells = hit["anchor"]["heading"].split(" > ")[1]
    path = f"/api/v1/documents/{workbook}/table?sheet={quote(hit['anchor']['sheet'])}&range={cells}"
    answer = http("GET", path).json
    shown = {text for row in answer["rows"] for text in row}
    assert "Grettle 57C" in shown


def test_a_large_range_is_cut(http: Http, workbook: int) -> None:
    answer = http("GET", f"/api/v1/documents/{workbook}/table?sheet=Grettle%20costs&range=A1:ZZ900").json
    assert (len(answer["rows"]), answer["columns"]) == (60, list("ABCDEFGHIJ"))
    assert answer["cited"] == {"rows": [1, 900], "columns": ["A", "ZZ"]}


def test_a_range_behind_the_last_cell_has_none(http: Http, workbook: int) -> None:
    answer = http("GET", f"/api/v1/documents/{workbook}/table?sheet=Other&range=XFD1048576").json
    assert (answer["rows"], answer["columns"]) == ([], [])


@pytest.mark.parametrize("cells", ["B", "4", "b4", "B0", "B4:", "B4:D9:E1", "XFE1", "A1048577", "A1;DROP"])
def test_what_is_no_range_is_refused(http: Http, workbook: int, cells: str) -> None:
    reply = http("GET", f"/api/v1/documents/{workbook}/table?sheet=Other&range={quote(cells)}")
    assert (reply.status, reply.json["error"]["code"]) == (422, "invalid_request")


def test_a_sheet_that_is_not_there_is_not_found(http: Http, workbook: int) -> None:
    assert http("GET", f"/api/v1/documents/{workbook}/table?sheet=Nowhere&range=A1").status == 404
    document = http.add_file("flat.pdf", pdf(["Grettle without any cells"])).json["document_id"]
    assert http("GET", f"/api/v1/documents/{document}/table?sheet=A&range=A1").status == 404
    assert http("GET", f"/api/v1/documents/{workbook}/table?range=A1").status == 422
