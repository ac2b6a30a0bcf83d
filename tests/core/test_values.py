"""Values are frozen, and what goes over the wire is the value itself."""

import json
from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from kb.core import status, values
from kb.core.searches import EVERYTHING, Filter, Hit, SearchAnswer
from kb.core.values import Accepted, Anchor, Chunk, Job, LedgerEntry
from kb.core.wire import wire

NOUNS = [
    value
    for module in (values, status)
    for value in vars(module).values()
    if isinstance(value, type) and is_dataclass(value)
]


@pytest.mark.parametrize("noun", NOUNS)
def test_values_cannot_be_changed(noun: type) -> None:
    blank: object = object.__new__(noun)
    with pytest.raises(FrozenInstanceError):
        setattr(blank, fields(noun)[0].name, None)


def test_a_field_that_is_absent_is_left_out_and_any_other_is_null() -> None:
    assert wire(Accepted("j", "queued")) == {"job_id": "j", "status": "queued"}
    assert wire(Accepted("j", "completed", 7, 7)) == {
        "job_id": "j",
        "status": "completed",
        "document_id": 7,
        "duplicate_of": 7,
    }
    assert wire(LedgerEntry("page 3", "ok")) == {"part": "page 3", "state": "ok", "reason": None}


def test_nested_values_become_plain_json() -> None:
    hit = Hit(
        chunk_id=1,
        document_id=2,
        uid="u",
        title="T",
        filename=None,
        source_path=None,
        doc_type="note",
        media_type="text/markdown",
        text="世界",
        score=0.5,
        tags=["a"],
        metadata={"deep": {"list": (1, 2)}},
        anchor=Anchor(page=3, start=0, end=2),
        created_at="2026-01-01T00:00:00Z",
        updated_at=None,
        version=1,
    )
    answer = wire(SearchAnswer("q", "hybrid", [hit], 1, 0.4))
    assert json.loads(json.dumps(answer)) == answer
    assert answer["results"][0]["anchor"] == {"page": 3, "start": 0, "end": 2}
    assert answer["results"][0]["metadata"] == {"deep": {"list": [1, 2]}}
    assert answer["results"][0]["updated_at"] is None
    assert not {"truncated", "explain"} & answer["results"][0].keys()
    assert "notice" not in answer


def test_a_result_has_the_published_fields() -> None:
    published = (
        "chunk_id document_id uid title filename source_path doc_type media_type text score tags metadata anchor "
        "created_at updated_at version"
    )
    assert [f.name for f in fields(Hit) if not f.metadata.get("absent")] == published.split()


def test_a_job_has_the_published_fields() -> None:
    published = (
        "id kind status progress current_step completed_steps total_steps filename document_id uid chunks_created "
        "error attempts created_at started_at finished_at elapsed_seconds estimated_remaining_seconds"
    )
    assert [f.name for f in fields(Job) if not f.metadata.get("absent")] == published.split()


@pytest.mark.parametrize(
    ("status", "ended"),
    [("queued", False), ("running", False), ("completed", True), ("failed", True), ("cancelled", True)],
)
def test_a_job_knows_whether_it_has_ended(status: values.JobStatus, ended: bool) -> None:
    blank = dict.fromkeys((f.name for f in fields(Job)), None)
    assert Job(**{**blank, "status": status}).ended is ended  # type: ignore[arg-type]


def test_a_filter_knows_when_it_asks_for_nothing() -> None:
    assert Filter() == EVERYTHING
    assert Filter(tags=("a",)) != EVERYTHING
    assert Filter(created_before="2026-01-01T00:00:00Z") != EVERYTHING


def test_a_chunk_over_the_wire_has_its_anchor() -> None:
    assert wire(Chunk(1, 0, "text", Anchor(heading="A > B"))) == {
        "id": 1,
        "index": 0,
        "text": "text",
        "anchor": {"heading": "A > B"},
    }
