"""`kb backup`, `restore`, `export`, `doctor` and `duplicates` against an engine of their own."""

import json
import re
import tarfile
from pathlib import Path

import pytest

from support import StartEngine

from .conftest import Kb


@pytest.fixture
def own(start_engine: StartEngine, tmp_path: Path) -> Kb:
    return Kb(start_engine().url, tmp_path)


def test_a_backup_restored_elsewhere_answers_the_same(own: Kb, start_engine: StartEngine, tmp_path: Path) -> None:
    (tmp_path / "pensions.md").write_text("# Pensions\n\nThey are revalued every April.")
    own("add", "pensions.md", "--tags", "work")
    own("addnote", "The spare key hangs behind the boiler", "--tags", "home")
    asked = [("search", query, "--json") for query in ("when are pensions revalued", "spare key")]
    before = [own(*words).json["results"] for words in asked]

    saved = own("backup", "kb.tar")
    assert (saved.code, re.search(r"Saved kb\.tar \(.*\d [KM]B\)", saved.out) is not None) == (0, True), saved.err
    again = own("backup", "kb.tar")
    assert (again.code, "--force" in again.err) == (4, True)
    restored = own("restore", "kb.tar", "--data-dir", str(tmp_path / "copy"), "--json")
    assert restored.json["originals"] == 1
    refused = own("restore", "kb.tar", "--data-dir", str(tmp_path / "copy"))
    assert (refused.code, "not empty" in refused.err) == (4, True)
    replaced = own("restore", "kb.tar", "--data-dir", str(tmp_path / "copy"), "--force")
    assert replaced.code == 0
    assert f"Start it with: kb serve --data-dir {tmp_path / 'copy'}\n" in replaced.out

    copy = Kb(start_engine(tmp_path / "copy", KB_DATABASE_URL="").url, tmp_path)  # a folder, also from PostgreSQL
    assert [copy(*words).json["results"] for words in asked] == before


def test_an_engine_that_runs_is_not_replaced(own: Kb, tmp_path: Path) -> None:
    own("backup", "kb.tar")
    ran = own("restore", "kb.tar", "--data-dir", str(tmp_path / "data"), "--force")
    assert ran.code == 4
    assert own("status").code == 0


def test_what_is_no_backup_changes_nothing(own: Kb, tmp_path: Path) -> None:
    (tmp_path / "bad.tar").write_bytes(b"this is no archive")
    ran = own("restore", "bad.tar", "--data-dir", str(tmp_path / "new"))
    assert (ran.code, "Nothing was changed" in ran.err) == (2, True)
    assert not (tmp_path / "new").exists()


def test_an_export_is_a_tar_of_json_lines(own: Kb, tmp_path: Path) -> None:
    own("addnote", "A note to take away", "--tags", "x")
    assert own("export", "all.tar").code == 0
    with tarfile.open(tmp_path / "all.tar") as tar:
        lines = tar.extractfile("documents.jsonl")
        assert lines is not None
        (document,) = [json.loads(line) for line in lines]
    assert (document["text"], document["tags"]) == ("A note to take away", ["x"])


def test_the_doctor_says_that_all_is_well(own: Kb) -> None:
    ran = own("doctor")
    assert ran.code == 0, ran.out
    assert "ok  database file" in ran.out
    assert own("doctor", "--json").json["healthy"] is True
    assert own("doctor", "--fix", "--json").json["healthy"] is True


@pytest.mark.sqlite
def test_the_doctor_exits_with_1_while_something_is_wrong(own: Kb, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a file whose original will be lost")
    own("add", "a.txt")
    for original in (tmp_path / "data" / "originals").glob("*/*"):
        original.unlink()
    ran = own("doctor")
    assert (ran.code, "!!" in ran.out) == (1, True), ran.out


def test_notes_that_say_the_same_are_listed(own: Kb) -> None:
    assert "No two notes" in own("duplicates").out
    own("addnote", "The meeting is on Monday at ten", "--tags", "a")
    own("addnote", "The meeting is on Monday at ten", "--tags", "b")
    (pair,) = own("duplicates", "--json").json["duplicates"]
    assert pair["similarity"] == 1.0
    assert own("duplicates").out.startswith("1.000\t")


@pytest.mark.sqlite
def test_a_backup_of_damaged_files_says_what_it_does_without(own: Kb, tmp_path: Path) -> None:
    (tmp_path / "report.txt").write_text("The boiler was serviced in March.")
    own("add", "report.txt")
    (original,) = (tmp_path / "data" / "originals").glob("*/*")
    original.write_text("The boiler was serviced in march.")
    saved = own("backup", "kb.tar")
    assert (saved.code, "1 originals are damaged and not in it" in saved.out) == (1, True), saved.out
    assert "changed on the disk" in own("doctor").out
    restored = own("restore", "kb.tar", "--data-dir", str(tmp_path / "copy"))
    assert (restored.code, "documents 1 are damaged in the backup" in restored.out) == (0, True), restored.out
