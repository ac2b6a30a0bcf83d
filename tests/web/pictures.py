"""Pictures of the page for docs/, of a small library that is made here.

    PYTHONPATH=tests:. python -m web.pictures docs/pictures

A test takes them into a folder of its own, so that they can always be taken.
"""

import io
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright
from tools import browser

import made
from support import EngineProcess, Http

COLOURS = 96  # keeps a picture below 100 KB
LEASE = (
    "Lease of the workshop at 7 Mill Lane\n\n1. The rent is 640 a month, due on the third working day.\n"
    "2. The tenant may end the lease with three months' notice.\n"
    "3. The deposit of 1,920 is returned within six weeks after the keys are handed over.",
    "4. Repairs up to 120 are paid by the tenant.\n5. The boiler is serviced once a year, by the landlord.\n"
    "6. Subletting needs a written consent.",
)
NOTES = (
    ("The boiler was serviced in March by Anna; the next service is due in a year.", ["home"]),
    ("Workshop keys: one set with Ines, one in the blue box.", ["home", "workshop"]),
    ("Ask the landlord about a second meter before the winter.", ["workshop"]),
)
HANDBOOK = b"""# Workshop handbook

## Heating

The boiler in the back room heats both floors. Switch it to "night" when you leave.

## Machines

The planer needs a new belt every 400 hours. Spare belts hang behind the door.
"""
WIDE = {"width": 1280, "height": 760}
PHONE = {"width": 390, "height": 760}
SHOTS = {
    "search": ("/?q=when+is+the+boiler+serviced", WIDE, "light"),
    "document": ("/d/1?page=1&at=37-95", WIDE, "light"),
    "phone": ("/?q=when+is+the+boiler+serviced", PHONE, "dark"),
}


@contextmanager
def library() -> Iterator[EngineProcess]:
    """An engine that holds the library."""
    with tempfile.TemporaryDirectory() as folder:
        engine = EngineProcess(Path(folder) / "data")
        http = Http(engine.url)
        http.add_file("lease.pdf", made.pdf(LEASE, title="Lease of the workshop"), [("tags", '["workshop"]')])
        http.add_file("handbook.md", HANDBOOK, [("tags", '["workshop"]')])
        for text, tags in NOTES:
            http.add_note(text, tags=tags)
        yield engine
        engine.stop()


def take(chromium: Any, url: str, name: str) -> bytes:
    """One of the pictures, as a PNG."""
    path, size, scheme = SHOTS[name]
    page: Page = chromium.new_context(viewport=size, color_scheme=scheme).new_page()
    page.goto(url + path)
    expect(page.locator("main h1").first).to_be_attached()
    expect(page.get_by_text("Loading…")).to_have_count(0)
    page.wait_for_timeout(500)  # pictures of pages are drawn
    shot = Image.open(io.BytesIO(page.screenshot()))
    page.context.close()
    held = io.BytesIO()
    shot.convert("RGB").quantize(COLOURS).save(held, "PNG", optimize=True)
    return held.getvalue()


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    program = browser.find()
    with library() as engine, sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=str(program) if program else None, env=browser.environment(), args=["--no-sandbox"]
        )
        for name in SHOTS:
            (folder / f"{name}.png").write_bytes(take(chromium, engine.url, name))


if __name__ == "__main__":
    main()
