"""`/n/new` and `/n/{id}`: notes are written, edited by two at once, compared and restored, and no text is ever lost."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from support import Http, StartEngine

from .conftest import OpenTab, Tab

SCHEMES = ("light", "dark")


def text_of(http: Http, note: int) -> str:
    return str(http("GET", f"/api/v1/documents/{note}").json["text"])


def editing(tab: Tab, note: int) -> Any:
    """The field with the note's text."""
    tab.open(f"/n/{note}?edit=1")
    field = tab.page.get_by_label("Text")
    expect(field).to_be_focused()
    return field


def kept(page: Any) -> None:
    """Wait until the draft is kept in the browser."""
    page.wait_for_function("() => Object.keys(localStorage).some((key) => key.startsWith('kb-draft:'))")


def test_a_note_is_written_with_title_and_tags(http: Http, tab: Tab) -> None:
    page = tab.open("/n/new")
    page.get_by_label("Title").fill("Cowbane orchard")
    page.get_by_label("Tags").fill("pears, old trees")
    page.get_by_label("Text").fill("Cowbane pears **keep** until spring.")
    expect(page.locator(".preview-pane strong")).to_have_text("keep")
    page.keyboard.press("Control+s")
    expect(page).to_have_url(re.compile(r"/n/\d+$"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Cowbane orchard")
    note = http("GET", f"/api/v1/documents/{page.url.rsplit('/', 1)[1]}").json
    assert note["text"] == "Cowbane pears **keep** until spring."
    assert sorted(note["tags"]) == ["old trees", "pears"]
    assert page.evaluate("Object.keys(localStorage).filter((key) => key.startsWith('kb-draft'))") == []


def test_an_empty_note_is_not_saved(tab: Tab) -> None:
    page = tab.open("/n/new")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Write something first")


def test_two_tabs_on_one_note_lose_nothing(http: Http, engine_url: str, open_tab: OpenTab) -> None:
    note = http.add_note("Fleabane list\nfirst line\nlast line")
    mine, theirs = open_tab(engine_url), open_tab(engine_url)
    field, other = editing(mine, note), editing(theirs, note)
    other.fill("Fleabane list\nfirst line of theirs\nlast line")
    theirs.page.keyboard.press("Control+s")
    expect(theirs.page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    field.fill("Fleabane list\nfirst line\nlast line of mine")
    expect(mine.page.get_by_text("This note was changed meanwhile")).to_be_visible()  # before it is saved
    mine.page.keyboard.press("Control+s")
    expect(mine.page.get_by_role("heading", name="Changed by someone else")).to_be_visible()
    expect(mine.page.locator(".diff del")).to_have_text([" ", "of", " ", "theirs"])
    expect(mine.page.locator(".diff")).to_contain_text("last line of mine")
    assert mine.violations() == []
    assert text_of(http, note).endswith("theirs\nlast line")

    mine.page.get_by_role("button", name="Edit a merged text").click()
    merged = mine.page.get_by_label("Text").input_value()
    for line in ("first line of theirs", "last line of mine"):
        assert line in merged
    mine.page.keyboard.press("Control+s")
    expect(mine.page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    assert text_of(http, note) == merged
    assert len(http("GET", f"/api/v1/notes/{note}/versions").json["versions"]) == 3


def conflict(http: Http, tab: Tab, note: int, mine: str, theirs: str) -> Any:
    field = editing(tab, note)
    assert http("PATCH", f"/api/v1/notes/{note}", {"text": theirs}).status == 200
    field.fill(mine)
    tab.page.keyboard.press("Control+s")
    expect(tab.page.get_by_role("heading", name="Changed by someone else")).to_be_visible()
    return tab.page


def test_keeping_mine_leaves_theirs_in_the_history(http: Http, tab: Tab) -> None:
    note = http.add_note("Ragwort begun")
    page = conflict(http, tab, note, "Ragwort mine", "Ragwort theirs")
    page.get_by_role("button", name="Keep mine").click()
    expect(page.get_by_role("button", name="Edit", exact=True)).to_be_visible()
    assert text_of(http, note) == "Ragwort mine"
    versions = http("GET", f"/api/v1/notes/{note}/versions").json["versions"]
    assert [one["text"] for one in versions] == ["Ragwort mine", "Ragwort theirs", "Ragwort begun"]


def test_taking_theirs_keeps_mine_in_the_browser(http: Http, tab: Tab) -> None:
    note = http.add_note("Soapwort begun")
    page = conflict(http, tab, note, "Soapwort mine", "Soapwort theirs")
    page.get_by_role("button", name="Take theirs").click()
    expect(page.locator(".reading")).to_contain_text("Soapwort theirs")
    expect(page.get_by_text("Text that was not saved is kept")).to_be_visible()
    page.get_by_role("button", name="Edit", exact=True).click()  # another edit does not overwrite it
    page.get_by_label("Text").fill("Soapwort third")
    page.keyboard.press("Control+s")
    expect(page.locator(".reading")).to_contain_text("Soapwort third")
    page.get_by_role("button", name="Continue writing it").click()
    expect(page.get_by_label("Text")).to_have_value("Soapwort mine")


def test_a_draft_outlives_a_killed_engine_and_a_reload(
    start_engine: StartEngine, open_tab: OpenTab, tmp_path: Path
) -> None:
    engine = start_engine()
    http = Http(engine.url)
    note = http.add_note("Woundwort begun")
    tab = open_tab(engine.url)
    field = editing(tab, note)
    tab.page.wait_for_timeout(500)  # the stream of events is open
    field.fill("Woundwort draft that must not be lost")
    engine.stop(signal.SIGKILL)
    expect(tab.page.locator(".banner")).to_be_visible()
    tab.page.keyboard.press("Control+s")
    expect(tab.page.locator(".notice.error")).to_contain_text("cannot be reached")
    assert tab.violations() == []
    kept(tab.page)
    start_engine(tmp_path / "data", KB_PORT=engine.url.rsplit(":", 1)[1])
    expect(tab.page.locator(".banner")).to_have_count(0, timeout=15000)
    expect(field).to_have_value("Woundwort draft that must not be lost")
    tab.page.on("dialog", lambda dialog: dialog.accept())
    tab.page.reload()
    tab.page.get_by_role("button", name="Continue writing it").click()
    expect(tab.page.get_by_label("Text")).to_have_value("Woundwort draft that must not be lost")
    tab.page.keyboard.press("Control+s")
    expect(tab.page.locator(".reading")).to_contain_text("must not be lost")
    assert text_of(http, note) == "Woundwort draft that must not be lost"


def test_leaving_with_unsaved_text_asks(http: Http, tab: Tab) -> None:
    note = http.add_note("Figwort begun")
    tab.open("/documents")
    tab.page.evaluate(f"history.pushState(null, '', '/n/{note}?edit=1'); dispatchEvent(new PopStateEvent('popstate'))")
    tab.page.get_by_label("Text").fill("Figwort changed")
    for leave in (
        lambda: tab.page.get_by_role("link", name="Jobs").click(),
        tab.page.go_back,
        lambda: tab.page.keyboard.press("Escape"),
    ):
        leave()
        dialog = tab.page.get_by_role("dialog")
        expect(dialog).to_contain_text("Leave without saving?")
        dialog.get_by_role("button", name="Cancel").click()
        expect(tab.page.get_by_label("Text")).to_have_value("Figwort changed")
        assert f"/n/{note}" in tab.page.url
        tab.page.get_by_label("Text").focus()
    tab.page.get_by_role("link", name="Tags", exact=True).click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Leave").click()
    expect(tab.page).to_have_url(re.compile("/tags$"))
    tab.open(f"/n/{note}")
    tab.page.get_by_role("button", name="Discard it").click()
    tab.page.get_by_role("dialog").get_by_role("button", name="Discard it").click()
    expect(tab.page.get_by_text("Text that was not saved is kept")).to_have_count(0)


def test_a_note_deleted_meanwhile_can_be_saved_as_a_new_one(http: Http, tab: Tab) -> None:
    note = http.add_note("Mugwort begun")
    editing(tab, note).fill("Mugwort rescued")
    http("DELETE", f"/api/v1/documents/{note}")
    tab.page.keyboard.press("Control+s")
    tab.page.get_by_role("button", name="Save as a new note").click()
    expect(tab.page.locator(".reading")).to_contain_text("Mugwort rescued")


def test_by_keyboard_alone_from_search_to_a_restored_version(http: Http, tab: Tab) -> None:
    note = http.add_note("Spikenard jars\nwere sealed with wax")
    http("PATCH", f"/api/v1/notes/{note}", {"text": "Spikenard jars\nwere sealed with pitch"})
    page = tab.open("/")
    keys = page.keyboard

    def tab_to(role: str, name: str) -> None:
        for _ in range(60):
            keys.press("Tab")
            if page.locator(":focus").and_(page.get_by_role(role, name=name)).count():
                return
        raise AssertionError(f"no way to {name} by Tab")

    expect(page.get_by_role("searchbox")).to_be_focused()
    keys.type("spikenard jars")
    expect(page.locator(".result").first).to_contain_text("Spikenard")
    keys.press("Escape")
    keys.press("Enter")
    expect(page).to_have_url(re.compile(r"/[dn]/\d+"))
    expect(page.locator("main h1")).to_contain_text("Spikenard")
    keys.press("e")
    expect(page.get_by_label("Text")).to_be_focused()
    keys.press("Escape")
    expect(page.get_by_label("Text")).to_have_count(0)
    tab_to("link", "History")
    keys.press("Enter")
    expect(page.get_by_role("button", name="Restore version 1")).to_be_visible()
    tab_to("button", "Compare version 1")
    keys.press("Enter")
    expect(page.locator(".diff del")).to_have_text("wax")
    expect(page.locator(".diff ins")).to_have_text("pitch")
    tab_to("button", "Restore version 1")
    keys.press("Enter")
    expect(page.get_by_role("button", name="Restore version 2")).to_be_visible()
    assert text_of(http, note).endswith("wax")


MARKDOWN = """# Bistort

Some **strong**, *slanted*, ~~struck~~ and `a <b>code</b>` words with [a link](https://example.org/a_(b) "t").

- one
  - inner
- [x] done

3. third

> quoted **words**

| a | b |
|---|:-:|
| 1 | 2 |

```html
<i>code</i>
```

#### Deep heading
"""


def test_markdown_becomes_nodes(http: Http, tab: Tab) -> None:
    page = tab.open(f"/n/{http.add_note(MARKDOWN, title='Bistort facts')}")
    shown = page.locator(".markdown")
    expect(shown.locator("strong").first).to_have_text("strong")
    expect(shown.locator("em")).to_have_text("slanted")
    expect(shown.locator("p code")).to_have_text("a <b>code</b>")
    expect(shown.locator("ul ul li")).to_have_text("inner")
    expect(shown.locator("ol")).to_have_attribute("start", "3")
    expect(shown.locator("blockquote strong")).to_have_text("words")
    expect(shown.locator("td").nth(1)).to_have_text("2")
    expect(shown.locator("pre code")).to_have_text("<i>code</i>")
    link = shown.get_by_role("link", name="a link")
    expect(link).to_have_attribute("href", "https://example.org/a_(b)")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    assert tab.violations() == []  # no level of headings is skipped


HOSTILE = [
    "<script>window.ran=1</script>",
    '<img src=x onerror="window.ran=1">',
    "[x](javascript:window.ran=1)",
    "[x](  JaVaScRiPt:window.ran=1)",
    "[x](<java\tscript:window.ran=1>)",
    "[x](data:text/html,<script>window.ran=1</script>)",
    "[x](vbscript:msgbox)",
    "[x](&#106;avascript:window.ran=1)",
    "![x](https://example.org/pixel.png)",
    "<javascript:window.ran=1>",
    "[x](//example.org)",
    "[x](/api/v1/status)",
    "[![x](javascript:window.ran=1)](javascript:window.ran=1)",
]


def test_nothing_of_a_note_runs_or_loads(http: Http, tab: Tab) -> None:
    note = http.add_note("Wolfsbane\n\n" + "\n\n".join(HOSTILE), title=HOSTILE[0], tags=[HOSTILE[1]])
    http("PATCH", f"/api/v1/notes/{note}", {"text": "Wolfsbane two\n\n" + "\n\n".join(reversed(HOSTILE))})
    for path in (f"/n/{note}", f"/n/{note}?edit=1", f"/n/{note}?show=history"):
        page = tab.open(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if "history" in path:
            page.get_by_role("button", name="Compare version 1").click()
        expect(page.get_by_text("vbscript").first).to_be_visible()
        hrefs = page.locator("main .markdown a").evaluate_all("links => links.map((link) => link.protocol)")
        assert set(hrefs) <= {"https:", "http:", "mailto:"}
        assert page.locator("main script, main img, main iframe").count() == 0
        assert page.evaluate("window.ran") is None


def test_large_and_nasty_texts_stay_quick(tab: Tab) -> None:
    page = tab.open("/n/new")
    for nasty in ("*a ", "[", " ``", "> ", "- ", "|a", " ", "**a *b "):
        page.get_by_label("Text").fill("Cudweed" + nasty * (200000 // len(nasty)) + "b")
        page.wait_for_function(
            "() => document.querySelector('.markdown').textContent.startsWith('Cudweed')", timeout=5000
        )
        page.get_by_label("Text").fill("")
        page.wait_for_function("() => document.querySelector('.markdown').textContent === ''", timeout=5000)
    took = page.evaluate(
        """async () => {
            const { rows } = await import("/static/app/diff.js");
            const lines = Array.from({ length: 60000 }, (_, at) => `line ${at} of a roll`);
            const begun = performance.now();
            const found = rows(lines.join("\\n"), lines.map((line, at) => (at % 2 ? line : `${line}!`)).join("\\n"));
            if (!found.some(({ left }) => left === "line 59999 of a roll")) throw new Error("a line is lost");
            return performance.now() - begun;
        }"""
    )
    assert took < 3000


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [320, 1440])
def test_every_state_is_open_to_all(http: Http, engine_url: str, open_tab: OpenTab, scheme: str, width: int) -> None:
    long = "Butterbur" * 30
    note = http.add_note(
        f"# Butterbur {scheme} {width}\n\n{long}\n\n### Deep\n\n```\n{long}\n```", tags=["a", long[:180]]
    )
    http("PATCH", f"/api/v1/notes/{note}", {"text": f"# Butterbur\n\n{long} changed\n\n> {long}"})
    tab = open_tab(engine_url, color_scheme=scheme, viewport={"width": width, "height": 800})

    def check(state: str) -> None:
        expect(tab.page.get_by_text("Loading…")).to_have_count(0)
        assert tab.violations() == [], state
        assert tab.page.evaluate("document.documentElement.scrollWidth") <= width, state

    tab.open(f"/n/{note}")
    expect(tab.page.locator(".markdown")).to_be_visible()
    check("reading")
    tab.page.get_by_role("link", name="History").click()
    tab.page.get_by_role("button", name="Compare version 1").click()
    check("history")
    conflict(http, tab, note, f"{long} mine", f"{long} theirs")
    check("conflict")
    tab.page.get_by_role("button", name="Take theirs").click()
    expect(tab.page.get_by_text("Text that was not saved is kept")).to_be_visible()
    tab.page.get_by_role("button", name="Show the differences").click()
    check("draft offered")
    tab.open("/n/new")
    expect(tab.page.get_by_label("Text")).to_be_focused()
    check("new")
    tab.page.get_by_label("Text").fill(long)
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_be_visible()
    check("asked before leaving")
