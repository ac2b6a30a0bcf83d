"""`/d/{id}`: a document at the cited place, its text, passages and ledger."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import expect

from made import archive, encoded, pdf, picture, xlsx
from support import Http, StartEngine

from .conftest import OpenTab, Tab

SCHEMES = ("light", "dark")


def added(http: Http, name: str, data: bytes, fields: list[tuple[str, str]] = []) -> int:  # noqa: B006
    reply = http.add_file(name, data, fields)
    assert reply.json.get("status") == "completed", reply.body
    return int(reply.json["document_id"])


def anchor(http: Http, words: str, document: int) -> Any:
    results = http.search(words, mode="fts", top=50)["results"]
    return next(hit["anchor"] for hit in results if hit["document_id"] == document)


def at(anchor: Any) -> str:
    return f"at={anchor['start']}-{anchor['end']}"


def test_a_passage_of_a_pdf_is_boxed_on_its_page(http: Http, tab: Tab) -> None:
    document = added(http, "drumlin.pdf", pdf(["A cover", "Drumlinsworth eels are smoked over alder"]))
    place = anchor(http, "drumlinsworth eels", document)
    page = tab.open(f"/d/{document}?page=2&{at(place)}")
    expect(page.get_by_alt_text("Page 2 of the original")).to_be_visible()
    box = page.locator(".box")
    expect(box).to_have_count(1)
    sheet = page.locator(".sheet").bounding_box()
    assert sheet["y"] < box.bounding_box()["y"] < sheet["y"] + sheet["height"] / 4
    expect(page.get_by_text("of 2", exact=True)).to_be_visible()


def test_links_lead_from_document_to_document(http: Http, tab: Tab) -> None:
    http.add_note("It is reached from elsewhere", title="Quernmoor")
    source = added(http, "wolds.md", b"# Wolds\n\nSee [[Quernmoor#Mills|the mills]] and [[Nowhere at all]].")
    page = tab.open(f"/d/{source}")
    page.get_by_text("Links to (2)").click()
    expect(page.get_by_text("Nowhere at all is not here")).to_be_visible()
    assert tab.violations() == []
    page.get_by_role("link", name="Quernmoor").click()
    page.get_by_text("Linked from (1)").click()
    expect(page.get_by_role("link", name="Wolds")).to_be_visible()


def test_pages_turn_by_key_and_by_number_and_lead_back_to_the_passage(http: Http, tab: Tab) -> None:
    document = added(http, "turning.pdf", pdf([f"Ferrelby leaf {number}" for number in range(1, 6)]))
    page = tab.open(f"/d/{document}?page=2&{at(anchor(http, 'ferrelby leaf 2', document))}")
    expect(page.locator(".box")).not_to_have_count(0)
    page.keyboard.press("]")
    expect(page.get_by_alt_text("Page 3 of the original")).to_be_visible()
    expect(page.locator(".box")).to_have_count(0)
    expect(page.get_by_text("not known")).to_have_count(0)
    page.keyboard.press("[")
    expect(page.locator(".box")).not_to_have_count(0)
    page.get_by_label("Page", exact=True).fill("5")
    page.get_by_label("Page", exact=True).press("Enter")
    expect(page.get_by_alt_text("Page 5 of the original")).to_be_visible()
    expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    page.get_by_role("button", name="Back to the passage on page 2").click()
    expect(page.get_by_alt_text("Page 2 of the original")).to_be_visible()


def test_a_link_without_a_page_finds_the_page_of_the_passage(http: Http, tab: Tab) -> None:
    leaves = [f"Gannetby record number {number} of many" for number in range(1, 30)]
    document = added(http, "gannetby.pdf", pdf(leaves))
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    start = text.index(leaves[22])
    page = tab.open(f"/d/{document}?at={start}-{start + len(leaves[22])}")
    expect(page.get_by_alt_text("Page 23 of the original")).to_be_visible()
    expect(page.locator(".box")).to_have_count(1)


def test_where_only_the_page_is_known_it_says_so_and_reads_again(http: Http, tab: Tab) -> None:
    document = added(http, "lapwing.pdf", pdf(["Lapwingham cover", "Lapwingham tide gauge"]))
    page = tab.open(f"/d/{document}?page=1&{at(anchor(http, 'lapwingham tide', document))}")  # it stands on page 2
    expect(page.get_by_text("where exactly is not known")).to_be_visible()
    expect(page.locator(".box")).to_have_count(0)
    assert tab.violations() == []
    with page.expect_response(re.compile("/reread$")) as asked:
        page.get_by_role("button", name="Read again").click()
    assert asked.value.request.post_data_json == {"pages": [1], "force_ocr": False}
    assert http.ended(asked.value.json()["job_id"])["status"] == "completed"


def test_a_citation_quotes_the_passage_and_leads_back_to_it(http: Http, engine_url: str, open_tab: OpenTab) -> None:
    document = added(http, "curlew.txt", b"Before it.\n\nCurlewby mill grinds\nbarley only.\n\nAfter it.")
    tab = open_tab(engine_url, permissions=["clipboard-read", "clipboard-write"])
    page = tab.open(f"/d/{document}?at=12-45")
    page.get_by_role("button", name="Copy citation").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    link = f"{engine_url}/d/{document}?at=12-45"
    assert copied == f"> Curlewby mill grinds\n> barley only.\n>\n> [curlew.txt]({link})\n"
    page.goto(link)
    assert page.locator("mark.cited").text_content() == "Curlewby mill grinds\nbarley only."


def test_page_900_of_a_thousand_shows_within_half_a_second(http: Http, tab: Tab) -> None:
    document = added(http, "thousand.pdf", pdf([f"Oxlip census sheet {number}" for number in range(1, 1001)]))
    tab.open("/")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    place = anchor(http, "oxlip census 900", document)
    took = []
    for page in range(900, 906):  # another page each time: nothing is kept from before
        begun = time.monotonic()
        tab.open(f"/d/{document}?page={page}&{at(place)}")
        tab.page.locator(f'img[alt="Page {page} of the original"]').wait_for()
        took.append(time.monotonic() - begun)
    assert min(took) < 0.5, took
    images = {re.sub(r".*/pages/(\d+)/image.*", r"\1", url) for url in asked if "/image" in url}
    assert images == {str(page) for page in range(900, 906)}
    expect(tab.page.get_by_text("of 1,000", exact=True)).to_be_visible()


def test_the_cited_text_is_the_engines_to_the_letter(http: Http, tab: Tab) -> None:
    paragraphs = [f"Wimbrel {number} 😀 sang 𝒶 song by the mill.\r\n\tIndented  twice." for number in range(2000)]
    document = added(http, "wimbrel.txt", "\n\n".join(paragraphs).encode())
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()
    start = text.index("Wimbrel 1500")
    end = text.index("Wimbrel 1502")
    page = tab.open(f"/d/{document}?at={start}-{end}")
    mark = page.locator("mark.cited")
    expect(mark).to_be_in_viewport()
    assert mark.evaluate("mark => mark.textContent") == text[start:end]
    shown = page.locator(".text").evaluate("text => text.textContent")
    assert len(shown) < 20000  # not all of it
    page.get_by_role("button", name="More above").click()
    expect(page.locator(".text")).to_contain_text("Wimbrel 1200 ")
    page.get_by_role("button", name="More below").click()
    expect(page.locator(".text")).to_contain_text("Wimbrel 1800 ")
    assert mark.evaluate("mark => mark.textContent") == text[start:end]
    assert page.locator(".text").evaluate("text => text.textContent") in text


@pytest.mark.parametrize(
    ("place", "shown"),
    [
        ("at=999999-1000000", "The text has no such place"),
        ("at=9-3", "Ouselbeck weir"),
        ("at=x", "Ouselbeck weir"),
        ("at=0-99999999999999999", "Ouselbeck weir"),
        ("page=abc&at=3-5", "Ouselbeck weir"),
    ],
)
def test_a_place_that_is_none_does_no_harm(http: Http, tab: Tab, place: str, shown: str) -> None:
    document = added(http, "ousel.txt", b"The Ouselbeck weir was mended in May.")
    page = tab.open(f"/d/{document}?{place}")
    expect(page.locator(".text-window")).to_contain_text(shown)


def test_cited_cells_are_marked_in_their_table(http: Http, tab: Tab) -> None:
    rows: list[list[str | int | None]] = [["Crop", "Tons"]]
    rows += [[f"Skirret {number}", number] for number in range(1, 200)]
    document = added(http, "skirret.xlsx", xlsx({"A1": rows, "Elsewhere": [["Lovage", 3]]}))
    place = anchor(http, "skirret 7", document)
    page = tab.open(f"/d/{document}?{at(place)}")
    expect(page.get_by_role("cell", name="Skirret 7", exact=True).locator("mark.cited")).to_be_visible()
    marked = page.locator("mark.cited").all_inner_texts()
    text = http("GET", f"/api/v1/documents/{document}/text").body.decode()[place["start"] : place["end"]]
    assert all(cell in text for cell in marked)
    assert "Skirret 55" not in marked  # of the same table, but not of the passage
    assert tab.violations() == []
    page.get_by_role("button", name="Rows below").click()
    expect(page.get_by_role("cell", name="Skirret 70", exact=True)).to_be_visible()
    page.get_by_role("combobox", name="Sheet", exact=True).select_option("Elsewhere")
    expect(page.get_by_role("cell", name="Lovage", exact=True)).to_be_visible()
    expect(page.locator("mark.cited")).to_have_count(0)


def test_passages_are_links_to_their_places(http: Http, tab: Tab) -> None:
    text = "\n\n".join(
        f"Tamarack stanza {number} was sung about the long winter of that year." for number in range(900)
    )
    document = added(http, "tamarack.txt", text.encode())
    page = tab.open(f"/d/{document}?show=passages&q=tamarack")
    expect(page.locator(".passages > li")).to_have_count(20)
    expect(page.locator(".passages mark").first).to_have_text("Tamarack")
    page.get_by_role("link", name="After").click()
    page.get_by_role("link", name="Passage 25", exact=True).click()
    expect(page.locator("mark.cited")).to_be_in_viewport()
    chunk = http("GET", f"/api/v1/documents/{document}?first_chunk=24&max_chunks=1").json["chunks"][0]
    assert page.locator("mark.cited").evaluate("mark => mark.textContent").strip() == chunk["text"].strip()


def test_the_ledger_is_counted_filtered_and_read_again(http: Http, tab: Tab) -> None:
    pages: list[str | Image.Image] = [
        "Burdock hall has a text that is long enough to be read",
        picture(size=(612, 792)),
    ]
    document = added(http, "burdock.pdf", pdf(pages))
    page = tab.open(f"/d/{document}?show=ledger")
    expect(page.locator(".list > li")).to_have_count(2)
    page.get_by_role("link", name="empty 1").click()
    expect(page.locator(".list > li")).to_have_count(1)
    expect(page.locator(".list > li")).to_contain_text("page 2")
    assert tab.violations() == []
    with page.expect_response(re.compile("/reread$")) as asked:
        page.get_by_role("button", name="Read this page by OCR").click()
    assert asked.value.request.post_data_json == {"pages": [2], "force_ocr": True}
    assert http.ended(asked.value.json()["job_id"])["status"] == "completed"
    expect(page.get_by_role("button", name="Read this page by OCR")).to_be_enabled()  # it is empty still
    page.get_by_role("link", name="page 2").click()
    expect(page.get_by_alt_text("Page 2 of the original")).to_be_visible()


def test_tags_change_in_place(http: Http, tab: Tab) -> None:
    document = added(http, "teasel.txt", b"Teaselmoor carding mill", [("tags", "carding")])
    page = tab.open(f"/d/{document}")
    field = page.get_by_label("Add a tag")
    field.fill("wool & water")
    field.press("Enter")
    expect(page.get_by_role("link", name="wool & water")).to_be_visible()
    page.get_by_role("button", name="Remove the tag carding").click()
    expect(page.get_by_role("link", name="carding")).to_have_count(0)
    assert http("GET", f"/api/v1/documents/{document}").json["tags"] == ["wool & water"]


def test_a_document_changed_elsewhere_is_shown_as_it_is(http: Http, tab: Tab) -> None:
    document = added(http, "pimpernel.txt", b"Pimpernel hedges were laid")
    page = tab.open(f"/d/{document}")
    expect(page.get_by_role("heading", level=1)).to_have_text("pimpernel.txt")
    page.wait_for_timeout(500)
    http("POST", f"/api/v1/documents/{document}/tags", {"add": ["laidlater"]})
    expect(page.get_by_role("link", name="laidlater")).to_be_visible()


def test_the_original_is_downloaded_and_never_opened(start_engine: StartEngine, open_tab: OpenTab) -> None:
    engine = start_engine(KB_API_KEY="fennel")
    content = b"<script>window.ran=1</script><p>Fennelworth gate</p>"
    document = added(Http(engine.url, {"Authorization": "Bearer fennel"}), "fennel.html", content)
    tab = open_tab(engine.url)
    page = tab.open(f"/d/{document}#key=fennel")
    expect(page.get_by_role("button", name="Download original")).to_be_visible()
    for ask in (lambda: page.keyboard.press("o"), page.get_by_role("button", name="Download original").click):
        with page.expect_download() as download:
            ask()
        assert Path(download.value.path()).read_bytes() == content
        assert "fennel" not in download.value.url.partition("?")[2]
        assert page.url.endswith(f"/d/{document}")


def test_deleting_asks_first(http: Http, tab: Tab) -> None:
    document = added(http, "yarrow.txt", b"Yarrowdale timetable of carts")
    page = tab.open(f"/d/{document}")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile("/$"))
    assert http("GET", f"/api/v1/documents/{document}").status == 404


def test_an_unknown_document_says_so(tab: Tab) -> None:
    for path in ("/d/99999999", "/d/no%20such", "/n/99999999"):
        page = tab.open(path)
        expect(page.get_by_role("heading", level=1)).to_have_text("There is no such document")
        assert tab.violations() == []


def test_a_note_has_its_versions_here_too(http: Http, tab: Tab) -> None:
    note = http.add_note("Sallowfield ferry runs hourly")
    http("PATCH", f"/api/v1/notes/{note}", {"text": "Sallowfield ferry runs daily"})
    page = tab.open(f"/d/{note}?show=versions")
    page.get_by_role("button", name="Compare version 1").click()
    expect(page.locator(".diff del")).to_have_text("hourly")
    expect(page.locator(".diff ins")).to_have_text("daily")
    page.keyboard.press("e")
    expect(page.get_by_label("Text")).to_have_value("Sallowfield ferry runs daily")


HOSTILE = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>'


def test_nothing_of_a_document_runs(http: Http, tab: Tab) -> None:
    text = f"{HOSTILE} [link](javascript:window.ran=1) Hemlockshaw"
    metadata = json.dumps({HOSTILE: HOSTILE, "list": [HOSTILE]})
    given = [("tags", HOSTILE), ("title", HOSTILE), ("metadata", metadata), ("source_path", f"/tmp/{HOSTILE}")]
    ids = [
        added(http, "hemlock.txt", text.encode(), given),
        added(http, "hemlock.html", f"<h1>Hemlockshaw</h1>{HOSTILE}<p>page</p>".encode()),
        added(
            http,
            "hemlock.svg",
            b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.ran=1</script><text>Hemlockshaw</text></svg>',
        ),
        added(http, "hemlock.xlsx", xlsx({"Hemlockshaw": [["&lt;img src=x onerror=window.ran=1>", "b"]]})),
    ]
    for document in ids:
        for show in ("", "text", "passages", "ledger"):
            page = tab.open(f"/d/{document}?show={show}&q=%3Cscript%3E&at=0-20")
            expect(page.locator("main section")).not_to_have_count(0)
            for summary in page.locator("details.metadata summary").all():
                summary.click()
            assert page.evaluate("window.ran") is None
            assert page.locator('main img:not([alt^="Page"]), main script, main a[href^="javascript"]').count() == 0


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_section_is_open_to_all_and_fits_a_narrow_window(
    http: Http, engine_url: str, open_tab: OpenTab, scheme: str
) -> None:
    long = "Sneezewort" * 40
    scan = added(http, "sneezewort.pdf", pdf([f"Sneezewort acre\n{long}", picture("Sneezewort scan", (612, 792))]))
    image = added(http, "sneezewort.png", encoded(picture("Sneezewort")))
    plain = added(
        http, f"{long[:150]}.txt", f"{long}\n\nSneezewort acre".encode(), [("tags", long[:150]), ("tags", "b")]
    )
    note = http.add_note(f"{long}\n\n- Sneezewort\n\n| {long} | b |\n|---|---|\n| c | {long} |", title="Sneezewort")
    tab = open_tab(engine_url, color_scheme=scheme, viewport={"width": 320, "height": 640})  # 1280 px at 400%
    for document, shows in (
        (scan, ("original", "text", "passages", "ledger")),
        (image, ("original", "ledger")),
        (plain, ("text", "passages", "ledger")),
        (note, ("text", "versions")),
    ):
        for show in shows:
            page = tab.open(f"/d/{document}?show={show}")
            expect(page.locator("main section").first).to_be_visible()
            expect(page.get_by_text("Loading…")).to_have_count(0)
            assert tab.violations() == [], show
            assert page.evaluate("document.documentElement.scrollWidth") <= 320, (document, show)


def test_members_of_an_archive_lead_to_their_documents_and_back(http: Http, tab: Tab) -> None:
    parent = added(
        http, "letters.zip", archive({"letters/one.txt": "Pellinore one", "letters/two.txt": "Pellinore two"})
    )
    page = tab.open(f"/d/{parent}")
    page.get_by_role("link", name="letters/two.txt").click()
    expect(page.get_by_role("heading", name="two.txt")).to_be_visible()
    expect(page.get_by_text("letters/two.txt", exact=True)).to_be_visible()
    page.get_by_role("link", name=f"Found in document {parent}:").click()
    expect(page.get_by_role("heading", name="letters.zip")).to_be_visible()
