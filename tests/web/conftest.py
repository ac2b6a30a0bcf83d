"""A real browser on the real page. Every test also fails on what a person would never see: a request to another
origin, a report of the content security policy, an error in the console.
"""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tools import browser as browsers

REQUIRED = bool(os.environ.get("KB_REQUIRE_BROWSER"))
try:
    from playwright import sync_api
except ImportError:  # test_browser.py says so
    collect_ignore_glob = [] if REQUIRED else ["test_[!b]*.py"]

# The browser says so itself when an answer is 4xx or 5xx; tests that expect one look at what the page makes of it.
EXPECTED = "Failed to load resource"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser; without one the tests are skipped, or fail with KB_REQUIRE_BROWSER=1."""
    program = browsers.find()
    with sync_api.sync_playwright() as driver:
        try:
            launched = driver.chromium.launch(
                executable_path=str(program) if program else None,
                env=browsers.environment(),
                args=["--no-sandbox"],
            )
        except sync_api.Error as error:
            if REQUIRED:
                raise
            pytest.skip(f"no browser: {error.message.splitlines()[0]}. Set KB_BROWSER to a Chromium.")
        yield launched
        launched.close()


@dataclass
class Tab:
    """One tab of the browser at an engine's page, and what went wrong in it unseen."""

    page: Any  # of Playwright
    url: str
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(EXPECTED):
            self.wrong.append(f"console {message.type}: {message.text}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.url + "/", "blob:", "data:")):
            self.wrong.append(f"request to {request.url}")

    def open(self, path: str = "/") -> Any:
        """Show this path; the page of Playwright."""
        self.page.goto(self.url + path)
        return self.page

    def violations(self) -> list[str]:
        """What keeps people with disabilities out, as axe finds it."""
        session = self.page.context.new_cdp_session(self.page)
        # Through the debugger, because the page's policy lets no other script in.
        session.send("Runtime.evaluate", {"expression": browsers.AXE.read_text()})
        rules = json.dumps({"runOnly": WCAG})
        found = session.send(
            "Runtime.evaluate",
            {"expression": f"axe.run(document, {rules})", "awaitPromise": True, "returnByValue": True},
        )
        return [
            f"{rule['id']}: {rule['help']} {node['html'][:200]}"
            for rule in found["result"]["value"]["violations"]
            for node in rule["nodes"]
        ]


OpenTab = Callable[..., Tab]


@pytest.fixture
def open_tab(chromium: Any) -> Iterator[OpenTab]:
    """Open a tab at an engine's address, with a width, a colour scheme and so on of its own."""
    contexts = []
    tabs = []

    def open_one(url: str, **options: Any) -> Tab:
        contexts.append(chromium.new_context(**{"viewport": {"width": 1280, "height": 800}} | options))
        tabs.append(Tab(contexts[-1].new_page(), url))
        return tabs[-1]

    yield open_one
    wrong = [line for tab in tabs for line in tab.wrong]
    for context in contexts:
        context.close()
    assert not wrong, wrong


@pytest.fixture
def tab(open_tab: OpenTab, engine_url: str) -> Tab:
    """A tab at the shared engine."""
    return open_tab(engine_url)
