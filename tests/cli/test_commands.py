"""Every command against a real engine: what it does, what it prints, how it exits."""

from pathlib import Path

from support import StartEngine

from .conftest import Kb


def test_status_shows_what_the_engine_holds(kb: Kb, tag: str) -> None:
    kb("addnote", "The model is loaded when this is answered", "--tags", tag)
    answer = kb("status", "--json").json
    assert answer["version"]
    assert answer["health"]["status"] == "healthy"
    ran = kb("status")
    assert ran.code == 0
    assert f"kb {answer['version']}" in ran.out
    assert "healthy" in ran.out
    assert answer["model"]["name"] in ran.out


def test_a_note_can_be_found_once_it_is_added(kb: Kb, tag: str) -> None:
    added = kb("addnote", "The spare key hangs behind the boiler", "--tags", f"{tag},home", "--json").json
    assert added["status"] == "completed"
    [hit] = kb("search", "where is the spare key", "--tags", tag, "--json").json["results"]
    assert hit["document_id"] == added["document_id"]
    assert sorted(hit["tags"]) == sorted([tag, "home"])


def test_the_same_note_again_is_the_same_document(kb: Kb, tag: str) -> None:
    first = kb("addnote", "Twice told", "--tags", tag, "--json").json
    again = kb("addnote", "Twice told", "--tag", tag)
    assert (again.code, again.out) == (0, f"Already known as document {first['document_id']}.\n")


def test_a_note_from_standard_input_is_kept_exactly(kb: Kb, tag: str) -> None:
    text = "# Minutes\n\n  indented – ünïcode 世界\n"
    added = kb("addnote", "-", "--title", "Given", "--tags", tag, "--json", stdin=text).json
    document = kb("get", str(added["document_id"]), "--json").json
    assert (document["text"], document["title"]) == (text, "Given")


def test_standard_input_that_is_no_text_is_refused(kb: Kb) -> None:
    ran = kb("addnote", "-", stdin=b"\xff\xfe\x00")
    assert ran.code == 2
    assert "not UTF-8" in ran.err


def test_without_waiting_the_job_is_named(kb: Kb, tag: str) -> None:
    answer = kb("addnote", "Later", "--tags", tag, "--no-wait", "--json").json
    assert answer["status"] in ("queued", "running", "completed")
    assert kb("jobs", answer["job_id"], "--json").json["id"] == answer["job_id"]
    ran = kb("addnote", "Even later", "--tags", tag, "--no-wait")
    assert ran.code == 0
    assert "kb jobs " in ran.out


def test_an_empty_note_is_refused(kb: Kb) -> None:
    ran = kb("addnote", "")
    assert (ran.code, ran.out) == (2, "")


def test_a_note_is_replaced_unless_somebody_was_faster(kb: Kb, tag: str) -> None:
    number = str(kb("addnote", "Meet on Monday", "--tags", tag, "--json").json["document_id"])
    ran = kb("updatenote", number, "Meet on Tuesday", "--expected-version", "1")
    assert (ran.code, ran.out) == (0, f"Note {number} is now version 2.\n")
    late = kb("updatenote", number, "Meet on Friday", "--expected-version", "1")
    assert (late.code, late.out) == (4, "")
    assert kb("updatenote", number, "Meet on Friday", "--expected-version", "1", "--json").json["error"]["code"] == (
        "conflict"
    )
    updated = kb("updatenote", number, "-", "--json", stdin="Meet on Wednesday").json
    assert (updated["version"], updated["id"]) == (3, int(number))
    [hit] = kb("search", "when do we meet", "--tags", tag, "--json").json["results"]
    assert hit["text"] == "Meet on Wednesday"


def test_only_notes_can_be_replaced(kb: Kb, tag: str) -> None:
    (kb.folder / "a.txt").write_text(f"A file about {tag}")
    [added] = kb("add", "a.txt", "--json").json
    assert kb("updatenote", str(added["document_id"]), "new").code == 2
    assert kb("updatenote", "999999999", "new").code == 3


def test_search_prints_title_citation_score_tags_and_passage(kb: Kb, tag: str) -> None:
    (kb.folder / "handbook.md").write_text(
        f"# Handbook {tag}\n\n## Boiler\n\nThe boiler is serviced every March by the same company.\n"
    )
    [added] = kb("add", "handbook.md", "--tags", tag, "--json").json
    ran = kb("search", "when", "is", "the", "boiler", "serviced", "--tags", tag)
    assert ran.code == 0
    assert ran.out.startswith(f"1. Handbook {tag}")
    assert "Boiler" in ran.out.splitlines()[0]
    assert f"document {added['document_id']}" in ran.out
    assert f"tags {tag}" in ran.out
    assert "score 0." in ran.out
    assert "serviced every March" in ran.out
    assert "\x1b" not in ran.out


def test_search_flags_reach_the_engine(kb: Kb, tag: str) -> None:
    for number in range(3):
        kb("addnote", f"Gardening advice number {number}: water the tomatoes", "--tags", tag)
    found = kb("search", "tomatoes", "--tags", tag, "--json").json
    assert found["total"] == 3
    for flags, total in (
        (["--top", "2"], 2),
        (["--type", "pdf"], 0),
        (["--min-score", "1"], 0),
        (["--after", "2100-01-01"], 0),
        (["--before", "2000-01-01"], 0),
        (["--after", "2000-01-01", "--before", "2100-01-01"], 3),
        (["--mode", "fts"], 3),
        (["--tags", "no-such-tag"], 0),
    ):
        answer = kb("search", "tomatoes", "--tags", tag, *flags, "--json").json
        assert answer["total"] == total, flags
    assert kb("search", "tomatoes", "--tags", tag, "--mode", "vector", "--json").json["mode"] == "vector"
    explained = kb("search", "tomatoes", "--tags", tag, "--explain", "--json").json["results"][0]
    assert explained["explain"]["matched_terms"]
    assert "matched " in kb("search", "tomatoes", "--tags", tag, "--explain").out
    short = kb("search", "tomatoes", "--tags", tag, "--max-tokens", "3", "--json").json["results"]
    assert short[0]["truncated"] is True


def test_a_search_that_finds_nothing_says_why_and_is_no_failure(kb: Kb, tag: str) -> None:
    ran = kb("search", "anything", "--tags", tag)
    assert ran.code == 0
    assert ran.out.strip() == kb("search", "anything", "--tags", tag, "--json").json["notice"]


def test_what_the_engine_refuses_exits_2(kb: Kb) -> None:
    for words in (["--top", "0"], ["--type", "scroll"], ["--mode", "magic"], ["--min-score", "7"], ["--after", "soon"]):
        ran = kb("search", "x", *words)
        assert (ran.code, ran.out) == (2, ""), words
        assert ran.err.count("\n") == 1


def test_a_document_is_shown_with_its_passages(kb: Kb, tag: str) -> None:
    (kb.folder / "long.md").write_text(
        f"# Long {tag}\n\n" + "\n\n".join(f"## Part {n}\n\n" + f"Sentence {n} about gardens. " * 40 for n in range(6))
    )
    [added] = kb("add", "long.md", "--json").json
    number = str(added["document_id"])
    document = kb("get", number, "--json").json
    assert len(document["chunks"]) == document["chunk_count"] > 2
    assert len(kb("get", document["uid"], "--first-chunk", "1", "--max-chunks", "1", "--json").json["chunks"]) == 1
    shown = kb("get", number).out
    assert shown.startswith(f"Long {tag}\n")
    assert "passage 0" in shown
    assert "Part 3" in shown
    assert document["uid"] in shown
    assert kb("get", "999999999").code == 3


def test_documents_are_listed_and_filtered(kb: Kb, tag: str) -> None:
    first = kb("addnote", f"first {tag}", "--tags", tag, "--json").json["document_id"]
    second = kb("addnote", f"second {tag}", "--tags", tag, "--json").json["document_id"]
    lines = kb("list", "--tags", tag).out.splitlines()
    assert [line.split("\t")[0] for line in lines] == [str(second), str(first)]
    assert lines[0].split("\t")[-1] == f"second {tag}"
    assert kb("list", "--tag", tag, "--limit", "1", "--json").json["total"] == 2
    partial = kb("list", "--tags", tag, "--limit", "1")
    assert "1 of 2 documents" in partial.err
    assert [
        d["id"] for d in kb("list", "--tags", tag, "--sort", "created", "--order", "asc", "--json").json["documents"]
    ] == [
        first,
        second,
    ]
    assert kb("list", "--tags", tag, "--type", "pdf", "--json").json["total"] == 0
    nothing = kb("list", "--tags", f"{tag}-none")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no documents" in nothing.err


def test_a_list_by_several_tags_has_what_carries_all_of_them(kb: Kb, tag: str) -> None:
    both = kb("addnote", "both", "--tags", f"{tag},{tag}-b", "--json").json["document_id"]
    kb("addnote", "one", "--tags", tag)
    kb("addnote", "other", "--tags", f"{tag}-b")
    listed = kb("list", "--tags", f"{tag},{tag}-b", "--json").json["documents"]
    assert [document["id"] for document in listed] == [both]


def test_tags_are_changed_and_counted(kb: Kb, tag: str) -> None:
    number = str(kb("addnote", f"Tagged {tag}", "--tags", f"{tag},draft", "--json").json["document_id"])
    ran = kb("tag", number, "--add", f"{tag}-a,{tag}-b", "--remove", "draft")
    assert (ran.code, ran.out) == (0, f"document {number}: {tag}, {tag}-a, {tag}-b\n")
    assert kb("tag", number).out == ran.out
    assert f"1\t{tag}-a" in kb("tag").out.splitlines()
    assert {"tag": tag, "documents": 1} in kb("tag", "--json").json["tags"]
    assert kb("tag", "--add", "x").code == 2
    assert kb("tag", "999999999", "--add", "x").code == 3


def test_deleting_asks_and_without_an_answer_deletes_nothing(kb: Kb, tag: str) -> None:
    number = str(kb("addnote", f"Doomed {tag}", "--tags", tag, "--json").json["document_id"])
    refused = kb("rm", number)
    assert refused.code == 2
    assert "--yes" in refused.err
    declined = kb.on_terminal("rm", number, typed="n\n")
    assert declined.code == 1
    assert f"Doomed {tag}" in declined.out
    assert kb("get", number).code == 0
    agreed = kb.on_terminal("rm", number, typed="y\n")
    assert agreed.code == 0
    assert f"Deleted document {number} (1 passage). Until " in agreed.out
    assert f"`kb trash restore {number}` brings it back" in agreed.out
    assert kb("get", number).code == 3
    assert kb("trash", "restore", number).out == f"Document {number} is back: Doomed {tag}\n"
    assert kb("get", number).code == 0


def test_deleting_with_yes_answers_with_what_is_gone(kb: Kb, tag: str) -> None:
    numbers = [str(kb("addnote", f"Doomed {n} {tag}", "--tags", tag, "--json").json["document_id"]) for n in range(3)]
    answer = kb("rm", numbers[0], "--yes", "--json").json
    assert answer.pop("expires_at")
    assert answer == {"document_id": int(numbers[0]), "filename": None, "chunks_removed": 1}
    ran = kb("rm", "--yes", numbers[1], "999999999", numbers[2], "--json")
    assert ran.code == 3
    assert [next(iter(one)) for one in ran.json] == ["document_id", "error", "document_id"]
    assert kb("list", "--tags", tag, "--json").json["total"] == 0


def test_a_document_is_shown_with_its_links(kb: Kb, tag: str) -> None:
    target = kb("addnote", f"Linked to, {tag}", "--title", f"Target {tag}", "--json").json["document_id"]
    source = kb("addnote", f"See [[target {tag}#part]] and [[missing]], {tag}", "--json").json["document_id"]
    shown = kb("get", str(source)).out
    assert f"  links to  {target} Target {tag} [[target {tag}#part]]\n" in shown
    assert "  links to  nothing here has this name [[missing]]\n" in shown
    assert f"  linked by {source} See [[target {tag}#part]]" in kb("get", str(target)).out


def test_an_empty_trash_says_so(start_engine: StartEngine, tmp_path: Path) -> None:
    ran = Kb(start_engine().url, tmp_path)("trash")
    assert (ran.code, ran.out, ran.err) == (0, "", "The trash is empty.\n")


def test_the_trash_is_listed_brought_back_and_purged(kb: Kb, tag: str) -> None:
    numbers = [str(kb("addnote", f"Thrown {n} {tag}", "--tags", tag, "--json").json["document_id"]) for n in range(3)]
    uid = kb("get", numbers[1], "--json").json["uid"]
    assert kb("rm", "--yes", *numbers).code == 0
    listed = kb("trash", "--limit", "1000").out.splitlines()
    assert any(line.startswith(f"{numbers[0]}\tnote\t") and line.endswith(f"Thrown 0 {tag}") for line in listed)
    assert {*map(int, numbers)} <= {one["id"] for one in kb("trash", "--limit", "1000", "--json").json["documents"]}
    assert " in the trash" in kb("status").out

    back = kb("trash", "restore", uid, "999999999", "--json")
    assert (back.code, back.json[0]["tags"], back.json[1]["error"]["code"]) == (3, [tag], "not_found")
    asked = kb.on_terminal("rm", "--purge", numbers[0], numbers[1], typed="y\n")
    assert (asked.code, "Delete for good? [y/N]" in asked.out, asked.out.count("for good.")) == (0, True, 2)
    assert kb("trash", "restore", numbers[0]).code == 3
    assert kb("trash", "restore").code == kb("trash", "emtpy").code == 2

    assert kb("trash", "empty").code == 2
    assert "Nothing was deleted." in kb.on_terminal("trash", "empty", typed="n\n").out
    total = kb("trash", "--json").json["total"]
    assert kb("trash", "empty", "--yes", "--json").json == {"documents_removed": total}
    assert kb("trash", "--json").json["total"] == 0


def test_jobs_are_listed_and_shown(kb: Kb, tag: str) -> None:
    job_id = kb("addnote", f"Work {tag}", "--tags", tag, "--json").json["job_id"]
    listed = kb("jobs", "--limit", "1000", "--json").json
    assert job_id in [job["id"] for job in listed["jobs"]]
    assert any(line.startswith(f"{job_id}\tcompleted\t100%") for line in kb("jobs", "--limit", "1000").out.splitlines())
    shown = kb("jobs", job_id)
    assert shown.code == 0
    assert "completed" in shown.out
    assert kb("jobs", "--status", "completed", "--limit", "1", "--json").json["jobs"][0]["status"] == "completed"
    assert kb("jobs", "--status", "lost").code == 2
    assert kb("jobs", "no-such-job").code == 3
    assert kb("jobs", "--cancel").code == 2


def test_a_job_that_has_ended_well_can_be_neither_cancelled_nor_retried(kb: Kb, tag: str) -> None:
    job_id = kb("addnote", f"Done {tag}", "--tags", tag, "--json").json["job_id"]
    assert kb("jobs", job_id, "--cancel").code == 4
    assert kb("jobs", job_id, "--retry").code == 4


def test_a_path_narrows_a_search_and_a_list(kb: Kb, tag: str) -> None:
    for name in ("in/a.md", "in/deep/b.md", "inside.md"):
        path = kb.folder / tag / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"First line\n\nThe otter of {name}\n")
    kb("add", tag, "--tags", tag)
    folder = f"{tag}/in"
    names = {hit["filename"] for hit in kb("search", "otter", "-t", tag, "--path", folder, "-j").json["results"]}
    assert names == {"a.md", "b.md"}
    assert kb("list", "-t", tag, "--path", folder, "-j").json["total"] == 2
    assert kb("list", "-t", tag, "--path", f"{tag}/inside.md", "-j").json["total"] == 1
    assert kb("list", "-t", tag, "--before", "2000-01-01", "-j").json["total"] == 0


def test_a_hit_names_the_path_and_line_of_its_file(kb: Kb, tag: str) -> None:
    path = kb.folder / f"{tag}.md"
    text = "\n\n".join(f"Animal {number} swims in the river and sleeps on the bank." for number in range(60))
    path.write_text(f"{text}\n\nThe badger digs at night.\n")
    kb("add", path.name, "--tags", tag)
    asked = ("search", "badger digs at night", "--tags", tag, "-n", "1")
    start = kb(*asked, "--json").json["results"][0]["anchor"]["start"]
    line = path.read_text()[:start].count("\n") + 1
    assert line > 1
    assert f"{path.resolve()}:{line}\n" in kb(*asked).out


def test_a_job_is_known_by_the_start_of_its_id(kb: Kb, tag: str) -> None:
    whole = kb("addnote", "Short ids", "--tags", tag, "--no-wait", "--json").json["job_id"]
    assert kb("jobs", whole[:8], "--json").json["id"] == whole
    listed = kb.on_terminal("jobs", COLUMNS="80").out
    assert whole[:8] in listed
    assert whole not in listed
    assert " ago" in listed
    assert all(len(line) <= 80 for line in listed.splitlines())
    assert kb("jobs", "no-such-job").code == 3
