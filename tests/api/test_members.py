"""Archives, mails and mailboxes: what is in them is found, cited, listed and removed."""

import gzip
import signal
import zipfile
from io import BytesIO
from typing import Any

from PIL import Image, ImageDraw, ImageFont

from made import archive, docx, encoded, mail, mailbox, paragraph, pdf, tar
from support import Http, StartEngine, eventually


def add(http: Http, name: str, data: bytes, **fields: str) -> dict[str, Any]:
    """Add a file; the answer when its job has ended."""
    reply = http.add_file(name, data, list(fields.items()))
    assert reply.status == 202, reply.body
    answer: dict[str, Any] = reply.json
    assert answer["status"] == "completed", http("GET", f"/api/v1/jobs/{answer['job_id']}").json
    return answer


def document(http: Http, id_: int) -> dict[str, Any]:
    found: dict[str, Any] = http("GET", f"/api/v1/documents/{id_}").json
    return found


def children(http: Http, id_: int) -> dict[str, dict[str, Any]]:
    listed = http("GET", f"/api/v1/documents?parent={id_}&limit=1000").json["documents"]
    return {one["member"]: one for one in listed}


def ledger(http: Http, id_: int) -> dict[str, tuple[str, str | None]]:
    return {entry["part"]: (entry["state"], entry["reason"]) for entry in document(http, id_)["ledger"]}


def search(http: Http, query: str, **given: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = http("POST", "/api/v1/search", {"query": query, "mode": "fts", **given}).json[
        "results"
    ]
    return results


def test_members_of_an_archive_are_documents_that_name_it(http: Http) -> None:
    data = archive(
        {
            "letters/one.txt": "Quillfeather wrote from Lisbon.",
            "letters/two.docx": docx(paragraph("Quillfeather wrote from Porto.")),
            "report.pdf": pdf(["First page", "Quillfeather on the second page"]),
            "empty.txt": "",
            "program.bin": b"\x00\x01\x02\x03" * 9,
            "__MACOSX/._one.txt": "junk",
            "../outside.txt": "Quillfeather outside",
        }
    )
    id_ = add(http, "letters.zip", data, tags="quill")["document_id"]
    parent = document(http, id_)
    assert (parent["doc_type"], parent["media_type"], "parent" in parent) == ("archive", "application/zip", False)
    assert "letters/one.txt" in http("GET", f"/api/v1/documents/{id_}/text").body.decode()
    held = children(http, id_)
    assert set(held) == {"letters/one.txt", "letters/two.docx", "report.pdf"}
    assert {one["parent"] for one in held.values()} == {id_}
    assert held["letters/two.docx"]["filename"] == "two.docx"
    assert all(one["tags"] == ["quill"] for one in held.values())
    states = ledger(http, id_)
    assert states["member letters/one.txt"] == ("ok", None)
    assert states["member empty.txt"] == ("empty", "zero bytes")
    assert states["member program.bin"] == ("failed", "cannot be read: it is not text")
    assert states["member ../outside.txt"][0] == "failed"
    assert "leads out" in (states["member ../outside.txt"][1] or "")
    assert states["member __MACOSX/._one.txt"][0] == "empty"
    (hit,) = search(http, "Quillfeather second page", tags=["quill"], top=1)
    assert (hit["anchor"]["member"], hit["anchor"]["page"], hit["parent"]) == ("report.pdf", 2, id_)
    original = http("GET", f"/api/v1/documents/{held['letters/one.txt']['id']}/original").body
    assert original == b"Quillfeather wrote from Lisbon."


def test_a_broken_member_does_not_fail_the_rest(http: Http) -> None:
    data = bytearray(archive({"good.txt": "Brambleton is fine.", "bad.txt": "Brambleton " * 50}))
    with zipfile.ZipFile(BytesIO(data)) as made:
        info = made.getinfo("bad.txt")
    at = info.header_offset + 30 + len("bad.txt") + 5
    data[at] ^= 0xFF
    id_ = add(http, "half.zip", bytes(data))["document_id"]
    assert set(children(http, id_)) == {"good.txt"}
    assert ledger(http, id_)["member bad.txt"][0] == "failed"


def test_a_child_is_no_duplicate_of_a_file_that_is_added_itself_and_goes_with_its_archive(http: Http) -> None:
    text = b"Wexmoor is in the archive and beside it."
    id_ = add(http, "pair.zip", archive({"wex.txt": text}))["document_id"]
    own = add(http, "wex.txt", text)
    assert "duplicate_of" not in own
    (child,) = children(http, id_).values()
    removed = http("DELETE", f"/api/v1/documents/{id_}?purge=true").json
    assert removed["chunks_removed"] >= 2
    assert http("GET", f"/api/v1/documents/{child['id']}").status == 404
    assert [hit["document_id"] for hit in search(http, "Wexmoor")] == [own["document_id"]]
    assert http("GET", f"/api/v1/documents/{own['document_id']}/original").body == text


def test_members_go_into_the_trash_with_their_archive_and_come_back_with_it(http: Http) -> None:
    id_ = add(http, "binned.zip", archive({"a.txt": "Larkhill a", "b.txt": "Larkhill b"}))["document_id"]
    first, second = children(http, id_).values()
    http("DELETE", f"/api/v1/documents/{first['id']}")
    assert set(children(http, id_)) == {second["member"]}
    http("DELETE", f"/api/v1/documents/{id_}")
    assert http("GET", f"/api/v1/documents/{second['id']}").status == 404
    refused = http("POST", f"/api/v1/trash/{second['id']}/restore", {})
    assert (refused.status, refused.json["error"]["details"]["document_id"]) == (409, id_)
    assert http("POST", f"/api/v1/trash/{id_}/restore", {}).status == 200
    assert set(children(http, id_)) == {second["member"]}, "the other one was deleted before"
    assert http("POST", f"/api/v1/trash/{first['id']}/restore", {}).status == 200
    assert len(children(http, id_)) == 2
    assert len(search(http, "Larkhill")) >= 2


def test_members_leave_the_path_that_their_archive_leaves(http: Http) -> None:
    data = archive({"a.txt": "Wheelwright of old", "inner.zip": archive({"b.txt": "Wheelwright within"})})
    first = add(http, "wheels.zip", data, source_path="/wheels.zip")["document_id"]
    assert http("DELETE", f"/api/v1/documents/{first}").status == 200
    second = add(http, "wheels.zip", archive({"a.txt": "Wheelwright of now"}), source_path="/wheels.zip")["document_id"]
    assert http("POST", f"/api/v1/trash/{first}/restore").status == 409
    assert http("POST", f"/api/v1/trash/{first}/restore?without_path=true").status == 200
    held = children(http, first)
    within = children(http, held["inner.zip"]["id"])
    assert [one["source_path"] for one in (*held.values(), *within.values())] == [None] * 3
    below = http("GET", "/api/v1/documents?source_path=/wheels.zip/").json["documents"]
    assert [(one["parent"], one["source_path"]) for one in below] == [(second, "/wheels.zip/a.txt")]


def test_a_newer_archive_at_the_same_path_changes_adds_and_removes_members(http: Http) -> None:
    path = "/home/ann/papers.zip"
    first = archive({"same.txt": "Thornwick stays", "old.txt": "Thornwick old", "new.txt": "Thornwick before"})
    id_ = add(http, "papers.zip", first, source_path=path)["document_id"]
    before = children(http, id_)
    assert before["same.txt"]["source_path"] == f"{path}/same.txt"
    second = archive({"same.txt": "Thornwick stays", "new.txt": "Thornwick after", "more.txt": "Thornwick more"})
    again = add(http, "papers.zip", second, source_path=path)
    assert (again["document_id"], again["outcome"]) == (id_, "updated")
    after = children(http, id_)
    assert set(after) == {"same.txt", "new.txt", "more.txt"}
    assert after["same.txt"] == before["same.txt"]
    assert (after["new.txt"]["id"], after["new.txt"]["version"]) == (before["new.txt"]["id"], 2)
    assert not [hit for hit in search(http, "Thornwick old") if hit["anchor"].get("member") == "old.txt"]


def test_the_same_archive_again_changes_nothing_but_gives_its_tags_to_all(http: Http) -> None:
    data = archive({"a.txt": "Ravelstone a", "b.txt": "Ravelstone b"})
    id_ = add(http, "twice.zip", data)["document_id"]
    before = children(http, id_)
    assert add(http, "twice.zip", data)["outcome"] == "unchanged"
    assert children(http, id_) == before
    assert add(http, "twice.zip", data, tags="ravel")["outcome"] == "updated"
    assert {tuple(one["tags"]) for one in children(http, id_).values()} == {("ravel",)}


def test_a_path_of_its_own_is_not_shadowed_by_a_member(http: Http) -> None:
    path = "/home/ann/box.zip"
    add(http, "box.zip", archive({"x.txt": "Kestrelmoor in the box"}), source_path=path)
    own = add(http, "x.txt", b"Kestrelmoor itself", source_path=f"{path}/x.txt")
    assert own["outcome"] == "added"
    again = add(http, "x.txt", b"Kestrelmoor itself, changed", source_path=f"{path}/x.txt")
    assert (again["document_id"], again["outcome"]) == (own["document_id"], "updated")


def test_every_kind_of_tar_is_read_and_a_compressed_file_is_its_only_member(http: Http) -> None:
    for mode, suffix in (("w", "tar"), ("w:gz", "tgz"), ("w:bz2", "tar.bz2"), ("w:xz", "tar.xz")):
        id_ = add(http, f"a.{suffix}", tar({"dir/a.txt": f"Oxbridge {mode}".encode()}, mode))["document_id"]  # type: ignore[arg-type]
        assert set(children(http, id_)) == {"dir/a.txt"}
    id_ = add(http, "notes.txt.gz", gzip.compress(b"Oxbridge alone"))["document_id"]
    assert set(children(http, id_)) == {"notes.txt"}


def test_a_mail_is_found_by_its_text_and_its_attachments_cite_it(http: Http) -> None:
    inner = mail("Fenwick forwards this", subject="Inner")
    data = mail(
        "Fenwick sends the plan.", {"plan.pdf": pdf(["Fenwick plan page"]), "was.eml": inner}, subject="The plan"
    )
    id_ = add(http, "plan.eml", data)["document_id"]
    found = document(http, id_)
    assert (found["doc_type"], found["title"]) == ("mail", "The plan")
    assert found["metadata"] == {
        "subject": "The plan",
        "from": "Anna Smith <anna@example.org>",
        "to": "bob@example.org",
        "date": "2026-11-18T10:30:00+00:00",
    }
    label = "2026-11-18 10:30, Anna Smith <anna@example.org>, The plan"
    (hit,) = search(http, "Fenwick plan page", top=1)
    assert (hit["anchor"]["member"], hit["anchor"]["message"], hit["anchor"]["page"]) == ("plan.pdf", label, 1)
    assert children(http, id_)["was.eml"]["doc_type"] == "mail"
    (own,) = search(http, "Fenwick sends", top=1)
    assert own["anchor"]["message"] == label


def test_a_mailbox_cites_the_message(http: Http) -> None:
    box = mailbox(
        mail("Ellersby one\n\nFrom here on it is about tea.\n", subject="One"),
        mail("Ellersby two", {"two.txt": b"Ellersby attached"}, subject="Two"),
    )
    id_ = add(http, "all.mbox", box)["document_id"]
    assert document(http, id_)["doc_type"] == "mailbox"
    states = ledger(http, id_)
    assert (states["message 1"][0], states["message 2"][0]) == ("ok", "ok")
    assert states["attachment message 2/two.txt"] == ("ok", None)
    (hit,) = search(http, "Ellersby two", top=1)
    assert hit["anchor"]["message"].endswith("Two")
    (attached,) = search(http, "Ellersby attached", top=1)
    assert (attached["parent"], attached["anchor"]["member"]) == (id_, "message 2/two.txt")
    assert attached["anchor"]["message"].endswith("Two")


def test_archives_inside_of_archives_are_read_down_to_a_limit(http: Http) -> None:
    data = archive({"deepest.txt": "Yarrowgate at the bottom"})
    for depth in range(4):
        data = archive({f"level{depth}.zip": data, f"beside{depth}.txt": f"Yarrowgate beside {depth}"})
    id_ = add(http, "deep.zip", data)["document_id"]
    for depth in (3, 2, 1):
        held = children(http, id_)
        assert set(held) == {f"level{depth}.zip", f"beside{depth}.txt"}
        id_ = held[f"level{depth}.zip"]["id"]
    assert set(children(http, id_)) == {"beside0.txt"}
    assert "nested too deeply" in (ledger(http, id_)["member level0.zip"][1] or "")


def test_a_bomb_in_a_bomb_is_refused_and_the_rest_is_read(http: Http) -> None:
    bomb = archive({"zeros.txt": b"0" * 30 * 2**20})
    data = archive(
        {"bomb.zip": archive({"bomb.zip": bomb, "note.txt": "Hollowmere inside"}), "a.txt": "Hollowmere outside"}
    )
    id_ = add(http, "outer.zip", data)["document_id"]
    held = children(http, id_)
    assert set(held) == {"bomb.zip", "a.txt"}
    assert set(children(http, held["bomb.zip"]["id"])) == {"note.txt"}
    assert "would unpack" in (ledger(http, held["bomb.zip"]["id"])["member bomb.zip"][1] or "")


def test_reading_a_container_again_keeps_its_members(http: Http) -> None:
    id_ = add(http, "again.zip", archive({"a.txt": "Millbrook a"}))["document_id"]
    (before,) = children(http, id_).values()
    reply = http("POST", f"/api/v1/documents/{id_}/reread?wait=60", {})
    assert reply.json["status"] == "completed", reply.body
    (after,) = children(http, id_).values()
    assert (after["id"], after["member"]) == (before["id"], "a.txt")
    reply = http("POST", f"/api/v1/documents/{after['id']}/reread?wait=60", {})
    assert reply.json["status"] == "completed", reply.body
    (hit,) = search(http, "Millbrook a", top=1)
    assert (hit["parent"], hit["anchor"]["member"]) == (id_, "a.txt")


def test_reading_again_with_less_at_hand_loses_nothing(start_engine: StartEngine) -> None:
    def lettered(word: str) -> bytes:
        picture = Image.new("RGB", (900, 200), "white")
        ImageDraw.Draw(picture).text((40, 60), word, "black", ImageFont.load_default(70))
        return encoded(picture, "PNG")

    engine = start_engine()
    http = Http(engine.url)
    id_ = add(http, "scans.zip", archive({"a.txt": "Millbrook a", "scan.png": lettered("Dunmarrow lane")}))[
        "document_id"
    ]
    alone = add(http, "alone.png", lettered("Hollowmere road"))["document_id"]
    before = {path: child["id"] for path, child in children(http, id_).items()}
    assert set(before) == {"a.txt", "scan.png"}
    engine.stop()
    http = Http(start_engine(KB_OCR="off").url)
    http("POST", f"/api/v1/documents/{id_}/reread?wait=60", {})
    assert {path: child["id"] for path, child in children(http, id_).items()} == before
    assert "Dunmarrow" in http("GET", f"/api/v1/documents/{before['scan.png']}/text").body.decode()
    failed = http("POST", f"/api/v1/documents/{alone}/reread?wait=60", {}).json
    assert http.job(failed["job_id"])["error"]["code"] == "ocr_failed"
    assert "Hollowmere" in http("GET", f"/api/v1/documents/{alone}/text").body.decode()


def test_an_archive_without_anything_readable_is_still_there_and_says_why(http: Http) -> None:
    id_ = add(http, "none.zip", archive({"a.bin": b"\x00\x01\x02" * 30}))["document_id"]
    assert ledger(http, id_) == {
        "list of members": ("ok", None),
        "member a.bin": ("failed", "cannot be read: it is not text"),
    }


def test_a_kill_in_the_middle_of_an_archive_leaves_everything_once(start_engine: StartEngine) -> None:
    engine = start_engine()
    members: dict[str, str | bytes] = {f"{number}.txt": f"Dunmarrow number {number}" for number in range(60)}
    job = Http(engine.url).add_file("many.zip", archive(members), wait=0).json["job_id"]
    eventually(lambda: Http(engine.url).job(job)["completed_steps"] > 5)
    engine.stop(signal.SIGKILL)
    http = Http(start_engine().url)
    ended = http.ended(job)
    assert (ended["status"], ended["attempts"]) == ("completed", 2)
    held = http("GET", f"/api/v1/documents?parent={ended['document_id']}&limit=1000").json
    assert (held["total"], {one["member"] for one in held["documents"]}) == (60, set(members))
    assert http("GET", "/api/v1/documents").json["total"] == 61
    states = [entry["state"] for entry in document(http, ended["document_id"])["ledger"]]
    assert states == ["ok"] * 61


def test_a_job_that_was_cancelled_is_completed_by_adding_the_file_again(http: Http) -> None:
    members: dict[str, str | bytes] = {f"{number}.txt": f"Osterley number {number}" for number in range(100)}
    job = http.add_file("cut short.zip", archive(members), wait=0).json["job_id"]
    eventually(lambda: http.job(job)["completed_steps"] > 5)
    http("POST", f"/api/v1/jobs/{job}/cancel")
    assert http.ended(job)["status"] == "cancelled"
    again = add(http, "cut short.zip", archive(members))
    assert len(children(http, again["document_id"])) == 100
    assert not [entry for entry in ledger(http, again["document_id"]).values() if entry[0] != "ok"]
