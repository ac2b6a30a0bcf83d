"""Every view can be used by all: no violation that axe finds, in light and dark, and no sideways scrolling on a small
screen or at 400% zoom; with data, empty, in error, and while a key is missing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from support import EngineProcess, Http

from .conftest import OpenTab, Tab

VIEWS = ("/", "/documents", "/jobs", "/tags", "/duplicates", "/folders", "/trash", "/system", "/connect", "/n/new")
SCHEMES = ("light", "dark")
PHONE = {"viewport": {"width": 360, "height": 740}}
ZOOMED = {"viewport": {"width": 320, "height": 256}}  # 1,280 x 1,024 at 400%


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """An engine with documents, twins among the notes, tags, a failed job, a watched folder, and a full trash."""
    engine = EngineProcess(tmp_path_factory.mktemp("filled") / "data")
    http = Http(engine.url)
    long = "Unterbezirksverwaltungszuständigkeit" * 3
    http.add_note("The greenhouse is watered at dawn.", tags=["garden", long])
    http.add_note("The greenhouse is watered at dawn, by Ines.", tags=["garden"])
    http.add_note(f"{long}\n\nhttps://example.org/{'x' * 200}", title=long)
    http.add_file("plan.md", b"# Greenhouse\n\n## Watering\n\n" + b"Water the greenhouse before noon. " * 200)
    http.add_file("broken.pdf", b"%PDF-1.4 this is no PDF")
    http("DELETE", f"/api/v1/documents/{http.add_note('deleted', title=long)}")
    folder = tmp_path_factory.mktemp("folder") / long[:80]
    folder.mkdir()
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 this is no PDF")
    http("POST", "/api/v1/folders", {"path": str(folder), "tags": ["garden"]})
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    engine = EngineProcess(tmp_path_factory.mktemp("empty") / "data")
    yield engine
    engine.stop()


def settled(tab: Tab, path: str) -> Any:
    """The page once everything that it asks for has come."""
    page = tab.open(path)
    expect(page.locator("main")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    return page


def sideways(page: Any) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("path", [*VIEWS, "/?q=greenhouse+watering", "/d/1", "/d/4", "/n/1"])
def test_nothing_keeps_people_out(filled: EngineProcess, open_tab: OpenTab, path: str, scheme: str) -> None:
    tab = open_tab(filled.url, color_scheme=scheme)
    settled(tab, path)
    assert tab.violations() == []


@pytest.mark.parametrize("path", ["/", "/documents", "/jobs", "/tags", "/duplicates", "/trash", "/?q=nothing", "/d/99"])
def test_nothing_keeps_people_out_of_an_empty_one(empty: EngineProcess, open_tab: OpenTab, path: str) -> None:
    tab = open_tab(empty.url)
    settled(tab, path)
    assert tab.violations() == []


@pytest.mark.parametrize("screen", [PHONE, ZOOMED], ids=["phone", "zoomed"])
@pytest.mark.parametrize("path", [*VIEWS, "/?q=greenhouse+watering", "/d/1", "/d/4", "/n/3"])
def test_a_small_screen_scrolls_one_way_only(
    filled: EngineProcess, open_tab: OpenTab, path: str, screen: dict[str, Any]
) -> None:
    page = settled(open_tab(filled.url, **screen), path)
    assert sideways(page) == 0
    if screen is PHONE:
        page.get_by_role("button", name="Menu").click()
        expect(page.get_by_role("link", name="Documents", exact=True)).to_be_visible()
        assert sideways(page) == 0


def test_an_engine_that_went_away_is_said_in_a_way_that_all_can_read(tmp_path: Path, open_tab: OpenTab) -> None:
    engine = EngineProcess(tmp_path / "data")
    tab = open_tab(engine.url)
    page = settled(tab, "/documents")
    engine.stop()
    expect(page.get_by_role("alert").first).to_contain_text("cannot be reached")
    assert tab.violations() == []
    page.get_by_role("searchbox", name="Search documents").fill("gone")
    expect(page.locator(".notice.error")).to_contain_text("cannot be reached")
    engine = EngineProcess(tmp_path / "data", KB_PORT=engine.url.rsplit(":", 1)[1])
    try:
        expect(page.get_by_text("The knowledge base is empty")).to_be_visible(timeout=30_000)  # without a click
        expect(page.get_by_role("alert")).to_have_count(0)
    finally:
        engine.stop()


def test_a_wrong_key_is_refused_and_the_right_one_opens(tmp_path: Path, open_tab: OpenTab) -> None:
    engine = EngineProcess(tmp_path / "data", KB_API_KEY="sesame")
    try:
        Http(engine.url, {"Authorization": "Bearer sesame"}).add_note("Behind the key")
        tab = open_tab(engine.url)
        page = tab.open("/documents")
        key = page.get_by_label("API key")
        key.fill("wrong")
        key.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That is not the key.")
        assert tab.violations() == []
        key.fill("sesame")
        key.press("Enter")
        expect(page.get_by_role("link", name="Behind the key")).to_be_visible()
        page.reload()
        expect(page.get_by_role("link", name="Behind the key")).to_be_visible()  # kept for this tab
        assert page.evaluate("localStorage.getItem('kb-key')") is None
        page = open_tab(engine.url).open("/documents#key=sesame")
        expect(page.get_by_role("link", name="Behind the key")).to_be_visible()
        assert "sesame" not in page.url
    finally:
        engine.stop()
