"""The key of the engine on the page: what an address or a person gives, whatever characters it has."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from support import EngineProcess

from .conftest import OpenTab

KEY = "sésame–日本"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    engine = EngineProcess(tmp_path_factory.mktemp("keyed") / "data", KB_API_KEY=KEY)
    yield engine
    engine.stop()


def test_a_key_of_any_characters_opens_and_a_wrong_one_is_asked_for_again(
    engine: EngineProcess, open_tab: OpenTab
) -> None:
    page = open_tab(engine.url).open("/documents")
    key = page.get_by_label("API key")
    key.fill("falsch–日本")
    key.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That is not the key.")
    key.fill(KEY)
    key.press("Enter")
    expect(page.get_by_role("heading", level=1, name="Documents")).to_be_visible()


@pytest.mark.parametrize("given", ["%zz", "%E6%97", "wrong", "%0Awrong%00", "falsch%E2%80%93"])
def test_a_link_with_a_wrong_key_asks_for_the_key_and_leaves_the_remembered_one(
    engine: EngineProcess, open_tab: OpenTab, given: str
) -> None:
    page = open_tab(engine.url).open("/docs-of-no-view")
    page.evaluate("key => localStorage.setItem('kb-key', key)", KEY)
    page.goto(f"{engine.url}/documents#key={given}")
    opened = page.get_by_role("heading", level=1, name="Documents")
    if given.startswith("%z") or given == "%E6%97":  # no key at all
        expect(opened).to_be_visible()
    else:
        expect(page.get_by_label("API key")).to_be_visible()
    assert page.url == f"{engine.url}/documents"
    assert page.evaluate("localStorage.getItem('kb-key')") == KEY
