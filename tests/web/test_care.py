"""Looking after what is there: documents many at once, tags, duplicates, system, agents."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from support import EngineProcess, Http

from .conftest import OpenTab


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineProcess]:
    engine = EngineProcess(tmp_path / "data")
    yield engine
    engine.stop()


@pytest.fixture
def http(engine: EngineProcess) -> Http:
    return Http(engine.url)


@pytest.fixture
def show(engine: EngineProcess, open_tab: OpenTab) -> Any:
    return open_tab(engine.url).open


def tags_of(http: Http) -> dict[str, int]:
    return {one["tag"]: one["documents"] for one in http("GET", "/api/v1/tags").json["tags"]}


def test_selected_documents_get_a_tag_and_are_deleted_after_a_question(http: Http, show: Any) -> None:
    for number in range(5):
        http.add_note(f"Shelf number {number} of the cellar")
    page = show("/documents")
    page.get_by_label("Select Shelf number 1 of the cellar").check()
    page.get_by_label("Select Shelf number 3 of the cellar").check()
    page.get_by_label("Tag", exact=True).fill("cellar")
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_text("2 documents tagged.")).to_be_visible()
    assert tags_of(http) == {"cellar": 2}
    page.get_by_label("Select Shelf number 1 of the cellar").check()
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 1 document").click()
    expect(page.get_by_role("link", name="Shelf number 1")).to_have_count(0)
    page.get_by_role("button", name="Show the trash").click()
    expect(page.get_by_role("button", name="Restore: Shelf number 1 of the cellar")).to_be_visible()
    assert http("GET", "/api/v1/status").json["documents"]["total"] == 4


def test_a_deletion_is_undone_at_once_or_from_the_trash(http: Http, show: Any) -> None:
    note = http.add_note("The lamp on the stairs", source_path="/lamp.md")
    page = show(f"/d/{note}")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    expect(page.get_by_role("heading", name="The lamp on the stairs", level=1)).to_be_visible()

    http("DELETE", f"/api/v1/documents/{note}")
    other = http.add_note("Another lamp", source_path="/lamp.md")
    page.get_by_role("link", name="Trash", exact=True).first.click()
    page.get_by_role("button", name="Restore: The lamp on the stairs").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"Document {other} has the source path")
    page.get_by_role("dialog").get_by_role("button", name="Restore without its path").click()
    expect(page.get_by_role("heading", name="The trash is empty")).to_be_visible()
    assert http("GET", f"/api/v1/documents/{note}").json["source_path"] is None

    for id_ in (note, other, http.add_note("A third lamp")):
        http("DELETE", f"/api/v1/documents/{id_}")
    page.get_by_role("button", name="Delete for good: A third lamp").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("button", name=re.compile("^Restore"))).to_have_count(2)
    page.get_by_role("button", name="Empty the trash").click()
    page.get_by_role("dialog").get_by_role("button", name="Empty the trash").click()
    expect(page.get_by_role("heading", name="The trash is empty")).to_be_visible()
    assert http("GET", "/api/v1/trash").json["total"] == 0


def test_all_that_match_are_changed_beyond_the_page_that_is_shown(http: Http, show: Any) -> None:
    for number in range(130):
        http.add_note(f"Crate {number} in the hangar", tags=["hangar"] if number % 2 else ["hangar", "odd"])
    page = show("/documents?tag=hangar")
    page.get_by_label("Select all of this page").check()
    expect(page.get_by_text("100 documents selected")).to_be_visible()
    page.get_by_role("button", name="Select all 130 that match").click()
    page.get_by_label("Tag", exact=True).fill("counted")
    page.get_by_role("button", name="Add tag").click()
    expect(page.get_by_text("130 documents tagged.")).to_be_visible(timeout=30_000)
    assert tags_of(http)["counted"] == 130


def test_the_list_is_narrowed_and_sorted_by_its_address(http: Http, show: Any) -> None:
    http.add_file("beta.md", b"# Beta\n\nSecond letter")
    http.add_file("alpha.md", b"# Alpha\n\nFirst letter")
    http.add_note("Gamma note")
    page = show("/documents?type=markdown&sort=filename")
    titles = page.locator("td.filename > a")
    expect(titles).to_have_text(["Alpha", "Beta"])
    page.get_by_role("link", name="Title").click()
    expect(titles).to_have_text(["Beta", "Alpha"])
    page.get_by_role("searchbox", name="Words of the title").fill("alph")
    expect(titles).to_have_text(["Alpha"])
    assert "q=alph" in page.url


def test_rows_are_chosen_selected_and_opened_by_keys(http: Http, show: Any) -> None:
    for word in ("first", "second"):
        http.add_note(f"The {word} row")
    page = show("/documents")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_label("Select The first row")).to_be_checked()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/n/1$"))


def test_a_tag_is_renamed_and_merged_after_a_question(http: Http, show: Any) -> None:
    http.add_note("One", tags=["colour"])
    http.add_note("Two", tags=["color"])
    page = show("/tags")
    page.get_by_role("button", name="Rename color").click()
    page.get_by_label("New name").fill("colour")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    page.get_by_role("button", name="Merge both tags").click()
    expect(page.get_by_text("2 documents", exact=True)).to_be_visible()
    assert tags_of(http) == {"colour": 2}


def test_two_notes_become_one_with_the_tags_of_both(http: Http, show: Any) -> None:
    keep = http.add_note("The ferry leaves at nine.", tags=["travel"])
    http.add_note("The ferry leaves at nine!", tags=["sea"])
    page = show("/duplicates")
    expect(page.get_by_label("Text of the merged note")).to_be_visible()
    page.get_by_label("Text of the merged note").fill("The ferry leaves at nine, from pier 2.")
    page.get_by_role("button", name="Merge into").click()
    expect(page.get_by_text("No two notes say nearly the same")).to_be_visible()
    merged = http("GET", f"/api/v1/documents/{keep}").json
    total = http("GET", "/api/v1/status").json["documents"]["total"]
    assert (merged["text"], sorted(merged["tags"]), total) == (
        "The ferry leaves at nine, from pier 2.",
        ["sea", "travel"],
        1,
    )


def test_the_doctor_looks_and_a_backup_is_downloaded(http: Http, show: Any) -> None:
    http.add_note("Something to keep")
    page = show("/system")
    expect(page.get_by_text("Healthy")).to_be_visible()
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.get_by_text("Everything is well.")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("button", name="Download a backup").click()
    assert started.value.path().stat().st_size > 10_000
    assert "key" not in started.value.url


def test_an_agent_that_called_has_its_light_on(http: Http, show: Any) -> None:
    http("GET", "/api/v1/status", X_KB_Agent="claude-code 2.1")
    page = show("/connect")
    card = page.locator(".agent", has_text="Claude Code")
    expect(card).to_contain_text("Has called:")
    card.get_by_text("By hand").click()
    expect(card.locator("pre")).to_contain_text('"mcpServers"')
    expect(page.locator(".agent", has_text="Cursor")).to_contain_text("Has not called")
