"""`kb import`: what was exported comes in as it was, and a second time changes nothing; Markdown becomes notes."""

import hashlib
import io
import json
import signal
import tarfile
from pathlib import Path
from typing import Any

import pytest

import made
from kb.cli.importing.frontmatter import split, tags_of
from support import Http, StartEngine, eventually

from .conftest import Kb

DOCS = Path(__file__).parent.parent.parent / "docs"
# What an import cannot carry over: it is another document, made now.
NOT_CARRIED = ("id", "parent", "uid", "created_at", "updated_at", "processing_method", "ledger")


@pytest.fixture
def own(start_engine: StartEngine, tmp_path: Path) -> Kb:
    return Kb(start_engine().url, tmp_path)


@pytest.fixture
def other(start_engine: StartEngine, tmp_path: Path) -> Kb:
    return Kb(start_engine(tmp_path / "other").url, tmp_path)


def documents(url: str, tag: str = "") -> list[dict[str, Any]]:
    """The oldest first, notes with their versions."""
    http = Http(url)
    asked = f"sort=created&order=asc&limit=1000{f'&tag={tag}' if tag else ''}"
    listed: list[dict[str, Any]] = http("GET", f"/api/v1/documents?{asked}").json["documents"]
    for document in listed:
        if document["doc_type"] == "note":
            versions = http("GET", f"/api/v1/notes/{document['id']}/versions").json["versions"]
            document["versions"] = [(version["version"], version["text"]) for version in versions]
    return listed


def carried(document: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name not in NOT_CARRIED}


def found(url: str, queries: list[str]) -> list[Any]:
    http = Http(url)
    return [
        [(hit["title"], hit["text"], round(hit["score"], 6), hit["anchor"]) for hit in http.search(query)["results"]]
        for query in queries
    ]


def queries_from(folder: Path, count: int) -> list[str]:
    """Stretches of five words from all over the pages, and a few that match nothing by its words."""
    words = " ".join(path.read_text() for path in sorted(folder.glob("*.md"))).split()
    step = len(words) // count
    return [" ".join(words[at : at + 5]) for at in range(0, step * count, step)]


def test_an_export_imported_elsewhere_is_the_same(own: Kb, other: Kb, tmp_path: Path) -> None:
    http = Http(own.url)
    own("add", str(DOCS / "decisions"), "--tags", "design,why")
    http.add_file("loose.txt", b"A file without a path", [("tags", '["z","a"]'), ("metadata", '{"page": 3}')])
    http.add_file("named.md", b"# Heading\n\nA file with a title of its own", [("title", "Given")])
    first = http.add_note("The boiler is serviced in March", tags=["home"], metadata={"by": "Anna"})
    for text in ("The boiler is serviced in April", "The boiler is gone"):
        http("PATCH", f"/api/v1/notes/{first}", {"text": text})
    http.add_note("The boiler is gone", tags=["other"])
    twin = http.add_note("It will say the same", tags=["home"])
    http("PATCH", f"/api/v1/notes/{twin}", {"text": "The boiler is gone"})
    http.add_note("Text with a title", title="A title", source_path="memory/note.md")
    letters = made.archive({"a.txt": "A letter to Anna", "b.txt": "A letter to Bob", "c.txt": "A letter to Carl"})
    parent = http.add_file("letters.zip", letters, [("tags", '["post"]')]).json["document_id"]
    first, second, _ = http("GET", f"/api/v1/documents?parent={parent}&sort=created&order=asc").json["documents"]
    http("DELETE", f"/api/v1/documents/{first['id']}?purge=true")
    http("POST", f"/api/v1/documents/{second['id']}/tags", {"add": ["bob"], "remove": ["post"]})
    assert own("export", "all.tar").code == 0

    ran = other("import", "all.tar")
    assert ran.code == 0, ran.err
    before, after = documents(own.url), documents(other.url)
    assert ran.out.splitlines()[-1] == f"{len(before)} documents: {len(before)} added"
    assert [carried(document) for document in after] == [carried(document) for document in before]
    queries = [*queries_from(DOCS / "decisions", 97), "boiler", "a file", "quite unrelated to anything"]
    assert found(other.url, queries) == found(own.url, queries)

    again = other("import", "all.tar", "--json")
    assert again.code == 0
    assert documents(other.url) == after


def archive(path: Path, *lines: object, **originals: bytes) -> None:
    with tarfile.open(path, "w") as tar:
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        for name, data in (("documents.jsonl", text), *originals.items()):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


def line(**given: Any) -> dict[str, Any]:
    plain = {"title": "A file", "doc_type": "text", "content_hash": "0" * 64, "tags": [], "metadata": {}}
    return plain | {"source_path": None, "filename": "a.txt", "text": "", "uid": "u", "titled": True} | given


def test_an_import_that_was_broken_off_goes_on_where_it_stopped(kb: Kb, tag: str, http: Http) -> None:
    texts = [f"{word} of {tag}" for word in ("one", "two", "three")]
    versions = [{"version": 3 - at, "text": text} for at, text in enumerate(reversed(texts))]
    archive(kb.folder / "all.tar", line(doc_type="note", title="T", tags=[tag], versions=versions))
    there = http.add_note(texts[0], tags=[tag], title="T")
    http("PATCH", f"/api/v1/notes/{there}", {"text": texts[1]})
    assert kb("import", "all.tar").out.splitlines()[-1] == "1 document: 1 updated"
    (document,) = documents(kb.url, tag)
    assert document["versions"] == list(zip((3, 2, 1), reversed(texts), strict=True))


def test_what_cannot_be_imported_is_listed_with_its_reason(kb: Kb, tag: str, http: Http) -> None:
    path = f"memory/{tag}.md"
    held = http.add_note("Newer text, written here", source_path=path)
    note = line(doc_type="note", text="Older text", source_path=path, title="Older")
    hash_ = "1" * 64
    damaged = {f"originals/11/{hash_}": b"not the bytes of that hash"}
    archive(kb.folder / "all.tar", line(), note, line(content_hash=hash_, title="Damaged"), **damaged)
    ran = kb("import", "all.tar")
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "failed     text A file  its original is not in the archive",
        f"kept       note {path}  document {held} has this source path and other content; "
        "it is left alone (--force replaces it)",
        "failed     text Damaged  its original is damaged: the bytes do not have the hash that names them",
    ]
    assert ran.out.splitlines()[-1] == "3 documents: 2 failed, 1 kept"
    assert kb("import", "all.tar", "--force").out.splitlines()[0].startswith(f"updated    note {path}")
    assert http("GET", f"/api/v1/documents/{held}").json["text"] == "Older text"


@pytest.mark.parametrize(
    ("content", "told"),
    [(b"no archive at all", "no complete archive"), (b"", "no complete archive"), (None, "There is no file")],
)
def test_what_is_no_export_is_refused(kb: Kb, content: bytes | None, told: str) -> None:
    if content is not None:
        (kb.folder / "x.tar").write_bytes(content)
    ran = kb("import", "x.tar")
    assert ran.code in (2, 3)
    assert told in ran.err


def test_a_backup_is_told_from_an_export(kb: Kb) -> None:
    kb("backup", "kb.tar")
    ran = kb("import", "kb.tar")
    assert (ran.code, "use kb restore" in ran.err) == (2, True)


NOTE = """---
title: "Boiler: care"
tags: [home, 'heating']
serviced: 2026-03-01
by:
  - Anna
cost: 120
---

# Care

Bleed the radiators first.
"""


def test_markdown_with_front_matter_becomes_notes(kb: Kb, tag: str) -> None:
    vault = kb.folder / "vault"
    (vault / "sub").mkdir(parents=True)
    (vault / "boiler.md").write_text(NOTE)
    (vault / "sub" / "Plain page.md").write_text("Just text about 暖气 🔥\n")
    (vault / "broken.md").write_text("---\nthis is no field\n---\ntext")
    (vault / "latin.md").write_bytes(b"caf\xe9")
    (vault / "picture.png").write_bytes(b"png")
    ran = kb("import", "vault", "--tags", tag)
    assert ran.code == 2
    assert ran.out.splitlines()[-1] == "4 files: 2 added, 2 failed"
    assert "line 2 of the front matter" in ran.err
    assert "latin.md" in ran.err
    first, second = documents(kb.url, tag)
    assert (first["title"], first["tags"]) == ("Boiler: care", ["home", "heating", tag])
    assert first["metadata"] == {"serviced": "2026-03-01", "by": ["Anna"], "cost": 120}
    assert first["source_path"] == str(vault / "boiler.md")
    assert first["versions"] == [(1, "# Care\n\nBleed the radiators first.\n")]
    assert (second["title"], second["doc_type"]) == ("Plain page", "note")

    (vault / "boiler.md").write_text(NOTE.replace("first", "last"))
    (vault / "broken.md").unlink()
    (vault / "latin.md").unlink()
    again = kb("import", "vault", "--tags", tag)
    assert again.out.splitlines()[-1] == "2 files: 1 updated, 1 unchanged"
    assert len(documents(kb.url, tag)) == 2


def imported(kb: Kb, *words: str) -> list[str]:
    """The state of each file, then the summary, and what was said of those that failed."""
    ran = kb("import", *words)
    return [line.split()[0] for line in ran.out.splitlines()[:-1]] + ran.err.splitlines()


def test_a_page_without_text_is_skipped(kb: Kb, tag: str) -> None:
    page = kb.folder / "New page.md"
    page.write_text("---\nstatus: new\n---\n\n")
    ran = kb("import", str(page), "--tags", tag)
    assert (ran.code, "there is no text in it" in ran.out, "1 skipped" in ran.out) == (0, True, True), ran


def test_a_note_that_was_edited_in_kb_is_kept(kb: Kb, tag: str, http: Http) -> None:
    page = kb.folder / f"{tag}.md"
    page.write_text("The first text")
    assert imported(kb, page.name, "--tags", tag) == ["added"]
    (note,) = documents(kb.url, tag)
    http("POST", f"/api/v1/documents/{note['id']}/tags", {"add": ["by hand"]})
    http("PATCH", f"/api/v1/notes/{note['id']}", {"text": "Edited in kb"})
    unchanged = kb("import", page.name)
    assert (unchanged.code, unchanged.out.splitlines()) == (
        0,
        [
            f"kept       {page.name}  document {note['id']} was edited in kb, and the file has not changed since "
            "(--force replaces the note)",
            "1 file: 1 kept",
        ],
    )
    page.write_text("The second text")
    refused = kb("import", page.name)
    assert (refused.code, refused.out) == (4, "1 file: 1 kept\n")
    assert refused.err.startswith(f"kept       {page.name}  Note {note['id']} was edited in kb (version 2)")
    assert documents(kb.url, tag)[0]["versions"] == [(2, "Edited in kb"), (1, "The first text")]

    assert imported(kb, page.name, "--force") == ["updated"]
    (forced,) = documents(kb.url, tag)
    assert forced["tags"] == [tag, "by hand"]
    assert [text for _, text in forced["versions"]] == ["The second text", "Edited in kb", "The first text"]
    assert imported(kb, page.name, "--tags", tag, "--replace-tags") == ["updated"]
    assert documents(kb.url, tag)[0]["tags"] == [tag]


def test_an_imported_note_is_not_turned_into_a_file(kb: Kb, tag: str, http: Http) -> None:
    page = kb.folder / f"{tag}.md"
    page.write_text("A page of a vault")
    kb("import", page.name, "--tags", tag)
    ran = kb("add", page.name, "--force")
    assert ran.code == 4
    assert ran.err.startswith(f"kept       {page.name}  Document ")
    assert [note["doc_type"] for note in documents(kb.url, tag)] == ["note"]


def test_front_matter_that_changes_alone_is_an_update(kb: Kb, tag: str) -> None:
    page = kb.folder / f"{tag}.md"
    for author, state in (("Anna", "added"), ("Berta", "updated"), ("Berta", "unchanged")):
        page.write_text(f"---\nauthor: {author}\n---\nThe same text")
        assert imported(kb, page.name, "--tags", tag) == [state]
    (note,) = documents(kb.url, tag)
    assert (note["metadata"], note["version"]) == ({"author": "Berta"}, 1)


def test_what_the_engine_has_under_a_path_is_not_called_added(kb: Kb, tag: str, http: Http) -> None:
    data = f"bytes of {tag}".encode()
    held = http.add_file("a.txt", data, [("source_path", f"/somewhere/{tag}.txt")]).json["document_id"]
    note = http.add_note(f"text of {tag}", source_path=f"/somewhere/{tag}.md")
    sha256 = hashlib.sha256(data).hexdigest()
    lines = [line(content_hash=sha256, titled=False), line(doc_type="note", text=f"text of {tag}", titled=False)]
    archive(kb.folder / "all.tar", *lines, **{f"originals/{sha256[:2]}/{sha256}": data})
    ran = kb("import", "all.tar", "--json").json
    assert [(one["document_id"], one["outcome"]) for one in ran] == [(held, "unchanged"), (note, "unchanged")]


def test_which_texts_a_path_brought_is_known_after_an_import(own: Kb, other: Kb) -> None:
    http = Http(own.url)
    for text in ("first at the path", "second at the path"):
        http.add_note(text, source_path="/vault/a.md")
        note = http.add_note(text, source_path="/vault/b.md")
    http("PATCH", f"/api/v1/notes/{note}", {"text": "edited in kb"})
    own("export", "all.tar")
    assert other("import", "all.tar").code == 0
    third = {"text": "third at the path"}
    sent = [Http(other.url)("POST", "/api/v1/jobs", third | {"source_path": f"/vault/{name}.md"}) for name in "ab"]
    assert [reply.status for reply in sent] == [202, 409]


@pytest.mark.parametrize(
    ("text", "fields", "rest"),
    [
        ("no front matter", {}, "no front matter"),
        ("---\nnever closed", {}, "---\nnever closed"),
        ("---\n---\nbody", {}, "body"),
        ("---\r\na: 1\r\n---\r\nbody\r\n", {"a": 1}, "body\r\n"),
        ("---\na: true # yes\nb: 'it''s' # c\nc: ~\n...\nx", {"a": True, "b": "it's", "c": None}, "x"),
        ("---\nlist:\n- a b\n- \"c, d\"\n---\n", {"list": ["a b", "c, d"]}, ""),
        ("---\nlist: [a, \"b, c\", 3]\nempty: []\n---\n", {"list": ["a", "b, c", 3], "empty": []}, ""),
        ("---\ntext: |\n  one\n  two\n---\n", {"text": "one\ntwo"}, ""),
        ("---\nmap:\n  a: 1\n---\n", {"map": "  a: 1"}, ""),
        ("---\nurl: http://a/#b\nat: 10:30\nd: 1.5\n---\n", {"url": "http://a/#b", "at": "10:30", "d": 1.5}, ""),
        ("---\ntitle: a: b\nto: [[Page]]\ntags:\n\t- x\n---\n", {"title": "a: b", "to": "[[Page]]", "tags": ["x"]}, ""),
        ('---\na: "\\u00e9"\nb: >\n  c\n  d\n---\n', {"a": "é", "b": "c d"}, ""),
        ("---\nday: 2026-03-01\nsure: yes\nhex: 0x1F\n---\n", {"day": "2026-03-01", "sure": "yes", "hex": "0x1F"}, ""),
    ],
)  # fmt: skip
def test_front_matter_as_people_write_it(text: str, fields: dict[str, Any], rest: str) -> None:
    assert split(text) == (fields, rest)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("!!python/object/apply:os.system echo", "!!python/object/apply:os.system echo"),
        ("!!int '3'", "!!int '3'"),
        ("&x [*x]", "&x [*x]"),
        ("*unknown", "*unknown"),
        ("{b: &b [1, 1], c: [*b, *b]}", "{b: &b [1, 1], c: [*b, *b]}"),
        ("9" * 5000, "9" * 5000),
        ("[" * 60_000, "[" * 60_000),
        ("[a, [b]]", "[a, [b]]"),
        ("'never closed", "'never closed"),
        ("\x07", "\x07"),
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_hostile_front_matter_stays_text(field: str, value: str) -> None:
    assert split(f"---\na: {field}\nb: 1\n---\n") == ({"a": value, "b": 1}, "")


def test_aliases_are_not_followed_from_field_to_field() -> None:
    bomb = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    fields, _ = split(f"---\na0: &a0 [lol]\n{bomb}---\n")
    assert (fields["a0"], len(fields), max(len(value) for value in fields.values())) == (["lol"], 30, 59)


@pytest.mark.parametrize("matter", ["- a\n- b", "? [a]\n: b", "a: 1\n--- b", "x" * 70_000], ids=lambda text: text[:5])
def test_front_matter_that_is_none_is_refused(matter: str) -> None:
    with pytest.raises(ValueError, match="front matter"):
        split(f"---\n{matter}\n---\n")


def test_tags_as_people_write_them() -> None:
    assert tags_of(["#a", "b", "a"]) == ["a", "b"]
    assert tags_of("a, #b c") == ["a", "b", "c"]
    assert tags_of(None) == []


def test_an_interrupt_says_how_to_go_on(kb: Kb, tag: str) -> None:
    for number in range(60):
        (kb.folder / f"{number:02}.md").write_text(f"Page {number} about something\n" * 3)
    process = kb.begin("import", ".", "--tags", tag)
    eventually(lambda: documents(kb.url, tag))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "run the same command again" in err
    assert kb("import", ".", "--tags", tag).code == 0
    assert len({document["source_path"] for document in documents(kb.url, tag)}) == len(documents(kb.url, tag)) == 60
