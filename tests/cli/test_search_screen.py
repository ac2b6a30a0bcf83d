"""How a search looks: wrapped and highlighted on a terminal, harmless whatever the documents hold."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kb.cli.commands.search import citation, copies, explained, matching
from kb.cli.screen import width

from .conftest import Kb, Serve


def hit(**given: Any) -> dict[str, Any]:
    usual = {
        "document_id": 7,
        "title": "Handbook",
        "doc_type": "pdf",
        "text": "The boiler was serviced in March.",
        "score": 0.8312,
        "tags": ["home"],
        "anchor": {"page": 3, "heading": "House > Heating"},
        "source_path": None,
        "media_type": "application/pdf",
        "created_at": "2001-02-03T12:00:00.000Z",
    }
    return usual | given


def engine(serve: Serve, tmp_path: Path, *hits: dict[str, Any], query: str = "boiler service") -> Kb:
    answer = {"query": query, "mode": "hybrid", "results": hits, "total": len(hits), "took_ms": 1.0}
    return Kb(serve(json.dumps(answer).encode()).url, tmp_path)


def test_on_a_terminal_the_passage_is_wrapped_and_the_words_stand_out(serve: Serve, tmp_path: Path) -> None:
    run = engine(serve, tmp_path, hit(text="The boiler was serviced in March by the company. " * 5))
    shown = run.on_terminal("search", "boiler service").out
    assert "\x1b[1;33mboiler\x1b[0m was \x1b[1;33mserviced\x1b[0m" in shown
    assert "\x1b[1;33mthe\x1b" not in shown
    assert all(width(line) <= 60 for line in shown.splitlines())
    assert len(shown.splitlines()) > 6


def test_wide_characters_fit_the_terminal_too(serve: Serve, tmp_path: Path) -> None:
    long = {"page": 3, "heading": "見出し" * 20}
    run = engine(serve, tmp_path, hit(title="世界" * 20, text="漢字かな交じり文👍" * 20, tags=["札"] * 30, anchor=long))
    shown = run.on_terminal("search", "漢字").out
    assert all(width(line) <= 60 for line in shown.splitlines())


def test_a_title_leads_to_its_passage_on_the_page(serve: Serve, tmp_path: Path) -> None:
    run = engine(serve, tmp_path, hit(anchor={"page": 3, "start": 40, "end": 90}))
    assert f"\x1b]8;;{run.url}/d/7?page=3&at=40-90\x1b\\" in run.on_terminal("search", "boiler").out
    assert run.url not in run("search", "boiler").out


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colour_can_be_refused(serve: Serve, tmp_path: Path, environment: dict[str, str]) -> None:
    assert "\x1b" not in engine(serve, tmp_path, hit()).on_terminal("search", "boiler", **environment).out


def test_copies_are_told_on_one_line(serve: Serve, tmp_path: Path) -> None:
    there = {"document_id": 9, "chunk_id": 1, "title": "Old", "filename": "old.pdf", "source_path": "/srv/old.pdf"}
    here = {"document_id": 7, "chunk_id": 2, "title": "Handbook", "filename": None, "source_path": None}
    also_in = [there | {"anchor": {"page": 4}}, here | {"anchor": {"page": 8}}]
    doubled = hit(also_in=also_in, also_in_more=3, source_path="/srv/new.pdf")
    assert copies(doubled) == "old.pdf (document 9), page 4; this document, page 8; 3 more"
    assert copies(hit()) == ""
    run = engine(serve, tmp_path, doubled)
    assert "   also in: old.pdf (document 9), page 4; this document, page 8; 3 more\n" in run("search", "boiler").out
    assert run("search", "boiler", "--files").out == "/srv/new.pdf\n/srv/old.pdf\n"


def test_nothing_in_a_document_reaches_the_terminal_as_a_command(serve: Serve, tmp_path: Path) -> None:
    evil = "\x1b]0;pwned\x07\x1b[2J\x9b5n\u202e"
    run = engine(
        serve, tmp_path, hit(title=evil, text=evil, tags=[evil], anchor={"sheet": evil, "heading": evil}, doc_type=evil)
    )
    for shown in (run("search", "x").out, run.on_terminal("search", "x", NO_COLOR="1").out):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
        assert r"\x1b]0;pwned\x07" in shown.replace("\n   ", "")


def test_elsewhere_the_passage_is_printed_as_it_is(serve: Serve, tmp_path: Path) -> None:
    text = "word " * 100 + "\n\n  indented"
    assert text.rsplit("\n", maxsplit=1)[-1] in engine(serve, tmp_path, hit(text=text))("search", "x").out
    first, facts, *_ = engine(serve, tmp_path, hit())("search", "x").out.splitlines()
    assert first == "1. Handbook  page 3 · House > Heating"
    assert facts == "   score 0.83 · document 7 · pdf · 03 Feb 2001 · tags home"


def test_a_cut_passage_says_so(serve: Serve, tmp_path: Path) -> None:
    assert "(cut to fit --max-tokens)" in engine(serve, tmp_path, hit(truncated=True))("search", "x").out


@pytest.mark.parametrize(
    ("anchor", "words"),
    [
        ({"page": 3, "start": 0, "end": 9}, ["page 3"]),
        ({"slide": 2}, ["slide 2"]),
        ({"sheet": "Costs"}, ["sheet Costs"]),
        ({"cell": 7, "heading": "A > B"}, ["cell 7", "A > B"]),
        ({"chapter": "Loomings", "start": 0, "end": 9}, ["chapter Loomings"]),
        ({"member": "mail/a.csv", "rows": "12-40"}, ["member mail/a.csv", "rows 12-40"]),
        ({"symbol": "Boat.row", "heading": "Boat > row"}, ["symbol Boat.row"]),
        ({"heading": "A > B"}, ["A > B"]),
        ({"page": None, "heading": None}, []),
        ({}, []),
    ],
)
def test_a_citation_names_what_applies(anchor: dict[str, Any], words: list[str]) -> None:
    assert citation(anchor) == words


def test_an_explanation_names_the_legs_that_found_it() -> None:
    assert (
        explained(
            {"fts": {"rank": 1, "score": 12.3456}, "vector": {"rank": 0, "score": 0.0}, "matched_terms": ["a", "b"]}
        )
        == "words rank 1 (score 12.346); matched a, b"
    )
    assert explained({"fts": None, "vector": {"rank": 2, "score": 0.5}, "matched_terms": []}) == (
        "meaning rank 2 (score 0.500)"
    )


@pytest.mark.parametrize(
    ("query", "text", "found"),
    [
        ("How to service the boiler", "Boilers are serviced; the boilermaker is not", ["Boilers", "serviced"]),
        ("API key", "the API is keyed", ["API"]),
        ("a b", "a cab b", ["a", "b"]),
        ("漢字", "これは漢字です", ["漢字"]),
        ("c++ (2026)", "c 2026", ["2026"]),
        ("???", "what", []),
    ],
)
def test_the_words_that_matter_are_highlighted(query: str, text: str, found: list[str]) -> None:
    pattern = matching(query)
    assert (pattern.findall(text) if pattern else []) == found


def test_every_part_of_a_phrase_without_spaces_stands_out() -> None:
    pattern = matching("锅炉保养")
    assert pattern
    assert pattern.findall("锅炉每年三月保养一次") == ["锅炉", "保养"]
    assert pattern.findall("说到锅炉保养时") == ["锅炉保养"]


def test_the_citation_does_not_say_the_title_again() -> None:
    assert citation({"heading": "Care"}, "Care") == []
    assert citation({"page": 3, "heading": "Care > Boiler"}, "Care") == ["page 3", "Boiler"]
    assert citation({"heading": "Careful"}, "Care") == ["Careful"]
