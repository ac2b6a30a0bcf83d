"""The switch to another model: online, from one model to the other at once; nothing is lost when it is interrupted."""

import json
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from kb.core.settings import bundled_model_dir
from support import Http, StartEngine, eventually

NOTES = 120
QUESTION = "which animal is awake at night"
WAITING = "next-model.vectors"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """The user's models: one whose vectors differ a little from those of MiniLM, and one that is of little use."""
    folder = tmp_path / "home" / "kb" / "models"
    near = folder / "near"
    shutil.copytree(bundled_model_dir(), near)
    (near / "kb-model.json").write_text(json.dumps({"passage_prefix": "passage: ", "query_prefix": "query: "}))
    poor = folder / "poor"
    poor.mkdir()
    (poor / "tokenizer.json").symlink_to(bundled_model_dir() / "tokenizer.json")
    (poor / "kb-model.json").write_text(json.dumps({"dimensions": 4, "max_tokens": 256, "pooling": "mean"}))
    write_lookup(poor / "model.onnx")
    return folder


def write_lookup(graph: Path) -> None:
    """A model to which all words mean the same."""
    table = np.ones((30522, 4), np.float32)
    ports = [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])]
    out = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", 4])
    node = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    made = helper.make_graph([node], "lookup", ports, [out], [onnx.numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9), graph)


def fill(http: Http) -> None:
    for n in range(0, NOTES, 2):
        http("POST", "/api/v1/jobs", {"text": f"Note {n}: the tamarin of enclosure {n * 7} sleeps in a hollow tree."})
        http("POST", "/api/v1/jobs", {"text": f"Note {n + 1}: the owl of enclosure {n * 7} hunts in the dark."})
    eventually(lambda: http("GET", "/api/v1/status").json["chunks"] == NOTES)


def answer(http: Http) -> list[tuple[int, float]]:
    found = http.search(QUESTION, mode="vector", top=20, min_score=0.0)["results"]
    return [(hit["document_id"], round(hit["score"], 5)) for hit in found]


def switch(http: Http, model: str, **given: Any) -> Any:
    accepted = http("POST", "/api/v1/reindex", {"model": model, **given})
    assert accepted.status == 202, accepted.body
    return accepted.json["job_id"]


def model_of(http: Http) -> Any:
    return http("GET", "/api/v1/status").json["model"]


def test_searches_go_on_with_the_old_model_until_the_new_one_is_complete(
    start_engine: StartEngine, models: Path, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    own = Http((engine := start_engine(XDG_DATA_HOME=home)).url)
    fill(own)
    before, seen = answer(own), []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            seen.append(answer(own))

    asker = threading.Thread(target=ask)
    asker.start()
    job_id = switch(own, "near")
    told = eventually(lambda: own("GET", "/api/v1/status").json.get("switching"))
    assert (told["to"], told["job_id"]) == ("near", job_id)
    assert own("POST", "/api/v1/reindex", {"model": "near"}).json["job_id"] == job_id
    assert own("POST", "/api/v1/reindex").status == 409
    late = own.add_note("Taxes are due in May", tags=["late"])
    job = own.ended(job_id)
    eventually(lambda: model_of(own)["name"] == "near")
    after = answer(own)
    ended.set()
    asker.join()
    assert (job["status"], job["chunks_created"]) == ("completed", NOTES + 1)
    assert before != after
    assert all(found in (before, after) for found in seen)
    assert seen[0] == before
    assert "switching" not in own("GET", "/api/v1/status").json
    assert not (tmp_path / "data" / WAITING).exists()
    last = own.add_note("The aye-aye taps on wood", tags=["late"])
    found = own.search("money for the state", mode="vector", tags=["late"])["results"]
    assert [hit["document_id"] for hit in found] == [late, last]
    assert own("GET", "/api/v1/doctor").json["healthy"]
    engine.stop()
    again = Http(start_engine(XDG_DATA_HOME=home).url)  # no setting names the model: the knowledge base does
    assert model_of(again)["name"] == "near"
    assert answer(again) == after


def test_killed_in_the_middle_it_goes_on(start_engine: StartEngine, models: Path, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    own = Http((engine := start_engine(XDG_DATA_HOME=home)).url)
    fill(own)
    before = answer(own)
    job_id = switch(own, "near")
    waiting = tmp_path / "data" / WAITING
    eventually(lambda: waiting.exists() and waiting.stat().st_size > 1000)
    engine.stop(signal.SIGKILL)
    written = waiting.stat().st_size
    with waiting.open("ab") as file:
        file.write(b"half a row")
    again = Http(start_engine(XDG_DATA_HOME=home).url)
    first = answer(again)
    assert again.ended(job_id)["status"] == "completed"
    assert written > 1000
    after = answer(again)
    assert before != after
    assert first in (before, after)
    assert again("GET", "/api/v1/doctor").json["healthy"]


def test_a_model_that_answers_worse_is_refused_unless_forced(
    start_engine: StartEngine, models: Path, tmp_path: Path
) -> None:
    # Without the vectors of other languages, which would find the owl whatever the model.
    own = Http(start_engine(XDG_DATA_HOME=str(tmp_path / "home"), KB_MULTILINGUAL_DIR=str(tmp_path / "none")).url)
    for n in range(12):
        own.add_note(f"The boiler of house {n} was serviced in March")
    owl = own.add_note("The owl hunts in the dark")
    questions = [{"query": "a bird that is awake at night", "relevant": {str(owl): 1}}]
    before = answer(own)
    job = own.ended(switch(own, "poor", questions=questions))
    assert job["status"] == "failed"
    assert "nDCG@10 is 1.000 now, and would be 0.000" in job["error"]["message"]
    assert (model_of(own)["name"], answer(own)) == ("all-MiniLM-L6-v2", before)
    assert not (tmp_path / "data" / WAITING).exists()
    assert own.ended(switch(own, "poor", questions=questions, force=True))["status"] == "completed"
    eventually(lambda: model_of(own) == {"name": "poor", "dimensions": 4, "max_tokens": 256})
    assert own.search("The owl hunts in the dark", top=1)["results"][0]["document_id"] == owl
    assert own.ended(switch(own, "near", questions=questions))["status"] == "completed"


def test_what_is_no_model_is_refused(start_engine: StartEngine, models: Path, tmp_path: Path) -> None:
    (models / "poor").rename(models / "renamed")
    (models / "renamed" / "kb-model.json").write_text(
        '{"name": "other", "dimensions": 4, "max_tokens": 9, "pooling": "cls"}'
    )
    own = Http(start_engine(XDG_DATA_HOME=str(tmp_path / "home")).url)
    for model, said in (
        ("nothing", "kb knows no model 'nothing'; it knows all-MiniLM-L6-v2, gte-small"),
        ("../near", "kb knows no model"),
        ("renamed", "calls itself other"),
        ("", "model"),
    ):
        refused = own("POST", "/api/v1/reindex", {"model": model})
        assert refused.status == 422
        assert said in refused.json["error"]["message"]
