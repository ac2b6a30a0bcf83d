"""The other end of `benchmarks.lines`: a contestant in a process and an environment of its own."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.lines import Said
from benchmarks.stores.server import MODEL_DIR
from kb.core.settings import bundled_model_dir

ROOT = Path(__file__).parent.parent
QUIET = {"TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "PYTHONWARNINGS": "ignore"}
LEAVE_SECONDS = 120


class Player:
    """One contestant, ready to answer."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name = name
        self._process = process
        self.ready = self._read()

    def ask(self, **words: Any) -> Said:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Said:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended early, with exit code {self._process.wait(10)}")
        said: Said = json.loads(line)
        return said


@contextmanager
def playing(name: str, python: Path, module: str, *arguments: object, **environment: str) -> Iterator[Player]:
    process = subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | QUIET | {"PYTHONPATH": str(ROOT / "src"), MODEL_DIR: str(bundled_model_dir())} | environment,
    )
    with process:
        try:
            yield Player(name, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(LEAVE_SECONDS)
