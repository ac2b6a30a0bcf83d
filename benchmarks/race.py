"""Starts the contestants of the embedding race: kb, and sentence-transformers on torch.

Both load the same weights and use the same number of threads. The rival lives in `benchmarks/.env`, which is made on
first use; kb's own environment never sees torch.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from kb.embed import usable_cores
from kb.settings import bundled_model_dir

ROOT = Path(__file__).parent.parent
RIVAL_ENV = ROOT / "benchmarks" / ".env"
RIVAL_PACKAGES = ("torch==2.13.0", "sentence-transformers==6.2.0")
# What sentence-transformers wants to find beside the files that kb installs.
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
]
TOKENIZER = {
    "tokenizer_class": "BertTokenizer",
    "do_lower_case": True,
    "model_max_length": 512,
    "unk_token": "[UNK]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "cls_token": "[CLS]",
    "mask_token": "[MASK]",
}

Do = Literal["passages", "queries"]


class Racer:
    """One contestant, ready to run."""

    def __init__(self, name: str, process: "subprocess.Popen[str]") -> None:
        self.name = name
        self._process = process
        ready = self._read()
        self.device = str(ready["device"])
        self.load_seconds = float(ready["load_seconds"])
        self.peak_mb = 0.0

    def run(self, do: Do, texts: Sequence[str], save: Path | None = None) -> list[float]:
        """Seconds: one figure for all passages together, or one for each query."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, "texts": texts, "save": str(save) if save else None}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        self.peak_mb = float(answer["peak_mb"])
        return [float(second) for second in answer["seconds"]]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended early, with exit code {self._process.wait(10)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def kb_racer() -> Iterator[Racer]:
    with _racer("kb", Path(sys.executable), bundled_model_dir()) as racer:
        yield racer


@contextmanager
def torch_racer(scratch: Path) -> Iterator[Racer]:
    with _racer("torch", rival_python(), rival_folder(scratch)) as racer:
        yield racer


@contextmanager
def _racer(name: str, python: Path, folder: Path) -> Iterator[Racer]:
    process = subprocess.Popen(
        [python, "-m", "benchmarks.contestant", name, folder, str(usable_cores())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TQDM_DISABLE": "1", "HF_HUB_OFFLINE": "1"},
    )
    with process:
        try:
            yield Racer(name, process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


def rival_python() -> Path:
    """The interpreter of the rival's environment, which is made when it is not there."""
    python = RIVAL_ENV / "bin" / "python"
    made = RIVAL_ENV / ".made"
    wanted = "\n".join(RIVAL_PACKAGES)
    if not made.exists() or made.read_text(encoding="utf-8") != wanted:
        print(f"Making the rival's environment ({', '.join(RIVAL_PACKAGES)}): a few minutes, once.", flush=True)
        subprocess.run([sys.executable, "-m", "venv", RIVAL_ENV], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *RIVAL_PACKAGES], check=True)
        made.write_text(wanted, encoding="utf-8")
    return python


def rival_folder(scratch: Path) -> Path:
    """The same weights and tokenizer, with the descriptions that only sentence-transformers reads."""
    folder = scratch / "rival-model"
    shutil.copytree(bundled_model_dir(), folder, copy_function=_link, dirs_exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(MODULES), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER), encoding="utf-8")
    return folder


def _link(there: str, here: str) -> None:
    Path(here).symlink_to(Path(there).absolute())
