"""`kb eval`: the user's own questions, measured against the user's own documents."""

import json

import pytest

from kb.core import measures

from .conftest import Kb


def lines(*questions: object) -> str:
    return "\n".join(json.dumps(question) for question in questions) + "\n"


@pytest.fixture
def library(kb: Kb, tag: str) -> tuple[Kb, str]:
    kb("addnote", "Otters sleep on their backs and hold hands.", "--title", f"Otters {tag}", "--tags", tag)
    kb("addnote", "Taxes are due on the last day of May.", "--title", f"Taxes {tag}", "--tags", tag)
    return kb, tag


def test_questions_are_measured_in_every_mode(library: tuple[Kb, str]) -> None:
    kb, tag = library
    asked = lines(
        {"query": "how do otters sleep", "relevant": [f"Otters {tag}"], "tags": [tag]},
        {"query": "when are taxes due", "relevant": {f"Taxes {tag}": 2, f"Otters {tag}": 0}, "tags": [tag]},
    )
    ran = kb("eval", "-", "--json", stdin=asked)
    assert ran.code == 0, ran.err
    assert ran.json["questions"] == 2
    assert ran.json["modes"]["hybrid"] == {"ndcg_at_10": 1.0, "recall_at_10": 1.0}
    assert ran.json["missed"] == []
    shown = kb("eval", "-", stdin=asked)
    assert "hybrid\t1.000\t1.000" in shown.out
    assert "2 questions" in shown.out


def test_a_question_that_finds_nothing_is_named(library: tuple[Kb, str]) -> None:
    kb, tag = library
    question = {"query": "when are taxes due", "relevant": [f"Taxes {tag}"], "tags": [tag, "no such tag"]}
    ran = kb("eval", "-", stdin=lines(question))
    assert ran.code == 0, ran.err
    assert "nothing relevant among the first 10: when are taxes due" in ran.out


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"query": "x", "relevant": ["no document of this name"]}', "Line 1 is not a question: no document is called"),
        ('{"query": "x"}', "there is no 'relevant'"),
        ('{"query": "x", "relevant": []}', "names no relevant document"),
        ("not json", "Line 1"),
        ("[]", "Line 1"),
        ("", "no question in it"),
    ],
)
def test_what_is_no_question_is_named_by_its_line(kb: Kb, line: str, problem: str) -> None:
    ran = kb("eval", "-", stdin=line)
    assert ran.code == 2
    assert problem in ran.err


def test_a_file_that_is_not_there_is_a_clear_error(kb: Kb) -> None:
    ran = kb("eval", "nowhere.jsonl")
    assert ran.code == 2
    assert "nowhere.jsonl cannot be read" in ran.err


def test_measures_are_those_of_trec_eval() -> None:
    assert measures.ndcg(["a", "b", "c"], {"a": 1}) == 1.0
    assert measures.ndcg(["x", "a"], {"a": 1}) == pytest.approx(0.6309, abs=1e-4)
    assert measures.ndcg(["b", "a"], {"a": 3, "b": 1}) == pytest.approx((1 + 3 * 0.6309) / (3 + 0.6309), abs=1e-4)
    assert measures.recall(["a", *"xxxxxxxxx", "b"], {"a": 1, "b": 1}) == 0.5


def test_a_difference_that_is_luck_has_an_interval_around_zero() -> None:
    sure = measures.paired_difference([1.0] * 50 + [0.8] * 50, [0.5] * 100)
    assert (sure.low > 0, round(sure.mean, 3)) == (True, 0.4)
    luck = measures.paired_difference([1.0, 0.0] * 50, [0.0, 1.0] * 50)
    assert luck.low < 0 < luck.high
