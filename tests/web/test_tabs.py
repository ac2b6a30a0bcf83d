"""Many tabs at one engine share one stream of events: a browser opens six connections to an address, and no more."""

from typing import Any

from playwright.sync_api import expect

from support import Http

from .conftest import OpenTab

TABS = 8


def test_eight_tabs_work_and_hear_of_changes_when_the_first_is_closed(
    engine_url: str, http: Http, open_tab: OpenTab
) -> None:
    first = open_tab(engine_url)
    pages = [first.open("/documents")]
    for _ in range(TABS - 1):
        page = first.page.context.new_page()
        page.goto(f"{engine_url}/documents", timeout=10_000)
        pages.append(page)
    for page in pages:
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    http.add_note("Frumblewick tabs", title="Frumblewick one")
    for page in pages:
        expect(link(page, "Frumblewick one")).to_be_visible()
    pages.pop(0).close()
    http.add_note("Frumblewick tabs again", title="Frumblewick two")
    for page in pages:
        expect(link(page, "Frumblewick two")).to_be_visible()


def link(page: Any, title: str) -> Any:
    return page.get_by_role("link", name=title)
