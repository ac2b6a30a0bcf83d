"""How an engine starts, and when it refuses to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kb.index.kernels import kernels
from kb.ingest.sandbox import confine
from support import TEST_DATABASE_URL, Http, StartEngine, database_of


def second_engine(data_dir: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | database_of(data_dir) | {"KB_DATA_DIR": str(data_dir), "KB_PORT": "0", **settings}
    return subprocess.run(
        [sys.executable, "-m", "kb.cli.main", "serve"], capture_output=True, text=True, env=environment, timeout=60
    )


def test_a_second_engine_on_a_folder_refuses_and_damages_nothing(tmp_path: Path, start_engine: StartEngine) -> None:
    first = start_engine()
    http = Http(first.url)
    id_ = http.add_note("written before the second engine came")
    refused = second_engine(tmp_path / "data")
    assert refused.returncode == 4
    assert f"process {first.process.pid}" in refused.stderr
    assert "KB_DATA_DIR" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert http.search("second engine")["results"][0]["document_id"] == id_
    http.add_note("written after the second engine left")


def test_a_port_in_use_is_a_clear_error(tmp_path: Path, start_engine: StartEngine) -> None:
    first = start_engine(tmp_path / "one")
    port = first.url.rpartition(":")[2]
    refused = second_engine(tmp_path / "two", KB_PORT=port)
    assert refused.returncode == 4
    assert port in refused.stderr
    assert "Traceback" not in refused.stderr


def test_other_chunks_ask_for_a_reindex(tmp_path: Path, start_engine: StartEngine) -> None:
    first = start_engine()
    Http(first.url).add_note("indexed with the default size")
    first.stop()
    refused = second_engine(tmp_path / "data", KB_CHUNK_TOKENS="100")
    assert refused.returncode == 1
    assert "kb serve --reindex" in refused.stderr
    again = start_engine()
    assert Http(again.url).search("indexed")["total"] == 1


def test_a_missing_model_is_a_clear_error(tmp_path: Path) -> None:
    refused = second_engine(tmp_path / "data", KB_MODEL_DIR=str(tmp_path / "nothing-here"))
    assert refused.returncode != 0
    assert "make setup" in refused.stderr
    assert "Traceback" not in refused.stderr


def open_to_others(folder: Path) -> list[str]:
    return [path.name for path in (folder, *folder.rglob("*")) if path.stat().st_mode & 0o077]


@pytest.mark.sqlite
def test_everything_in_the_data_folder_is_private(tmp_path: Path, start_engine: StartEngine) -> None:
    engine = start_engine()
    assert Http(engine.url).add_file("secret.txt", b"a file of mine").json["status"] == "completed"
    held = {path.name for path in (tmp_path / "data").iterdir()}
    assert held >= {"kb.db", "kb.db-wal", "kb.db-shm", "originals", "engine.lock"}
    assert open_to_others(tmp_path / "data") == []


def test_what_an_older_kb_left_open_to_others_is_made_private(tmp_path: Path, start_engine: StartEngine) -> None:
    engine = start_engine()
    assert Http(engine.url).add_file("secret.txt", b"a file of mine").json["status"] == "completed"
    engine.stop(signal.SIGKILL)  # what lies beside the database stays there
    for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    start_engine()
    assert open_to_others(tmp_path / "data") == []


def test_status_says_what_runs(http: Http) -> None:
    http.search("anything")  # by now everything is loaded
    status = http("GET", "/api/v1/status").json
    assert set(status) == {
        "version", "model", "device", "documents", "chunks", "queue", "storage", "limits", "last_updated", "health",
        "sandbox", "kernels", "trash", "engines", "multilingual",
    }  # fmt: skip
    assert status["model"] == {"name": "all-MiniLM-L6-v2", "dimensions": 384, "max_tokens": 256}
    assert status["limits"] == {"max_file_mb": 100, "chunk_tokens": 200}
    assert set(status["queue"]) == {"queued", "running", "failed"}
    assert status["storage"]["backend"] == ("postgresql" if TEST_DATABASE_URL in os.environ else "sqlite")
    assert status["health"]["status"] == "healthy", json.dumps(status["health"])
    assert status["sandbox"] == confine.protection()
    assert status["kernels"] == kernels.name


def test_a_file_over_the_limit_is_refused(tmp_path: Path, start_engine: StartEngine) -> None:
    engine = start_engine(KB_MAX_FILE_MB="1")
    http = Http(engine.url)
    refused = http.add_file("big.txt", b"x" * (2**20 + 1))
    assert (refused.status, refused.json["error"]["code"]) == (413, "file_too_large")
    assert http.add_file("fits.txt", b"x" * 2**20).json["status"] == "completed"
    assert list((tmp_path / "data" / "staging").iterdir()) == []


def test_it_can_be_stopped_at_any_moment_of_its_start(tmp_path: Path) -> None:
    environment = os.environ | {"KB_DATA_DIR": str(tmp_path / "data"), "KB_PORT": "0"}
    for tenths in range(0, 24, 3):
        process = subprocess.Popen(
            [sys.executable, "-m", "kb.cli.main", "serve"], env=environment, stderr=subprocess.DEVNULL
        )
        time.sleep(tenths / 10)
        process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        # Before it takes the signal into its own hands, the signal simply ends it.
        assert code in (0, -signal.SIGTERM), f"after {tenths / 10} s"


def test_the_commands_that_are_shown_reach_the_engine(start_engine: StartEngine) -> None:
    engine = start_engine()  # on a port that was free
    assert f"KB_ENGINE_URL={engine.url} kb search" in engine.log.read_text()
    told = start_engine(engine.log.parent / "other", KB_ENGINE_URL=engine.url)
    assert f"page     {told.url}/" in told.log.read_text()
