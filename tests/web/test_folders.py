"""The view of watched folders: watch one, see why a file is not indexed, confirm a deletion, stop."""

from pathlib import Path

from playwright.sync_api import expect

from support import Http, eventually

from .conftest import OpenTab


def test_a_folder_is_watched_explained_confirmed_and_let_go(engine_url: str, open_tab: OpenTab, tmp_path: Path) -> None:
    http, root = Http(engine_url), tmp_path / "root"
    root.mkdir()
    for number in range(6):
        (root / f"{number}.md").write_text(f"Text {number} of a watched folder.")
    (root / "empty.md").write_text("")
    page = open_tab(engine_url).open("/folders")
    page.get_by_label("Path on the engine's machine").fill(str(root))
    page.get_by_role("button", name="Watch", exact=True).click()
    card = page.locator("li.card", has_text=str(root))
    expect(card.get_by_text("6 of 6 indexed")).to_be_visible(timeout=60_000)
    expect(card.get_by_text("1 left out")).to_be_visible()
    card.get_by_role("button", name="Not indexed").click()
    expect(card.get_by_text("empty.md")).to_be_visible()

    for number in range(6):
        (root / f"{number}.md").unlink()
    expect(card.get_by_text("6 files are missing")).to_be_visible(timeout=60_000)
    card.get_by_role("button", name="Remove missing files").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove missing files").click()
    expect(card.get_by_text("0 of 0 indexed")).to_be_visible(timeout=60_000)

    card.get_by_role("button", name="Stop watching").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop watching").click()
    expect(card).to_have_count(0)
    eventually(lambda: all(one["path"] != str(root) for one in http("GET", "/api/v1/folders").json["folders"]))
