"""`make fuzz-database`: damaged databases under the address sanitizer.

Exit code 1 if one crashes or hangs the engine, or breaks an answer. Needs gcc with libasan.
ARGS="--seed 7 --cases 1" repeats one case.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

KERNELS = Path("src/kb/index/kernels.c")
SANITIZED = [
    "gcc",
    "-std=c17",
    "-O1",
    "-g",
    "-fsanitize=address,undefined",
    "-fno-sanitize=alignment",
    "-fPIC",
    "-shared",
]
CASES_AT_ONCE = 10  # in one process
LONGEST = 300  # seconds for those


def main() -> int:
    parser = argparse.ArgumentParser(prog="damaged", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--cases", type=int, default=200)
    given = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="kb-damaged-") as temporary:
        folder = Path(temporary)
        environment = sanitized(folder)
        run(os.environ | {"PYTHONPATH": "tests"}, folder, "build").check_returncode()
        for first in range(given.seed, given.seed + given.cases, CASES_AT_ONCE):
            last = min(first + CASES_AT_ONCE, given.seed + given.cases)
            wrong += cases(environment, folder, first, last)
            sys.stdout.write(f"{last - given.seed} cases, {wrong} wrong\n")
            sys.stdout.flush()
    return 1 if wrong else 0


def sanitized(folder: Path) -> dict[str, str]:
    """Compile the kernels with the address sanitizer, and return the environment to run them in."""
    subprocess.run([*SANITIZED, "-o", folder / "libkernels.so", KERNELS, "-lm"], check=True)
    found = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True)
    options = {
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "LD_PRELOAD": found.stdout.strip(),
    }
    return os.environ | options | {"PYTHONPATH": "tests", "OPENBLAS_NUM_THREADS": "1"}


def run(environment: dict[str, str], folder: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "damaged.use", str(folder), str(folder / "base"), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONGEST, check=False)


def cases(environment: dict[str, str], folder: Path, first: int, last: int) -> int:
    """How many of these cases went wrong; what did is printed."""
    try:
        done = run(environment, folder, folder / "data", first, last)
        output, died = done.stdout, done.stderr[-3000:] if done.returncode else ""
    except subprocess.TimeoutExpired as hanging:
        output, died = str((hanging.stdout or b"").decode()), f"it hangs after {LONGEST} s"
    said = [json.loads(line) for line in output.splitlines()]
    did = {line["seed"]: line["did"] for line in said if "did" in line}
    wrong: dict[int, list[str]] = {line["seed"]: [] for line in said if "wrong" in line}
    for line in said:
        if "wrong" in line:
            wrong[line["seed"]].append(line["wrong"])
    ended = {line["seed"] for line in said if "done" in line}
    if died:
        seed = max(did.keys() - ended, default=first)
        wrong[seed] = [*wrong.get(seed, []), died]
    for seed, problems in sorted(wrong.items()):
        sys.stdout.write(f"seed {seed}: {did.get(seed)}\n" + "".join(f"    {problem}\n" for problem in problems))
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
