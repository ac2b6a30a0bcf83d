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


def test_a_path_and_a_day_narrow_the_results(http: Http, tab: Tab) -> None:
    for place in ("/quuzel/in/a.md", "/quuzel/out/b.md"):
        http.add_note(f"Quuzelfish swim at {place}", source_path=place)
    page = tab.open("/?q=quuzelfish&mode=fts")
    expect(page.locator(".result")).to_have_count(2)
    page.get_by_text("Path and dates").click()
    page.get_by_label("From (a folder ends with /)").fill("/quuzel/in/")
    page.keyboard.press("Tab")
    expect(page.locator(".result")).to_have_count(1)
    page.get_by_label("Added before").fill("2001-01-01")
    page.keyboard.press("Tab")
    expect(page.locator(".result")).to_have_count(0)
    page.get_by_role("link", name="Search without before 2001-01-01").click()
    expect(page.locator(".result")).to_have_count(1)


def test_an_older_answer_never_replaces_a_newer_one(http: Http, tab: Tab) -> None:
    http.add_note("Snorvel pumps need oil.", tags=["snorvel"])
    http.add_note("Brindlemark pumps need grease.", tags=["snorvel"])
    page = tab.open("/")
    held: list[Any] = []

    def hold_the_first(route: Any) -> None:
        if "snorvel pumps" in (route.request.post_data or "") and not held:
            held.append(route)
        else:
            route.continue_()

    page.route("**/api/v1/search", hold_the_first)
    field = page.get_by_role("searchbox")
    field.fill("snorvel pumps")
    field.fill("brindlemark pumps")
    expect(page.locator(".result").first).to_contain_text("Brindlemark")
    answer = http("POST", "/api/v1/search", {"query": "snorvel pumps", "explain": True})
    assert held
    held[0].fulfill(body=answer.body, content_type="application/json")
    page.wait_for_timeout(200)
    expect(page.locator(".result").first).to_contain_text("Brindlemark")


def test_results_stand_in_the_page_soon_after_the_answer(http: Http, tab: Tab) -> None:
    """From the last byte of the answer to the change of the list, over 50 keystrokes."""
    for number in range(40):
        http.add_note(f"Lantern number {number} hangs over the quillstone bridge.", tags=["quillstone"])
    page = tab.open("/?q=quillstone&tag=quillstone")
    expect(page.locator(".result")).to_have_count(20)
    page.evaluate(
        """() => {
            window.delays = [];
            const real = Response.prototype.json;
            Response.prototype.json = async function () {
                const data = await real.call(this);
                if (!this.url.endsWith("/search")) return data;
                const came = performance.now();
                const list = document.querySelector(".search");
                const watch = new MutationObserver(() => {
                    window.delays.push(performance.now() - came);
                    watch.disconnect();
                });
                watch.observe(list, { subtree: true, childList: true, characterData: true });
                return data;
            };
        }"""
    )
    field = page.get_by_role("searchbox")
    field.focus()
    words = " lantern bridge number hangs over the stone quill wa"
    for letter in words[:50]:
        with page.expect_response("**/api/v1/search") as answer:
            page.keyboard.press("Space" if letter == " " else letter)
        answer.value.finished()  # the next letter would abort it
    page.wait_for_timeout(300)
    delays = sorted(page.evaluate("window.delays"))
    assert len(delays) >= 40
    assert delays[int(len(delays) * 0.95)] <= 50, delays


def test_the_way_back_from_a_document_leads_to_the_same_place_among_the_same_results(http: Http, tab: Tab) -> None:
    for number in range(14):
        text = f"Quendelrast hut {number} has {number + 3} beds.\n" + "It is open in summer.\n" * 4
        http.add_note(text, tags=["quendel"])
    page = tab.open("/?q=quendelrast+hut&tag=quendel&mode=fts")
    link = page.locator("#result-9 h2 a")
    link.scroll_into_view_if_needed()
    page.evaluate("new Promise(requestAnimationFrame)")
    place = page.evaluate("scrollY")
    assert place > 300
    back = page.get_by_role("link", name="Back to the results")
    for go_back in (page.go_back, back.click, lambda: page.keyboard.press("Escape")):
        link.click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Quendelrast hut")
        assert page.evaluate("document.activeElement.id") == "content"
        go_back()
        expect(page.locator("#result-9.chosen")).to_be_in_viewport()
        page.wait_for_function("place => Math.abs(scrollY - place) < 2", arg=place)
        assert page.url.endswith("&tag=quendel&mode=fts")
    page.get_by_role("link", name="Documents", exact=True).click()
    assert page.evaluate("scrollY") == 0


def test_enter_goes_from_the_field_to_the_chosen_result_and_opens_it_there(http: Http, page: Any) -> None:
    for number in range(3):
        http.add_note(f"Wumbeltrout pond {number} is stocked in May.", tags=["wumbel"])
    page.get_by_role("searchbox").press_sequentially("wumbeltrout pond")
    expect(page.locator(".result").first).to_contain_text("Wumbeltrout")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator("#result-1 h2 a")).to_be_focused()
    page.keyboard.press("j")
    title = page.locator("#result-2 h2").inner_text()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
