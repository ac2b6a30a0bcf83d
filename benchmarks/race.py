"""Starts the contestants of the embedding race: kb, and sentence-transformers on torch.

Both load the same weights and use the same number of threads.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from benchmarks.environment import RIVALS
from benchmarks.player import Player, playing
from kb.core.cpu import usable_cores
from kb.core.settings import bundled_model_dir

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

    def __init__(self, player: Player) -> None:
        self.name = player.name
        self._player = player
        self.device = str(player.ready["device"])
        self.load_seconds = float(player.ready["load_seconds"])
        self.peak_mb = 0.0

    def run(self, do: Do, texts: Sequence[str], save: Path | None = None) -> list[float]:
        """Seconds: one figure for all passages together, or one for each query."""
        answer = self._player.ask(do=do, texts=texts, save=str(save) if save else None)
        self.peak_mb = float(answer["peak_mb"])
        return [float(second) for second in answer["seconds"]]


@contextmanager
def kb_racer() -> Iterator[Racer]:
    with _racer("kb", Path(sys.executable), bundled_model_dir()) as racer:
        yield racer


@contextmanager
def torch_racer(scratch: Path) -> Iterator[Racer]:
    with _racer("torch", RIVALS.python(), rival_folder(scratch)) as racer:
        yield racer


@contextmanager
def _racer(name: str, python: Path, folder: Path) -> Iterator[Racer]:
    with playing(name, python, "benchmarks.contestant", name, folder, usable_cores()) as player:
        yield Racer(player)


def rival_folder(scratch: Path) -> Path:
    """The same weights and tokenizer, with the descriptions that only sentence-transformers reads."""
    folder = scratch / "rival-model"
    shutil.copytree(bundled_model_dir(), folder, copy_function=_link, dirs_exist_ok=True)
    (folder / "modules.json").write_text(json.dumps(MODULES), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENIZER), encoding="utf-8")
    return folder


def _link(there: str, here: str) -> None:
    Path(here).symlink_to(Path(there).absolute())
