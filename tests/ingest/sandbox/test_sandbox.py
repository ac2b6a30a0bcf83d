"""Whatever a parser does, it fails one file; the next one is read at once, and nothing is left running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from attacks import ATTACKS, KILLED, REFUSED
from kb.core.errors import JobCancelled, JobFailure
from kb.ingest.extract import Part, Source
from kb.ingest.sandbox import confine
from kb.ingest.sandbox.ocr import OcrChoice
from kb.ingest.sandbox.process import KEPT, Process, ProcessLimits
from kb.ingest.sandbox.sandbox import Sandbox

PROGRAM = (sys.executable, str(Path(__file__).parent / "hostile.py"))
WITHOUT_LANDLOCK = Path(__file__).parent / "without_landlock.py"
RUNS_ATTACKS = os.uname().machine == "x86_64" and "landlock" in confine.protection()
LIMITS = ProcessLimits(memory_mb=200, seconds=2, output_mb=1, idle_seconds=30)


def make_sandbox(limits: ProcessLimits = LIMITS) -> Sandbox:
    return Sandbox(lambda: OcrChoice("tesseract"), limits, limits, PROGRAM)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    made = make_sandbox()
    yield made
    made.close()


def read(sandbox: Sandbox, what: str) -> list[Part]:
    return list(sandbox.parts("text", Source(Path(__file__), what), lambda: None))


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
    sandbox = make_sandbox(ProcessLimits(memory_mb=200, seconds=5, output_mb=1, idle_seconds=0.01))
    first = read(sandbox, "fine")[0].metadata["pid"]
    assert gone(first)
    assert read(sandbox, "fine")[0].metadata["pid"] != first
    sandbox.close()


def test_a_process_that_ends_just_when_it_is_killed_is_gone_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ending = Process(LIMITS, "extract", (sys.executable, "-c", ""))
    assert ending._popen.wait(10) == 0
    monkeypatch.setattr(ending._popen, "poll", lambda: None)  # its answer while another thread takes note of the end
    ending.kill()
    assert ending._popen.stderr
    assert ending._popen.stderr.closed


def test_what_libraries_print_disturbs_nothing(sandbox: Sandbox) -> None:
    assert [part.text for part in read(sandbox, "chatter")] == ["all is well"]


def test_cancelling_stops_in_the_middle_of_a_page(sandbox: Sandbox) -> None:
    seen: list[Part] = []

    def go_on() -> None:
        if seen:
            raise JobCancelled

    with pytest.raises(JobCancelled):
        for part in sandbox.parts("text", Source(Path(__file__), "hang"), go_on):
            seen.append(part)  # noqa: PERF402 - `go_on` looks at it in between
    assert gone(seen[0].metadata["pid"])


@pytest.mark.skipif(not RUNS_ATTACKS, reason="the attacks are written for x86_64 with Landlock and seccomp")
@pytest.mark.parametrize("name", ATTACKS)
def test_a_parser_that_was_taken_over_gets_nowhere(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    target = tmp_path / "kb.db"
    target.write_bytes(b"data of the user")
    before = target.stat()
    if name in KILLED:
        with pytest.raises(JobFailure, match="SIGSYS") as failure:
            read(sandbox, f"attack {name} {target}")
        assert failure.value.code == "crashed"
    else:
        assert [part.text for part in read(sandbox, f"attack {name} {target}")] == ["refused"]
    assert [path.name for path in tmp_path.iterdir()] == ["kb.db"]
    assert target.read_bytes() == b"data of the user"
    assert target.stat().st_mode == before.st_mode
    assert [part.text for part in read(sandbox, "fine")] == ["all is well"]


@pytest.mark.skipif(not RUNS_ATTACKS, reason="the attacks are written for x86_64 with Landlock and seccomp")
def test_where_the_kernel_has_no_landlock_a_parser_still_opens_nothing(tmp_path: Path) -> None:
    target = tmp_path / "kb.db"
    target.write_bytes(b"data of the user")
    sandbox = Sandbox(OcrChoice, LIMITS, LIMITS, (sys.executable, str(WITHOUT_LANDLOCK), PROGRAM[1]))
    for name in REFUSED:
        assert [part.text for part in read(sandbox, f"attack {name} {target}")] == ["refused"], name
    assert target.read_bytes() == b"data of the user"
    sandbox.close()


@pytest.mark.skipif(not RUNS_ATTACKS, reason="it takes a kernel with Landlock to see it refused")
def test_what_is_missing_is_said() -> None:
    assert confine.shortfall() is None
    code = "from kb.ingest.sandbox.confine import protection, shortfall; print(protection(), shortfall())"
    said = subprocess.run(
        [sys.executable, str(WITHOUT_LANDLOCK), "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert said.startswith("seccomp This kernel offers no Landlock")


def test_a_process_gets_nothing_of_the_engines_environment_but_where_things_are(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for secret in ("KB_API_KEY", "KB_DATA_DIR", "AWS_SECRET_ACCESS_KEY", "HOME"):
        monkeypatch.setenv(secret, "secret")
    names = set(read(sandbox, "environment")[0].text.split())
    assert names <= {*KEPT, "LC_CTYPE"}  # Python sets the last one itself


PART = {"name": "page 1", "text": "", "anchor": {}, "outcome": {}, "metadata": {}}


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"kind": "text"},
        {"kind": "do", "do": "extract"},
        {"kind": "failure", "code": "no such code", "message": ""},
        {"kind": "failure", "code": "corrupt", "message": ["not a text"]},
        {"kind": "read", "width": 2, "height": 3},
        {"kind": "read", "width": -2, "height": -2},
        {"kind": "read", "width": "4", "height": 1},
        {"kind": "part", "part": "page 1"},
        {"kind": "part", "part": PART | {"name": 7}},
        {"kind": "part", "part": PART | {"anchor": {"page": 2**70}}},
        {"kind": "part", "part": PART | {"anchor": {"metadata": True}}},
        {"kind": "part", "part": PART | {"number": -1}},
        {"kind": "part", "part": PART | {"outcome": {"state": "perfect"}}},
        {"kind": "part", "part": PART | {"metadata": "none"}},
        {"kind": "part", "part": PART | {"lines": {"width": 9, "height": 9, "lines": [[0, 5, 1, 1, 2, 2]]}}},
        {"kind": "part", "part": PART | {"lines": {"width": 9, "height": 9, "lines": [[0, 4, -1, 1, 2, 2]]}}},
        {"kind": "part", "part": PART | {"lines": {"width": float("nan"), "height": 9, "lines": []}}},
    ],
)
def test_an_answer_that_is_not_one_is_a_crash(sandbox: Sandbox, said: dict[str, object]) -> None:
    with pytest.raises(JobFailure, match="makes no sense") as failure:
        read(sandbox, f"say {json.dumps(said)}")
    assert failure.value.code == "crashed"
    assert [part.text for part in read(sandbox, "fine")] == ["all is well"]


def test_what_a_parser_adds_to_its_answer_reaches_no_other_process(sandbox: Sandbox) -> None:
    said = {"kind": "read", "width": 4, "height": 1, "do": "extract", "engine": "other", "path": "/etc/passwd"}
    assert [part.text for part in read(sandbox, f"say {json.dumps(said)}")] == ["all is well"]


def test_a_page_that_breaks_ocr_is_that_page_only(sandbox: Sandbox) -> None:
    first, second, third = read(sandbox, "scan")
    assert (first.outcome.state, first.outcome.code) == ("failed", "ocr_failed")
    assert "SIGABRT" in (first.outcome.reason or "")
    assert (second.text, second.outcome.state) == ("read", "ocr")
    if RUNS_ATTACKS:
        assert "SIGSYS" in (third.outcome.reason or "")  # 32-bit code


def test_no_process_outlives_an_engine_that_was_killed() -> None:
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/../..']\n"
        "from pathlib import Path\n"
        "from test_sandbox import make_sandbox, Source\n"
        "for part in make_sandbox().parts('text', Source(Path(sys.argv[1]) / 'hostile.py', 'hang'), lambda: None):\n"
        "    print(part.metadata['pid'], flush=True)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True
    ) as engine:
        assert engine.stdout
        pid = int(engine.stdout.readline())
        engine.send_signal(signal.SIGKILL)
    assert gone(pid)
