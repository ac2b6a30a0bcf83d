"""Whatever a parser does, it fails one file; the next one is read at once, and nothing is left running."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.errors import JobCancelled, JobFailure
from kb.ingest.extract import Part, Source
from kb.ingest.ocr import OcrChoice
from kb.ingest.process import Limits, Process
from kb.ingest.sandbox import Sandbox

PROGRAM = (sys.executable, str(Path(__file__).parent / "hostile.py"))
LIMITS = Limits(memory_mb=200, seconds=2, output_mb=1, idle_seconds=30)


def make_sandbox(limits: Limits = LIMITS) -> Sandbox:
    return Sandbox(lambda: OcrChoice("tesseract"), limits, limits, PROGRAM)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    made = make_sandbox()
    yield made
    made.close()


def read(sandbox: Sandbox, what: str, path: Path = Path("/nowhere")) -> list[Part]:
    return list(sandbox.parts("text", Source(path, what), lambda: None))


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be collected has."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(
    ("what", "code"),
    [
        ("segfault", "crashed"),
        ("abort", "crashed"),
        ("leave", "crashed"),
        ("hang", "timeout"),
        ("hog", "out_of_memory"),
        ("recursion", "too_complex"),
        ("flood", "too_complex"),
    ],
)
def test_one_file_fails_and_the_next_is_read(sandbox: Sandbox, what: str, code: str) -> None:
    with pytest.raises(JobFailure) as failure:
        read(sandbox, what)
    assert failure.value.code == code
    assert [part.text for part in read(sandbox, "fine")] == ["all is well"]


def test_a_process_is_used_again_and_ends_with_the_sandbox() -> None:
    sandbox = make_sandbox()
    first, second = (read(sandbox, "fine")[0].metadata["pid"] for _ in range(2))
    assert first == second
    sandbox.close()
    assert gone(first)


def test_a_process_that_ended_of_idleness_is_replaced() -> None:
    sandbox = make_sandbox(Limits(memory_mb=200, seconds=5, output_mb=1, idle_seconds=0.01))
    first = read(sandbox, "fine")[0].metadata["pid"]
    assert gone(first)
    assert read(sandbox, "fine")[0].metadata["pid"] != first
    sandbox.close()


def test_a_process_that_ends_just_when_it_is_killed_is_gone_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Process(LIMITS, (sys.executable, "-c", ""))
    assert ending._popen.wait(10) == 0
    monkeypatch.setattr(ending._popen, "poll", lambda: None)  # its answer while another thread takes note of the end
    ending.kill()
    assert ending._popen.stdin
    assert ending._popen.stdin.closed


def test_what_libraries_print_disturbs_nothing(sandbox: Sandbox) -> None:
    assert [part.text for part in read(sandbox, "chatter", Path(__file__))] == ["all is well"]


def test_cancelling_stops_in_the_middle_of_a_page(sandbox: Sandbox) -> None:
    seen: list[Part] = []

    def go_on() -> None:
        if seen:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        for part in sandbox.parts("text", Source(Path("/nowhere"), "hang"), go_on):
            seen.append(part)  # noqa: PERF402 - `go_on` looks at it in between
    assert gone(seen[0].metadata["pid"])


def test_no_socket_can_be_opened(sandbox: Sandbox) -> None:
    assert {part.text for part in read(sandbox, "reach_out")} == {"refused"}


def test_no_file_can_be_written(sandbox: Sandbox, tmp_path: Path) -> None:
    assert [part.text for part in read(sandbox, "write_out", tmp_path / "file")] == ["refused"]
    assert not (tmp_path / "file").exists() or not (tmp_path / "file").stat().st_size


def test_a_page_that_breaks_ocr_is_that_page_only(sandbox: Sandbox) -> None:
    first, second = read(sandbox, "scan")
    assert (first.outcome.state, first.outcome.code) == ("failed", "ocr_failed")
    assert "SIGABRT" in (first.outcome.reason or "")
    assert (second.text, second.outcome.state) == ("read", "ocr")


def test_no_process_outlives_an_engine_that_was_killed() -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from pathlib import Path\n"
        "from test_sandbox import make_sandbox, Source\n"
        "for part in make_sandbox().parts('text', Source(Path('/nowhere'), 'hang'), lambda: None):\n"
        "    print(part.metadata['pid'], flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout
        pid = int(engine.stdout.readline())
        engine.send_signal(signal.SIGKILL)
    assert gone(pid)
