"""Run one step of a set-up: one line that says what it does and how long it took, instead of silence or pages.

On a terminal the line is redrawn with the last thing that the command said. The whole output appears only when the
command fails. This runs before anything is installed, so it needs the standard library only.
"""

import argparse
import shutil
import subprocess
import sys
import threading
import time

REDRAW_SECONDS = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(description="Run one step of a set-up.")
    parser.add_argument("--or", dest="otherwise", help="what to say when it fails and that does not matter")
    parser.add_argument("title")
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    started = time.monotonic()
    process = subprocess.Popen(
        given.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    said: list[str] = []
    reader = threading.Thread(target=_collect, args=(process, said))
    reader.start()
    while reader.is_alive():
        reader.join(REDRAW_SECONDS)
        _redraw(given.title, said, time.monotonic() - started)
    code = process.wait()
    _clear()
    taken = f"{time.monotonic() - started:.0f} s"
    if code == 0:
        print(f"{given.title}: {taken}", flush=True)
        return 0
    if given.otherwise:
        print(given.otherwise, flush=True)
        return 0
    print("".join(said), end="", file=sys.stderr)
    print(f"{given.title} failed after {taken}; what it said is above.", file=sys.stderr)
    return code


def _collect(process: "subprocess.Popen[str]", said: list[str]) -> None:
    assert process.stdout
    said.extend(process.stdout)


def _redraw(title: str, said: list[str], seconds: float) -> None:
    if sys.stdout.isatty():
        last = " ".join(said[-1].split()) if said else ""
        line = f"{title}, {seconds:.0f} s  {last}"
        print(f"\r\x1b[K{line[: shutil.get_terminal_size().columns - 1]}", end="", flush=True)


def _clear() -> None:
    if sys.stdout.isatty():
        print("\r\x1b[K", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
