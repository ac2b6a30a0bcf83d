"""`kb history` and `kb revert`: every version of a note is listed, shown and restored."""

from .conftest import Kb


def test_versions_are_listed_shown_and_restored(kb: Kb, tag: str) -> None:
    number = str(kb("addnote", "Meet on Monday\nBring cake", "--tags", tag, "--json").json["document_id"])
    kb("updatenote", number, "Meet on Tuesday\nBring cake")
    newest, oldest = kb("history", number).out.splitlines()
    assert newest.startswith("2\t")
    assert newest.endswith("Meet on Tuesday Bring cake")
    assert oldest.startswith("1\t")
    changed = kb("history", number, "2").out.splitlines()
    assert {"-Meet on Monday", "+Meet on Tuesday", " Bring cake"} <= set(changed)
    ran = kb("revert", number, "1")
    assert (ran.code, ran.out) == (0, f"Note {number} has the text of version 1 again, as version 3.\n")
    assert kb("get", number, "--json").json["text"] == "Meet on Monday\nBring cake"
    assert len(kb("history", number, "--json").json["versions"]) == 3


def test_a_version_that_is_not_there_is_named(kb: Kb, tag: str) -> None:
    number = str(kb("addnote", "Only one version", "--tags", tag, "--json").json["document_id"])
    for words in (["history", number, "9"], ["revert", number, "9"]):
        ran = kb(*words)
        assert (ran.code, ran.out) == (3, "")
        assert "9" in ran.err
