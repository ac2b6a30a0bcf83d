"""The tests of the page need a browser: said loudly where there is none."""

import pytest

from .conftest import REQUIRED


def test_a_browser_can_be_driven(request: pytest.FixtureRequest) -> None:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        if REQUIRED:
            raise
        pytest.skip("THE PAGE IS NOT TESTED: Playwright is missing; `make test` installs it (lock/browser.txt)")
    page = request.getfixturevalue("chromium").new_page()
    assert page.evaluate("6 * 7") == 42
    page.close()
