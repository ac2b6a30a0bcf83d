"""Tesseract is a program of its own: it runs confined as well, and ends with the engine.

A small program stands in for it, because not every machine has Tesseract and it makes no attacks.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kb.ingest.sandbox import confine
from kb.ingest.sandbox.answers import Picture
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.skipif(
    not shutil.which("cc") or "landlock" not in confine.protection(), reason="needs a C compiler and Landlock"
)


@pytest.fixture
def tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program, first on the path; beside it its data, and a file that is none of its business."""
    data = tmp_path / "tessdata"
    data.mkdir()
    (data / "eng").write_text("data")
    (tmp_path / "kb.db").write_text("data of the user")
    program = tmp_path / "tesseract"
    places = [f'-DFOLDER="{data}"', f'-DTARGET="{tmp_path / "kb.db"}"']
    subprocess.run(["cc", *places, "-o", str(program), str(Path(__file__).parent / "reader.c")], check=True)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return program


def test_it_reads_its_data_and_nothing_else(tesseract: Path) -> None:
    sandbox = Sandbox(lambda: OcrChoice("tesseract"))
    _, text = sandbox._read(Picture("read", 2, 2), bytes(4), lambda: None)
    sandbox.close()
    assert text.decode().splitlines() == [
        "data succeeded",
        *(f"{what} refused" for what in ("read", "write", "socket", "shell")),
    ]


def test_it_ends_with_an_engine_that_was_killed(tesseract: Path) -> None:
    code = (
        "from kb.ingest.sandbox.answers import Picture\n"
        "from kb.ingest.sandbox.ocr import OcrChoice\n"
        "from kb.ingest.sandbox.sandbox import Sandbox\n"
        "Sandbox(lambda: OcrChoice('tesseract'))._read(Picture('read', 7, 1), bytes(7), lambda: None)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as engine:
        assert eventually(lambda: running(tesseract))
        engine.send_signal(signal.SIGKILL)
    assert eventually(lambda: not running(tesseract))


def running(program: Path) -> list[int]:
    """The processes that run a program."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "exe").readlink() == program and "stdin" in (folder / "cmdline").read_text():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def eventually(holds: Callable[[], object]) -> bool:
    for _ in range(400):
        if holds():
            return True
        time.sleep(0.05)
    return False
