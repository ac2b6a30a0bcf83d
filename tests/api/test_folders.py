"""Folders that the engine keeps in step with the disk, over HTTP, with real files."""

import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from support import EngineProcess, Http, StartEngine, eventually


class Watched:
    """A folder that the shared engine watches."""

    def __init__(self, http: Http, root: Path, **options: Any) -> None:
        self.http = http
        self.root = root
        reply = http("POST", "/api/v1/folders", {"path": str(root), **options})
        assert reply.status == 201, reply.body
        self.id = reply.json["id"]
        self.settled()

    def get(self) -> Any:
        return self.http("GET", f"/api/v1/folders/{self.id}").json

    def settled(self, state: str = "watching") -> Any:
        """The folder once nothing waits."""
        return eventually(lambda: (f := self.get())["state"] == state and not f["coverage"]["waiting"] and f)

    def document(self, path: str) -> Any:
        """The document of a file; None if there is none."""
        found = self.http("GET", f"/api/v1/documents?source_path={quote(f'{self.root}/{path}')}").json["documents"]
        assert len(found) <= 1
        return found[0] if found else None

    def reason(self, path: str) -> str | None:
        return next((one["reason"] for one in self.get()["files"] if one["path"] == path), None)

    def scan(self, **body: Any) -> None:
        assert self.http("POST", f"/api/v1/folders/{self.id}/scan", body).status == 202

    def shows(self, path: str, text: str) -> Any:
        """The document of a file once it has this text."""
        eventually(lambda: self.text(path) == text)
        return self.document(path)

    def text(self, path: str) -> str | None:
        found = self.document(path)
        return found and self.http("GET", f"/api/v1/documents/{found['id']}/text").body.decode().strip()

    def is_gone(self, path: str) -> None:
        eventually(lambda: self.document(path) is None)


@pytest.fixture
def watch(http: Http, tmp_path: Path) -> Iterator[Callable[..., Watched]]:
    """Watch the folder `root` of the test, until its end."""
    root = tmp_path / "root"
    root.mkdir()
    ids: list[int] = []

    def begin(**options: Any) -> Watched:
        ids.append((folder := Watched(http, root, **options)).id)
        return folder

    yield begin
    for id_ in ids:
        http("DELETE", f"/api/v1/folders/{id_}?documents=remove")


Watch = Callable[..., Watched]


def test_files_become_documents_and_follow_every_change(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir()
    (root / "boiler.md").write_text("# Boiler\n\nThe boiler stands in the cellar.")
    (root / "sub" / "turbine.txt").write_text("Turbines are tested in spring.")
    folder = watch(tags=["watched"])
    assert folder.get()["coverage"] == {"total": 2, "indexed": 2, "waiting": 0, "ignored": 0, "failed": 0}
    boiler = folder.document("boiler.md")
    assert boiler["tags"] == ["watched"]
    assert boiler["filename"] == "boiler.md"

    (root / "boiler.md").write_text("# Boiler\n\nThe boiler was moved to the attic.")  # an edit
    edited = folder.shows("boiler.md", "# Boiler\n\nThe boiler was moved to the attic.")
    assert (edited["id"], edited["version"]) == (boiler["id"], 2)

    (root / "new.md").write_text("Saved atomically, second.")  # an atomic save
    folder.shows("new.md", "Saved atomically, second.")
    (root / ".new.md.swp").write_text("Saved atomically, third.")
    (root / ".new.md.swp").rename(root / "new.md")
    folder.shows("new.md", "Saved atomically, third.")

    (root / "boiler.md").unlink()
    folder.is_gone("boiler.md")


def test_a_rename_keeps_the_document_and_is_as_if_it_had_been_added_anew(
    watch: Watch, http: Http, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "plain.txt").write_text("A text whose title is the name of its file.")
    (root / "headed.md").write_text("# A heading\n\nwhich is the title.")
    folder = watch()
    plain, headed = folder.document("plain.txt"), folder.document("headed.md")
    http("POST", f"/api/v1/documents/{plain['id']}/tags", {"add": ["mine"]})
    (root / "deep").mkdir()
    (root / "plain.txt").rename(root / "deep" / "glacier.txt")
    (root / "headed.md").rename(root / "deep" / "other.md")

    moved = eventually(lambda: (d := folder.document("deep/glacier.txt")) and d["title"] == "glacier.txt" and d)
    assert (moved["id"], moved["version"], moved["tags"]) == (plain["id"], 1, ["mine"])
    other = eventually(lambda: folder.document("deep/other.md"))
    assert (other["id"], other["filename"], other["title"]) == (headed["id"], "other.md", "A heading")
    assert folder.document("plain.txt") is None
    assert plain["id"] in [hit["document_id"] for hit in http.search("glacier")["results"]]


def test_links_and_members_follow_a_file_that_is_moved(watch: Watch, http: Http, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "to.md").write_text("# Target\n\nThe target of a link.")
    (root / "from.md").write_text("# Source\n\nSee [[moved here]].")
    with zipfile.ZipFile(root / "box.zip", "w") as box:
        box.writestr("inner.txt", "A text in an archive.")
    folder = watch()
    target, source = folder.document("to.md")["id"], folder.document("from.md")["id"]
    member = folder.document("box.zip/inner.txt")["id"]
    assert http("GET", f"/api/v1/documents/{source}/links").json["links"][0]["document_id"] is None
    (root / "sub").mkdir()
    (root / "to.md").rename(root / "sub" / "moved here.md")
    (root / "box.zip").rename(root / "sub" / "box.zip")
    eventually(lambda: folder.document("sub/box.zip/inner.txt"))
    assert folder.document("sub/box.zip/inner.txt")["id"] == member
    eventually(lambda: folder.document("sub/moved here.md"))
    assert http("GET", f"/api/v1/documents/{source}/links").json["links"][0]["document_id"] == target


def test_files_and_folders_that_change_places_keep_their_documents(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "x.md").write_text(f"# Title {name}\n\nThe file in {name}.")
    folder = watch()
    a, b = folder.document("a/x.md")["id"], folder.document("b/x.md")["id"]
    (root / "a").rename(root / "t")
    (root / "b").rename(root / "a")
    (root / "t").rename(root / "b")
    eventually(lambda: (folder.document("a/x.md") or {}).get("id") == b)
    assert folder.document("b/x.md")["id"] == a
    (root / "a" / "x.md").write_text("# Title b\n\nEdited after the change.")
    assert folder.shows("a/x.md", "# Title b\n\nEdited after the change.")["id"] == b


def test_what_is_not_indexed_has_a_reason(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "good.md").write_text("Good.")
    (root / "binary.bin").write_bytes(bytes(range(256)) * 20)
    (root / "broken.pdf").write_bytes(b"%PDF-1.7\nthis is no PDF")
    (root / "blank.txt").write_text(" \n ")
    (root / "empty.txt").write_text("")
    folder = watch()
    assert folder.get()["coverage"] == {"total": 5, "indexed": 1, "waiting": 0, "ignored": 1, "failed": 3}
    reasons = {one["path"]: (one["state"], one["reason"]) for one in folder.get()["files"]}
    assert reasons == {
        "binary.bin": ("failed", "unsupported_format"),
        "broken.pdf": ("failed", "corrupt"),
        "blank.txt": ("failed", "no_text"),
        "empty.txt": ("ignored", "empty"),
    }


def test_a_file_that_can_no_longer_be_read_is_no_longer_found(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a.md").write_text("Some text.")
    (root / "b.md").write_text("Another text.")
    folder = watch()
    (root / "a.md").write_text(" ")
    folder.is_gone("a.md")
    assert folder.reason("a.md") == "no_text"
    (root / "a.md").write_text("Text again.")
    folder.shows("a.md", "Text again.")


def test_rules_that_change_take_effect(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "draft.md").write_text("A draft.")
    (root / "kept.md").write_text("Kept.")
    folder = watch()
    (root / ".kbignore").write_text("draft.md\n")
    folder.is_gone("draft.md")
    assert folder.reason("draft.md") == "draft.md in .kbignore"
    (root / ".kbignore").unlink()
    folder.shows("draft.md", "A draft.")


def test_many_files_that_vanish_at_once_stay_until_a_person_confirms(watch: Watch, http: Http, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(12):
        (root / f"{number}.md").write_text(f"Text number {number}.")
    folder = watch()
    for number in range(6):
        (root / f"{number}.md").unlink()
    paused = folder.settled("paused")
    assert "6 files are missing" in paused["message"]
    assert "Nothing" in paused["message"] or "nothing was removed" in paused["message"]
    assert paused["coverage"]["indexed"] == 12
    (root / "new.md").write_text("What is new is added while the folder is paused.")
    folder.shows("new.md", "What is new is added while the folder is paused.")
    assert folder.document("0.md") is not None
    folder.scan(confirm=True)
    folder.is_gone("0.md")
    assert folder.settled()["coverage"]["indexed"] == 7


def test_a_folder_that_is_away_loses_nothing(watch: Watch, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for number in range(3):
        (root / f"{number}.md").write_text(f"Text number {number} of a disk that goes away.")
    folder = watch()
    ids = [folder.document(f"{number}.md")["id"] for number in range(3)]
    root.rename(tmp_path / "away")
    assert "No such file" in folder.settled("unreachable")["message"]
    root.mkdir()  # the empty mount point of a disk
    assert "empty" in folder.settled("paused")["message"]
    assert [folder.document(f"{number}.md")["id"] for number in range(3)] == ids
    root.rmdir()
    (tmp_path / "away").rename(root)
    assert folder.settled()["message"] is None
    assert [folder.document(f"{number}.md")["id"] for number in range(3)] == ids


def test_a_document_that_was_removed_in_kb_stays_away_until_its_file_changes(
    watch: Watch, http: Http, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "a.md").write_text("Some text.")
    folder = watch()
    http("DELETE", f"/api/v1/documents/{folder.document('a.md')['id']}")
    assert eventually(lambda: folder.reason("a.md")) == "removed in kb; it comes back when the file changes"
    os.utime(root / "a.md")  # it is touched, and holds the same bytes
    folder.scan()
    folder.settled()
    assert folder.document("a.md") is None
    (root / "a.md").write_text("Some other text.")
    folder.shows("a.md", "Some other text.")


def test_what_changes_while_the_engine_is_down_is_found_at_its_start(start_engine: StartEngine, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for name in ("stays", "moves", "changes", "goes"):
        (root / f"{name}.md").write_text(f"# The {name}\n\nText that {name}.")
    engine = start_engine()
    folder = Watched(Http(engine.url), root)
    ids = {name: folder.document(f"{name}.md")["id"] for name in ("stays", "moves", "changes", "goes")}
    engine.process.kill()
    engine.process.wait()
    (root / "moves.md").rename(root / "moved.md")
    (root / "changes.md").write_text("# The changes\n\nNew text.")
    (root / "goes.md").unlink()
    (root / "comes.md").write_text("A new file.")

    folder.http = Http(start_engine().url)
    folder.shows("comes.md", "A new file.")
    folder.is_gone("goes.md")
    assert folder.document("moved.md")["id"] == ids["moves"]
    assert folder.shows("changes.md", "# The changes\n\nNew text.")["id"] == ids["changes"]
    assert folder.document("stays.md")["id"] == ids["stays"]


def test_without_events_scans_find_changes_and_the_folder_says_so(start_engine: StartEngine, tmp_path: Path) -> None:
    """The system's own limit is lowered, in a namespace of the engine's own."""
    if shutil.which("unshare") is None or os.system("unshare -Ur true") != 0:
        pytest.skip("user namespaces cannot be made here")
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("Some text.")
    engine = Limited(tmp_path / "data")
    try:
        folder = Watched(Http(engine.url), root)
        said = eventually(lambda: folder.get()["message"])
        assert "fs.inotify.max_user_watches" in said
        assert "a scan every 10 seconds" in said
        (root / "sub" / "b.md").write_text("Found by a scan.")
        folder.shows("sub/b.md", "Found by a scan.")
    finally:
        engine.stop()


class Limited(EngineProcess):
    """An engine that may watch one folder only."""

    program = ("unshare", "-Ur", "sh", "-c", 'echo 1 > /proc/sys/user/max_inotify_watches && exec "$@"', "sh")


def test_folders_that_overlap_and_places_without_documents_are_refused(
    watch: Watch, http: Http, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    (root / "inner").mkdir()
    folder = watch()

    def refusal(path: str, **options: Any) -> tuple[int, str]:
        reply = http("POST", "/api/v1/folders", {"path": path, **options})
        return reply.status, reply.json.get("error", {}).get("message", "")

    assert refusal(str(root))[0] == 201  # the same again changes nothing
    assert len([one for one in http("GET", "/api/v1/folders").json["folders"] if one["id"] == folder.id]) == 1
    assert refusal(str(root), exclude=["x"])[0] == 409
    assert refusal(str(root / "inner"))[0] == 409
    assert refusal(str(tmp_path))[0] == 409
    assert refusal("relative")[0] == 422
    assert "NUL" in refusal("/with\0in it")[1]
    assert refusal(str(tmp_path / "missing"))[0] == 422
    assert [refusal(path)[0] for path in ("/", "/proc", "/sys/kernel", "/dev")] == [422] * 4
    assert http("GET", "/api/v1/folders/999999").status == 404


def test_the_documents_of_a_folder_stay_or_go_with_it(watch: Watch, http: Http, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a.md").write_text("Some text of a folder.")
    folder = watch(tags=["first"])
    id_ = folder.document("a.md")["id"]
    assert http("DELETE", f"/api/v1/folders/{folder.id}").json["documents_removed"] == 0
    assert folder.document("a.md")["id"] == id_

    folder = watch(tags=["second"])
    assert folder.document("a.md")["id"] == id_
    assert folder.document("a.md")["tags"] == ["first", "second"]
    gone = http("DELETE", f"/api/v1/folders/{folder.id}?documents=remove").json
    assert gone == {"folder_id": folder.id, "path": str(root), "documents_removed": 1}
    assert folder.document("a.md") is None
    assert (root / "a.md").exists()


def test_a_file_that_comes_back_brings_its_document_back(watch: Watch, http: Http, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a.md").write_text("Some text that comes back.")
    (root / "b.md").write_text("Some other text.")
    folder = watch()
    id_ = folder.document("a.md")["id"]
    http("POST", f"/api/v1/documents/{id_}/tags", {"add": ["mine"]})
    (root / "a.md").rename(tmp_path / "elsewhere.md")
    folder.is_gone("a.md")
    assert id_ in [one["id"] for one in http("GET", "/api/v1/trash").json["documents"]]
    (tmp_path / "elsewhere.md").rename(root / "a.md")
    back = eventually(lambda: folder.document("a.md"))
    assert (back["id"], back["tags"]) == (id_, ["mine"])
    assert http.search("text that comes back")["results"][0]["document_id"] == id_
