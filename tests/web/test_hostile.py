"""Nothing of a document ever runs: titles, names, texts, tags and metadata that carry script are shown as text."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from support import EngineProcess, Http

from .conftest import OpenTab

ATTACK = '<img src=x onerror="window.hit=1"><script>window.hit=1</script>\'"><svg onload=window.hit=1>'
LINK = "[click](javascript:window.hit=1) <a href='javascript:window.hit=1'>there</a>"
SVG = (
    b'<svg xmlns="http://www.w3.org/2000/svg" onload="window.hit=1"><script>window.hit=1</script>'
    b"<text>Marrowgate drawing</text></svg>"
)
PAGE = b"<html><body onload='window.hit=1'><script>window.hit=1</script><p>Marrowgate letter</p></body></html>"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    engine = EngineProcess(tmp_path_factory.mktemp("hostile") / "data")
    http = Http(engine.url)
    text = f"Marrowgate\n\n{ATTACK}\n\n{LINK}"
    for twin in ("", "."):
        http.add_note(text + twin, title=f"Marrowgate {ATTACK}", tags=[ATTACK[:60]], metadata={ATTACK: ATTACK})
    http.add_file(f"marrowgate {ATTACK[:40]}.svg".replace("/", ""), SVG)
    http.add_file("marrowgate.html", PAGE)
    http.add_file("marrowgate.md", text.encode(), [("source_path", f"/srv/{ATTACK}"), ("tags", '["a b"]')])
    yield engine
    engine.stop()


PATHS = ["/?q=marrowgate", "/", "/documents", "/tags", "/duplicates", "/jobs", "/d/1", "/n/1", "/d/3", "/d/4", "/d/5"]


@pytest.mark.parametrize("path", PATHS)
def test_what_documents_carry_is_text(engine: EngineProcess, open_tab: OpenTab, path: str) -> None:
    page = open_tab(engine.url).open(path)
    expect(page.locator("main")).to_be_visible()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    for summary in page.locator("main summary").all():
        summary.click()
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None
    assert page.locator("main script, main [onerror], main [onload], main a[href^='javascript']").count() == 0


def test_a_question_that_carries_script_is_text(engine: EngineProcess, open_tab: OpenTab) -> None:
    page = open_tab(engine.url).open("/")
    page.get_by_role("searchbox").fill(ATTACK)
    page.wait_for_timeout(300)
    assert page.evaluate("window.hit") is None


def test_originals_that_a_browser_could_run_are_downloads(engine: EngineProcess) -> None:
    http = Http(engine.url)
    for document in (3, 4):
        headers: dict[str, Any] = http("GET", f"/api/v1/documents/{document}/original").headers
        assert headers["content-disposition"].startswith("attachment")
        assert headers["x-content-type-options"] == "nosniff"
