"""`/jobs`: the queue as it is, failures by their reason, cancelling and trying again."""

from typing import Any

import pytest
from playwright.sync_api import expect

from support import Http, StartEngine

from .conftest import OpenTab, Tab

TORN = b"%PDF-1.4 and then nothing that belongs there"


@pytest.fixture
def own(start_engine: StartEngine) -> Http:
    """An engine whose jobs are this test's."""
    return Http(start_engine().url)


def test_failures_are_grouped_by_their_reason_and_tried_again_together(own: Http, open_tab: OpenTab) -> None:
    for number in range(12):
        own.add_file(f"<b onclick=x>torn {number}.pdf", TORN + str(number).encode(), wait=30)
    own.add_note("The whinlatter is a note.")
    tab = open_tab(own.url)
    page = tab.open("/jobs?status=failed")
    group = page.locator(".group", has_text="corrupt")
    expect(group).to_contain_text("Open the file in its own program")
    expect(group.locator(".job")).to_have_count(10)
    group.get_by_role("button", name="Show 2 more").click()
    expect(group.locator(".job")).to_have_count(12)
    expect(group).to_contain_text("<b onclick=x>torn 3.pdf")
    before = own("GET", "/api/v1/jobs?status=failed&limit=100").json["jobs"]
    group.get_by_role("button", name="Try all 12 again").click()
    expect(page.locator(".toast")).to_contain_text("12 jobs will run again.")
    for job in before:
        assert own.ended(job["id"])["finished_at"] != job["finished_at"]
    expect(group).to_be_visible()
    assert tab.violations() == []


def test_the_queue_is_live_and_a_job_can_be_cancelled_and_run_again(own: Http, open_tab: OpenTab) -> None:
    page = open_tab(own.url).open("/jobs")
    expect(page.get_by_text("No jobs here")).to_be_visible()
    for number in range(15):
        own.add_file(f"skiddaw {number}.md", f"skiddaw {number} ".encode() * 3000, wait=0)
    expect(page.locator(".job.running").first).to_be_visible(timeout=15_000)
    expect(page.locator(".job.queued").first).to_be_visible()
    expect(page.locator("#views .count")).to_be_visible()
    page.get_by_role("link", name="Waiting", exact=True).click()
    row = page.locator(".job.queued").first
    name = row.locator(".title").inner_text()
    row.get_by_role("button", name="Cancel").click()
    expect(page.locator(".job", has_text=name)).to_have_count(0)
    page.get_by_role("link", name="Cancelled", exact=True).click()
    cancelled = page.locator(".job.cancelled", has_text=name)
    cancelled.get_by_role("button", name="Try again").click()
    expect(cancelled).to_have_count(0)
    page.get_by_role("link", name="Finished", exact=True).click()
    expect(page.locator(".job.completed", has_text=name)).to_be_visible(timeout=120_000)
    assert own("GET", "/api/v1/documents?limit=1").json["total"] == 15


def test_finished_jobs_come_in_pages(own: Http, open_tab: OpenTab) -> None:
    for number in range(55):
        own("POST", "/api/v1/jobs", {"text": f"The catbells number {number}."})
    own.add_note("The last catbells.")
    page = open_tab(own.url).open("/jobs?status=completed")
    expect(page.locator(".job")).to_have_count(50)
    page.get_by_role("link", name="After").click()
    expect(page.locator(".job")).to_have_count(6)
    page.go_back()
    expect(page.locator(".job")).to_have_count(50)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 360])
def test_every_state_is_accessible_and_fits_a_small_screen(
    own: Http, open_tab: OpenTab, scheme: str, width: int
) -> None:
    tab = open_tab(own.url, viewport={"width": width, "height": 740}, color_scheme=scheme)
    page = tab.open("/jobs")

    def check() -> None:
        assert tab.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    expect(page.get_by_text("No jobs here")).to_be_visible()
    check()
    own.add_file("torn" * 50 + ".pdf", TORN)
    own.add_note("The grisedale is a note.")
    for number in range(6):
        own.add_file(f"grisedale {number}.md", f"grisedale {number} ".encode() * 1200, wait=0)
    page.reload()
    expect(page.locator(".job.failed")).to_be_visible()
    check()
    page.route("**/api/v1/jobs?*", failing)
    page.goto(own.url + "/jobs?status=cancelled")
    expect(page.get_by_role("alert")).to_contain_text("The disk hums.")
    check()


def failing(route: Any) -> None:
    error = {"code": "internal", "message": "The disk hums.", "retryable": False, "details": {}}
    route.fulfill(status=500, json={"error": error})


def test_home_says_what_is_being_read_and_what_is_new(own: Http, open_tab: OpenTab) -> None:
    tab: Tab = open_tab(own.url)
    page = tab.open()
    expect(page.locator(".first-use li")).to_have_count(3)
    for number in range(8):
        own.add_file(f"helvellyn {number}.md", f"helvellyn {number} ".encode() * 800, wait=0)
    expect(page.get_by_role("heading", name="Being read now")).to_be_visible(timeout=15_000)
    expect(page.get_by_role("link", name="helvellyn 0.md")).to_be_visible(timeout=60_000)
    expect(page.get_by_role("heading", name="Recently added or changed")).to_be_visible()
    expect(page.locator(".first-use")).to_have_count(0)
    assert tab.violations() == []
