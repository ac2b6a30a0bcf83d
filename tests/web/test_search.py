"""`/`: search as you type, filters in the address, marked words, why a result is here."""

from typing import Any

import pytest
from playwright.sync_api import expect

from support import Http

from .conftest import Tab


@pytest.fixture
def page(tab: Tab) -> Any:
    return tab.open()


def test_results_appear_while_typing_with_their_words_marked(http: Http, page: Any) -> None:
    http.add_note("The tramway to Zwickelheim was opened in autumn.", tags=["zwickel"])
    page.get_by_role("searchbox").press_sequentially("tramway zwickelheim")
    first = page.locator(".result").first
    expect(first).to_contain_text("The tramway to Zwickelheim")
    assert first.locator("mark").all_inner_texts() == ["tramway", "Zwickelheim"]
    assert page.url.endswith("/?q=tramway+zwickelheim")


def test_the_address_alone_shows_the_same_results(http: Http, tab: Tab) -> None:
    http.add_note("Grommelpost is delivered on Tuesdays.", tags=["grommel"])
    page = tab.open("/?q=grommelpost&tag=grommel&mode=fts")
    expect(page.get_by_role("searchbox")).to_have_value("grommelpost")
    expect(page.locator(".result")).to_have_count(1)
    expect(page.get_by_role("combobox")).to_have_value("fts")


def test_a_filter_that_hides_everything_goes_away_with_one_click(http: Http, tab: Tab) -> None:
    http.add_note("Plinthowl nests are found in quarries.", tags=["plinth"])
    page = tab.open("/?q=plinthowl&mode=fts&tag=nosuchtag")
    page.get_by_role("link", name="Search without tag nosuchtag").click()
    expect(page.locator(".result").first).to_contain_text("Plinthowl")
    assert "tag" not in page.url
