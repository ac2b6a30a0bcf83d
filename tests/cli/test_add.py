"""`kb add`: every file ends in an outcome, in order, and the exit code is that of the first failure."""

import json
import signal
from pathlib import Path

from support import Http, StartEngine, eventually

from .conftest import Kb


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"The content of {name} in {folder.name}")


def test_files_are_added_with_their_resolved_path(kb: Kb, tag: str) -> None:
    write(kb.folder, f"{tag}.txt")
    (kb.folder / "link.txt").symlink_to(f"{tag}.txt")
    [outcome] = kb("add", "link.txt", "--tags", tag, "--json").json
    assert outcome["path"] == "link.txt"
    assert outcome["status"] == "completed"
    document = kb("get", str(outcome["document_id"]), "--json").json
    assert document["source_path"] == str((kb.folder / f"{tag}.txt").resolve()) == outcome["source_path"]
    assert document["tags"] == [tag]


def test_each_file_has_its_line_and_there_is_a_summary(kb: Kb, tag: str) -> None:
    write(kb.folder / tag, "a.txt", "b.txt")
    ran = kb("add", tag)
    assert ran.code == 0
    first, second, summary = ran.out.splitlines()
    assert first.startswith(f"added      {tag}/a.txt  document ")
    assert first.endswith(", 1 passage")
    assert second.startswith(f"added      {tag}/b.txt  document ")
    assert summary == "2 files: 2 added"


def test_a_changed_file_updates_its_document_and_an_unchanged_one_is_told(kb: Kb, tag: str) -> None:
    write(kb.folder, f"{tag}.txt", f"{tag}-2.txt")
    before = kb("add", f"{tag}.txt", f"{tag}-2.txt", "--json").json
    (kb.folder / f"{tag}.txt").write_text("Something else entirely")
    ran = kb("add", f"{tag}.txt", f"{tag}-2.txt")
    updated, unchanged, summary = ran.out.splitlines()
    assert updated.startswith(f"updated    {tag}.txt  document {before[0]['document_id']}")
    assert unchanged == f"unchanged  {tag}-2.txt  already document {before[1]['document_id']}"
    assert summary == "2 files: 1 updated, 1 unchanged"


def test_an_empty_file_in_a_folder_is_skipped_and_told(kb: Kb, tag: str) -> None:
    write(kb.folder / tag, "a.txt")
    (kb.folder / tag / "b.txt").touch()
    ran = kb("add", tag)
    assert ran.code == 0
    assert f"skipped    {tag}/b.txt  it is empty\n" in ran.out
    assert ran.out.endswith("2 files: 1 added, 1 skipped\n")


def test_one_failure_hides_no_other_file_and_the_first_one_decides_the_exit_code(kb: Kb, tag: str) -> None:
    write(kb.folder, "good.txt")
    (kb.folder / "program.bin").write_bytes(bytes(range(256)) * 20)
    (kb.folder / "empty.txt").write_bytes(b"")
    ran = kb("add", "program.bin", "missing.txt", "empty.txt", "good.txt", "--tags", tag, "--json")
    assert ran.code == 5
    assert [one["status"] for one in ran.json] == ["failed", "failed", "failed", "completed"]
    assert [one["error"]["code"] for one in ran.json[:3]] == ["unsupported_format", "not_found", "invalid_request"]
    again = kb("add", "missing.txt", "program.bin", "good.txt")
    assert again.code == 3
    assert again.err.splitlines()[0] == "failed     missing.txt  There is no file missing.txt."
    assert again.err.splitlines()[1].startswith("failed     program.bin  ")
    assert again.out.splitlines()[-1] == "3 files: 2 failed, 1 unchanged"


def test_the_formats_that_can_be_read_are_listed_once(kb: Kb) -> None:
    for name in ("one.rar", "two.rar"):
        (kb.folder / name).write_bytes(b"Rar!" + bytes(100))
    ran = kb("add", "one.rar", "two.rar")
    assert ran.err.splitlines() == [
        "failed     one.rar  It cannot be read: it is a RAR file.",
        "failed     two.rar  It cannot be read: it is a RAR file.",
        "Supported formats: pdf, docx, pptx, xlsx, html, jpg, png, svg, webp, gif, bmp, odt, ods, odp, xls, xlsb, "
        "epub, ipynb, markdown, text, code, rtf, csv, json, drawio, canvas, tiff, avif, zip, tar, eml, msg, mbox, "
        "mhtml, doc, ppt.",
    ]
    told = kb("add", "one.rar", "--json").json[0]["error"]
    assert "Supported: PDF, DOCX" in told["message"], "for programs, each error says everything"


def test_a_job_that_fails_exits_5_with_its_reason(kb: Kb) -> None:
    (kb.folder / "blank.txt").write_text(" \n" * 100)
    ran = kb("add", "blank.txt", "--json")
    assert ran.code == 5
    assert ran.json[0]["status"] == "failed"
    assert ran.json[0]["error"]["message"]


def test_without_waiting_every_file_has_its_job(kb: Kb, tag: str) -> None:
    write(kb.folder / tag, "a.txt", "b.txt")
    jobs = [one["job_id"] for one in kb("add", tag, "--no-wait", "--json").json]
    assert len(set(jobs)) == 2
    for job_id in jobs:
        assert kb("jobs", job_id).code == 0


def test_a_title_is_for_a_single_file(kb: Kb, tag: str) -> None:
    write(kb.folder / tag, "a.txt", "b.txt")
    assert kb("add", tag, "--title", "Both").code == 2
    [outcome] = kb("add", f"{tag}/a.txt", "--title", "Given", "--json").json
    assert kb("get", str(outcome["document_id"]), "--json").json["title"] == "Given"


def test_names_of_any_kind_arrive_whole(kb: Kb, tag: str) -> None:
    name = f'wei"rd \\ ünï 世界 {tag}.txt'
    write(kb.folder, name)
    [outcome] = kb("add", name, "--json").json
    document = kb("get", str(outcome["document_id"]), "--json").json
    assert document["source_path"] == str((kb.folder / name).resolve())


def test_when_the_engine_is_away_every_file_says_so_and_only_one_is_tried(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "b.txt", "c.txt")
    offline = Kb("http://127.0.0.1:9", tmp_path)
    ran = offline("add", ".")
    assert ran.code == 6
    assert ran.err.count("unreachable") == 1
    assert ran.out.strip() == "3 files: 1 failed, 2 not tried"
    listed = offline("add", ".", "--json")
    assert (listed.code, len(listed.json)) == (6, 3)
    assert {one["error"]["code"] for one in listed.json} == {"unavailable"}


def test_on_a_terminal_the_outcome_is_what_stays(kb: Kb, tag: str) -> None:
    write(kb.folder, f"{tag}.txt")
    ran = kb.on_terminal("add", f"{tag}.txt", COLUMNS="200")
    assert ran.code == 0
    last = ran.out.split("\x1b[K")[-1]
    assert "\x1b[32madded" in last
    assert f"{tag}.txt  document" in last
    assert "1 file: 1 added" in last


def test_a_file_that_has_not_changed_is_not_sent_again(start_engine: StartEngine, tmp_path: Path) -> None:
    kb = Kb(start_engine().url, tmp_path)
    write(tmp_path, "a.txt")
    (first,) = kb("add", "a.txt", "--tags", "one", "--json").json
    (again,) = kb("add", "a.txt", "--json").json
    assert again["job_id"] is None
    assert again["document_id"] == again["duplicate_of"] == first["document_id"]
    (tagged,) = kb("add", "a.txt", "--tags", "two", "--json").json
    assert tagged["job_id"] is not None
    assert Http(kb.url)("GET", f"/api/v1/documents/{first['document_id']}").json["tags"] == ["one", "two"]


def test_an_interrupt_sums_up_and_says_how_to_go_on(kb: Kb, tag: str, http: Http) -> None:
    write(kb.folder / tag, *(f"{number:02}.txt" for number in range(40)))
    process = kb.begin("add", tag, "--tags", tag, "--json")
    eventually(lambda: http("GET", f"/api/v1/documents?tag={tag}").json["total"] >= 3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert 0 < len(json.loads(out)) < 40
    assert "left. What the engine has accepted goes on there; run the same command again" in err
    done = kb("add", tag, "--tags", tag)
    assert done.code == 0
    assert http("GET", f"/api/v1/documents?tag={tag}").json["total"] == 40
    assert "unchanged" in done.out.splitlines()[-1]


def test_on_a_terminal_one_bar_counts_all_files_and_failures_come_last(kb: Kb, tag: str) -> None:
    write(kb.folder / tag, "a.txt", "c.txt", "d.txt")
    (kb.folder / tag / "b.txt").write_bytes(bytes(range(256)) * 20)
    kb("add", f"{tag}/d.txt")
    ran = kb.on_terminal("add", tag, NO_COLOR="1", COLUMNS="100")
    assert ran.code == 5
    shown = [line.rpartition("\x1b[K")[2] for line in ran.out.strip().split("\n")]
    assert f"1/4 {tag}/a.txt: sending" in ran.out
    assert f"3/4 {tag}/c.txt: " in ran.out
    assert [line.split()[0] for line in shown if line] == ["added", "added", "failed", "Supported", "4"]
    assert shown[-1] == "4 files: 2 added, 1 failed, 1 unchanged"
