"""Adding: dropped, chosen and pasted things are sent, followed and never lost; every failure says why."""

import re
import signal
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from made import pdf as made_pdf
from support import Http, StartEngine

from .conftest import OpenTab, Tab

# Hands files to the page as a drop would: name and content of each.
DROP = """(files) => {
  const data = new DataTransfer();
  for (const [name, content] of files) data.items.add(new File([content], name));
  for (const type of ["dragenter", "dragover", "drop"])
    document.body.dispatchEvent(new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
}"""
PASTE = """([type, content, target]) => {
  const data = new DataTransfer();
  if (type === "file") data.items.add(new File([content], "image.png", { type: "image/png" }));
  else data.setData("text/plain", content);
  const event = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
  document.querySelector(target).dispatchEvent(event);
}"""
BROKEN = [
    ("torn.pdf", b"%PDF-1.4 and then nothing that belongs there", "corrupt"),
    ("empty.txt", b"", "invalid_request"),
    ("strange.bin", bytes(range(256)) * 40, "unsupported_format"),
]
WAIT = 120_000  # ms


def made(folder: Path, good: int, word: str) -> list[str]:
    """Files of which the last three are broken."""
    folder.mkdir()
    for number in range(good):
        (folder / f"{word} {number}.md").write_text(
            f"# {word} {number}\n\nThe {word} number {number} stands in a shed.\n"
        )
    for name, content, _ in BROKEN:
        (folder / name).write_bytes(content)
    return [str(path) for path in sorted(folder.iterdir())]


def choose(page: Any, files: list[str]) -> None:
    page.locator("#file-picker").set_input_files(files)


def heading(page: Any) -> Any:
    return page.locator(".adding h2")


def documents(http: Http) -> int:
    return int(http("GET", "/api/v1/documents?limit=1").json["total"])


@pytest.fixture
def own(start_engine: StartEngine) -> Any:
    """An engine whose documents can be counted."""
    return start_engine()


def test_fifty_files_of_which_three_are_broken_survive_a_reload(own: Any, open_tab: OpenTab, tmp_path: Path) -> None:
    tab = open_tab(own.url)
    page = tab.open()
    choose(page, made(tmp_path / "files", 47, "quorndle"))
    expect(page.locator(".uploads > li").first).to_be_visible()
    page.wait_for_timeout(300)
    page.reload()
    expect(heading(page)).to_have_text("47 added, 3 failed", timeout=WAIT)
    assert documents(Http(own.url)) == 47
    for name, _, code in BROKEN:
        row = page.locator(".uploads > li.failed", has_text=name)
        expect(row.locator("code")).to_have_text(code)
        with page.expect_response(lambda answer: answer.request.method == "POST"):
            row.get_by_role("button", name="Try again").click()
    expect(heading(page)).to_have_text("47 added, 3 failed", timeout=WAIT)  # tried, and refused again
    assert page.locator(".uploads > li.done a").count() == 47
    assert tab.violations() == []
    page.reload()
    expect(heading(page)).to_have_text("47 added, 3 failed")
    page.get_by_role("button", name="Clear finished").click()
    expect(page.locator(".uploads > li")).to_have_count(3)
    for name, _, _ in BROKEN:
        page.get_by_role("button", name=f"Remove: {name}").click()
    expect(page.locator(".adding")).to_have_count(0)
    page.reload()
    expect(page.get_by_text("Recently added")).to_be_visible()
    expect(page.locator(".adding")).to_have_count(0)


def test_an_engine_that_is_killed_and_comes_back_gets_everything_once(
    start_engine: StartEngine, open_tab: OpenTab, tmp_path: Path
) -> None:
    engine = start_engine()
    port = engine.url.rpartition(":")[2]
    page = open_tab(engine.url).open()
    choose(page, made(tmp_path / "files", 47, "brumpole"))
    expect(page.locator(".uploads > li.reading").first).to_be_visible()
    engine.stop(signal.SIGKILL)
    expect(page.locator(".banner")).to_be_visible()
    page.wait_for_timeout(500)
    start_engine(KB_PORT=port)
    expect(page.locator(".banner")).to_have_count(0, timeout=WAIT)
    expect(heading(page)).to_have_text("47 added, 3 failed", timeout=WAIT)
    assert documents(Http(engine.url)) == 47


def test_a_folder_is_walked_through_and_its_paths_are_kept(tab: Tab, http: Http, tmp_path: Path) -> None:
    folder = tmp_path / "fernwick"
    (folder / "deep/deeper").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("hidden")
    (folder / "one.md").write_text("A fernwick of the first kind.")
    (folder / "deep/deeper/two.md").write_text("A fernwick of the second kind.")
    page = tab.open()
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 300, "y": 300, "data": data})
        if kind == "dragOver":
            expect(page.get_by_text("Drop to add")).to_be_visible()
    expect(page.locator(".toast")).to_contain_text("1 hidden file or folder left out")
    expect(heading(page)).to_have_text("2 added", timeout=WAIT)
    expect(page.locator(".uploads")).to_contain_text("fernwick/deep/deeper/two.md")
    (hit,) = http.search("fernwick second kind", mode="fts", top=1)["results"]
    assert hit["filename"] == "two.md"
    assert hit["metadata"]["path"] == "fernwick/deep/deeper/two.md"


def test_no_more_files_are_taken_at_once_than_a_page_can_hold(tab: Tab) -> None:
    found = tab.open().evaluate(
        """async () => {
          const { gather } = await import("/static/app/gathering.js");
          const file = (number) => ({ isFile: true, name: `${number}.md`, fullPath: `/many/${number}.md`,
                                      file: (take) => take(new File(["x"], `${number}.md`)) });
          const broken = { ...file("gone"), file: (_, fail) => fail(new Error()) };
          const children = [broken, ...Array.from({ length: 20_005 }, (_, number) => file(number))];
          const folder = { isFile: false, name: "many", fullPath: "/many",
                           createReader: () => ({ readEntries: (take) => take(children.splice(0, 100)) }) };
          let taken = 0;
          const items = [{ kind: "file", webkitGetAsEntry: () => folder }];
          return { ...await gather({ items }, (batch) => (taken += batch.length)), taken };
        }"""
    )
    assert found == {"files": 20_000, "hidden": 0, "unread": 1, "full": True, "taken": 20_000}


def test_files_are_sent_with_the_key(start_engine: StartEngine, open_tab: OpenTab) -> None:
    engine = start_engine(KB_API_KEY="wharfedale")
    page = open_tab(engine.url).open("/#key=wharfedale")
    expect(page.get_by_text("Three steps")).to_be_visible()
    page.evaluate(DROP, [["locked.md", "The wharfedale needs a key."]])
    expect(heading(page)).to_have_text("1 added", timeout=WAIT)


def test_what_is_known_already_is_said_to_be(tab: Tab, http: Http) -> None:
    page = tab.open()
    page.evaluate(DROP, [["one.md", "The snaffleby is known already."]])
    expect(page.locator(".uploads > li.done")).to_contain_text("Added", timeout=WAIT)
    page.evaluate(DROP, [["other.md", "The snaffleby is known already."]])
    second = page.locator(".uploads > li.done", has_text="other.md")
    expect(second).to_contain_text("Already here")
    first = page.locator(".uploads > li.done", has_text="one.md")
    assert first.get_by_role("link").get_attribute("href") == second.get_by_role("link").get_attribute("href")


def test_tags_are_given_to_a_batch_before_and_after(tab: Tab, http: Http, tmp_path: Path) -> None:
    page = tab.open()
    page.locator("main").click()
    page.keyboard.press("u")
    page.get_by_label("Tags for all of them").fill("drizzlecombe, moor , drizzlecombe")
    path = tmp_path / "tagged.md"
    path.write_text("The drizzlecombe stands on the moor.")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("dialog").get_by_role("button", name="Choose files").click()
    chooser.value.set_files(str(path))
    expect(page.locator(".uploads > li.done")).to_have_count(1, timeout=WAIT)
    page.get_by_label("Tags for all of these").fill("later")
    page.get_by_role("button", name="Tag all").click()
    for _ in range(100):
        (hit,) = http.search("drizzlecombe moor", mode="fts", top=1)["results"]
        if "later" in hit["tags"]:
            break
        page.wait_for_timeout(50)
    assert sorted(hit["tags"]) == ["drizzlecombe", "later", "moor"]


def test_a_pasted_text_becomes_a_note_once_it_was_seen(tab: Tab, http: Http) -> None:
    page = tab.open()
    page.evaluate(PASTE, ["text", "The wimblestraw is pasted.", "main"])
    dialog = page.get_by_role("dialog", name="Add this text as a note?")
    expect(dialog.get_by_label("Text")).to_have_value("The wimblestraw is pasted.")
    assert tab.violations() == []
    dialog.get_by_label("Tags").fill("straw")
    dialog.get_by_role("button", name="Add the note").click()
    link = page.locator(".uploads > li.done").get_by_role("link")
    expect(link).to_have_attribute("href", re.compile(r"^/n/\d+$"), timeout=WAIT)
    (hit,) = http.search("wimblestraw", mode="fts", top=1)["results"]
    assert (hit["doc_type"], hit["text"], hit["tags"]) == ("note", "The wimblestraw is pasted.", ["straw"])


def test_pasting_into_a_field_adds_nothing(tab: Tab) -> None:
    page = tab.open()
    page.evaluate(PASTE, ["text", "This is a question.", "input[type=search]"])
    page.wait_for_timeout(100)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_pasted_picture_gets_a_name_of_its_own(tab: Tab) -> None:
    page = tab.open()
    page.evaluate(PASTE, ["file", "not really a picture", "main"])
    expect(page.locator(".uploads > li")).to_contain_text(re.compile(r"pasted-\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d\.png"))


def test_names_that_carry_markup_run_nothing(tab: Tab) -> None:
    page = tab.open("/jobs")
    name = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>.md"
    page.evaluate(DROP, [[name, "A gobblesnout with a strange name."], [name + ".bin", "\0\1\2gobblesnout"]])
    expect(heading(page)).to_have_text("1 added, 1 failed", timeout=WAIT)
    assert page.locator(".adding img, .adding script, main img, main script").count() == 0
    assert page.title() == "Jobs · kb"
    expect(page.locator(".uploads > li.done")).to_contain_text("<script>")


def test_cancelling_stops_what_is_sent_and_what_is_read(own: Any, open_tab: OpenTab) -> None:
    page = open_tab(own.url).open()
    files = [[f"hollowmere {number}.md", f"hollowmere {number} " * 2_000] for number in range(30)]
    page.evaluate(DROP, files)
    expect(page.locator(".uploads > li.reading").first).to_be_visible()
    first = page.locator(".uploads > li.waiting, .uploads > li.reading").last
    name = first.locator(".what span").first.inner_text()
    page.get_by_role("button", name=f"Cancel: {name}", exact=True).click()
    expect(page.locator(".uploads > li.cancelled", has_text=name)).to_have_count(1)
    page.get_by_role("button", name="Cancel all").click()
    expect(heading(page)).to_have_text(re.compile(r"^\d+ added, \d+ cancelled$"), timeout=WAIT)
    counted = re.findall(r"\d+", heading(page).inner_text())
    assert sum(map(int, counted)) == 30
    http = Http(own.url)
    assert documents(http) == int(counted[0])
    assert http("GET", "/api/v1/jobs?status=queued").json["total"] == 0
    again = page.locator(".uploads > li.cancelled").first
    name = again.locator(".what span").first.inner_text()
    again.get_by_role("button", name="Try again").click()
    expect(page.locator(".uploads > li.done", has_text=name)).to_have_count(1, timeout=WAIT)


def test_what_a_closed_tab_did_not_send_is_offered_later(own: Any, open_tab: OpenTab) -> None:
    tab = open_tab(own.url)
    page = tab.open()
    page.route("**/api/v1/jobs", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    page.evaluate(DROP, [[f"tarnbeck {number}.md", f"The tarnbeck number {number}."] for number in range(5)])
    expect(page.locator(".adding .notice")).to_be_visible()
    page.wait_for_timeout(300)
    page.close()
    later = page.context.new_page()
    later.goto(own.url)
    expect(later.get_by_text("5 files of an earlier visit were not sent.")).to_be_visible()
    later.get_by_role("button", name="Go on").click()
    expect(heading(later)).to_have_text("5 added", timeout=WAIT)
    assert documents(Http(own.url)) == 5


def test_files_of_another_open_tab_are_left_alone(own: Any, open_tab: OpenTab) -> None:
    tab = open_tab(own.url)
    page = tab.open()
    page.route("**/api/v1/jobs", lambda route: route.abort() if route.request.method == "POST" else route.continue_())
    page.evaluate(DROP, [["busy.md", "The mossgarth waits in its own tab."]])
    expect(page.locator(".uploads > li")).to_have_count(1)
    page.wait_for_timeout(300)
    other = page.context.new_page()
    other.goto(own.url)
    expect(other.get_by_text("Three steps")).to_be_visible()
    other.wait_for_timeout(300)
    expect(other.locator(".adding")).to_have_count(0)


@pytest.mark.parametrize(
    ("status", "code", "ends"),
    [(503, "unavailable", "1 added"), (507, "storage_full", "0 added, 1 failed")],
)
def test_a_full_queue_is_waited_for_and_a_full_disk_needs_a_person(tab: Tab, status: int, code: str, ends: str) -> None:
    page = tab.open()
    refused: list[str] = []

    def answer(route: Any) -> None:
        if route.request.method != "POST" or refused:
            route.continue_()
            return
        refused.append(route.request.url)
        error = {"code": code, "message": f"Refused with {status}.", "retryable": True, "details": {}}
        route.fulfill(status=status, json={"error": error})

    page.route("**/api/v1/jobs", answer)
    page.evaluate(DROP, [[f"pellgrave {status}.md", f"The pellgrave met {status}."]])
    expect(heading(page)).to_have_text(ends, timeout=WAIT)
    assert refused
    if status == 507:
        page.evaluate(DROP, [["pellgrave next.md", "The next pellgrave waits for room."]])
        expect(page.locator(".adding .notice")).to_contain_text("Refused with 507.")
        page.get_by_role("button", name="Try again").click()
        page.get_by_role("button", name="Go on").click()
        expect(heading(page)).to_have_text("2 added", timeout=WAIT)


def test_a_file_beyond_the_limit_is_not_sent(start_engine: StartEngine, open_tab: OpenTab) -> None:
    page = open_tab(start_engine(KB_MAX_FILE_MB="1").url).open()
    page.evaluate(DROP, [["large.md", "x" * (2**20 + 1)]])
    row = page.locator(".uploads > li.failed")
    expect(row).to_contain_text("file_too_large")
    expect(row).to_contain_text("larger than 1 MB")


def test_without_room_in_the_browser_files_are_sent_all_the_same(tab: Tab) -> None:
    tab.page.add_init_script(
        "IDBObjectStore.prototype.put = () => { throw new DOMException('', 'QuotaExceededError') }"
    )
    page = tab.open()
    page.route("**/api/v1/jobs", lambda route: page.wait_for_timeout(300) or route.continue_())
    page.evaluate(DROP, [[f"stobgill {number}.md", f"The stobgill {number} has no room."] for number in range(8)])
    expect(page.get_by_text("This browser has no room")).to_be_visible()
    expect(heading(page)).to_have_text("8 added", timeout=WAIT)


def test_two_thousand_files_do_not_freeze_the_page(own: Any, open_tab: OpenTab) -> None:
    page = open_tab(own.url).open()
    page.evaluate(DROP, [[f"larkrigg {number}.md", f"The larkrigg number {number}."] for number in range(2000)])
    expect(heading(page)).to_contain_text("of 2,000")
    assert page.locator(".uploads > li").count() <= 60
    expect(page.locator("#views .count")).to_be_visible()
    delays = page.evaluate(
        """async () => {
          const delays = [];
          for (let press = 0; press < 40; press++) {
            const started = performance.now();
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
            delays.push(performance.now() - started);
            document.querySelector("dialog[open]")?.close();
            await new Promise((resolve) => setTimeout(resolve, 50));
          }
          return delays.sort((one, other) => one - other);
        }"""
    )
    assert delays[int(len(delays) * 0.9)] < 100, [round(delay) for delay in delays]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_state_is_accessible_and_fits_a_small_screen(
    own: Any, open_tab: OpenTab, tmp_path: Path, scheme: str
) -> None:
    files = made(tmp_path / "files", 12, "dunnerdale")
    for width in (1280, 360):
        tab = open_tab(own.url, viewport={"width": width, "height": 740}, color_scheme=scheme)
        page = tab.open()

        def check(tab: Tab = tab, page: Any = page) -> None:
            assert tab.violations() == []
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

        page.locator("main h2").first.wait_for()
        check()  # nothing yet, or recent documents
        page.locator("main").click()
        page.keyboard.press("u")
        expect(page.get_by_role("dialog")).to_be_visible()
        check()
        page.keyboard.press("Escape")
        choose(page, files)
        expect(heading(page)).to_contain_text("Adding")
        check()
        if width == 360:
            page.locator(".adding").get_by_role("button", name="Show").click()
            check()
        expect(heading(page)).to_have_text("12 added, 3 failed", timeout=WAIT)
        check()


def test_the_pages_of_a_long_file_are_counted_while_it_is_read(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "canal.pdf"
    path.write_bytes(made_pdf([f"Lock {page}: " + "the calderbrook canal climbs. " * 40 for page in range(100)]))
    page = tab.open()
    choose(page, [str(path)])
    row = page.locator(".uploads > li", has_text="canal.pdf")
    expect(row).to_contain_text(re.compile(r"page \d+ of 100"), timeout=WAIT)
    assert "NaN" not in page.locator(".adding").inner_text()
    expect(heading(page)).to_have_text("1 added", timeout=WAIT)
