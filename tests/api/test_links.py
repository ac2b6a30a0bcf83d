"""Links and backlinks: resolved when they are asked for, the way Obsidian does."""

from pathlib import Path

import pytest

from kb.store.sqlite.connection import connect
from support import Http, StartEngine, stored

Links = list[tuple[int | None, str]]


class Vault:
    """A folder of Markdown files in the engine."""

    def __init__(self, http: Http, root: str) -> None:
        self.http, self.root = http, root

    def add(self, path: str, text: str) -> int:
        name, where = path.rpartition("/")[2], [("source_path", f"{self.root}/{path}")]
        reply = self.http.add_file(name, text.encode(), where)
        assert reply.json.get("status") == "completed", reply.body
        return int(reply.json["document_id"])

    def links(self, id_: int) -> Links:
        return pairs(self.http, id_, "links")

    def backlinks(self, id_: int) -> Links:
        return pairs(self.http, id_, "backlinks")


def pairs(http: Http, id_: int, which: str) -> Links:
    reply = http("GET", f"/api/v1/documents/{id_}/links")
    assert reply.status == 200, reply.body
    return [(one["document_id"], one["target"]) for one in reply.json[which]]


@pytest.fixture
def vault(http: Http, request: pytest.FixtureRequest) -> Vault:
    return Vault(http, f"/vaults/{request.node.name}")


def test_links_lead_to_documents_and_back(vault: Vault) -> None:
    note = vault.add("Lemur.md", "# Lemur\n\nIt lives on an island.")
    home = vault.add(
        "Home.md", "# Home\n\nSee [[lemur#Life|the lemur]], ![[Lemur^b1]], [it](Lemur.md) and [[Missing]]."
    )
    expected = [(note, "lemur#Life"), (note, "Lemur^b1"), (note, "Lemur.md"), (None, "Missing")]
    assert vault.links(home) == expected
    answer = vault.http("GET", f"/api/v1/documents/{home}/links").json
    assert answer["links"][0] == {"document_id": note, "title": "Lemur", "target": "lemur#Life"}
    assert answer["links"][3] == {"document_id": None, "title": None, "target": "Missing"}
    assert answer["backlinks"] == []
    assert vault.backlinks(note) == [(home, target) for _, target in expected[:3]]
    assert vault.http("GET", "/api/v1/documents/999999999/links").status == 404


def test_a_document_that_comes_or_goes_later_is_seen(vault: Vault) -> None:
    source = vault.add("Source.md", "To [[Later]].")
    assert vault.links(source) == [(None, "Later")]
    later = vault.add("sub/Later.md", "Here I am.")
    assert vault.links(source) == [(later, "Later")]
    assert vault.backlinks(later) == [(source, "Later")]
    vault.http("DELETE", f"/api/v1/documents/{later}")
    assert vault.links(source) == [(None, "Later")]
    vault.http("POST", f"/api/v1/trash/{later}/restore")
    assert vault.links(source) == [(later, "Later")]
    vault.http("DELETE", f"/api/v1/documents/{source}")
    assert vault.backlinks(later) == []


def test_of_several_with_a_name_the_folder_then_the_nearest_then_the_shortest_path_decides(vault: Vault) -> None:
    top, deep = vault.add("Name.md", "top"), vault.add("a/b/Name.md", "deep")
    elsewhere = Vault(vault.http, f"{vault.root}-other").add("Name.md", "elsewhere")
    text = "[[Name]] [[b/Name]] [[../Name]] [x](./Name.md) [[Name.md]]"
    beside = vault.add("a/b/Beside.md", text)
    assert vault.links(beside) == [
        (deep, "Name"), (deep, "b/Name"), (None, "../Name"), (deep, "./Name.md"), (deep, "Name.md"),
    ]  # fmt: skip
    apart = vault.add("c/Apart.md", text)
    assert vault.links(apart) == [
        (top, "Name"), (deep, "b/Name"), (top, "../Name"), (None, "./Name.md"), (top, "Name.md"),
    ]  # fmt: skip
    assert vault.backlinks(elsewhere) == []
    assert {id_ for id_, _ in vault.backlinks(deep)} == {beside, apart}


def test_notes_are_found_by_title_and_all_by_their_aliases(http: Http, vault: Vault) -> None:
    named = http.add_note("About the aye-aye", title="Aye-aye of Nosy Be")
    file = vault.add("Indri.md", '---\naliases: ["Babakoto of Nosy Be", Endrina]\n---\nThe indri sings.')
    given = http.add_note("Another note of Nosy Be", metadata={"aliases": ["Sifaka of Nosy Be"]})
    text = "[[aye-aye of nosy be]] [[Babakoto of Nosy Be|x]] [[Sifaka of Nosy Be]]"
    for source in (http.add_note(f"{text} from a note"), vault.add("From.md", text)):
        assert [id_ for id_, _ in pairs(http, source, "links")] == [named, file, given]
    assert len(pairs(http, named, "backlinks")) == 2


def test_an_edited_note_has_the_links_of_its_new_text(http: Http) -> None:
    one, two = http.add_note("First of Ranomafana", title="Rano 1"), http.add_note("Second of it", title="Rano 2")
    source = http.add_note("It links to [[Rano 1]].")
    http("PATCH", f"/api/v1/notes/{source}", {"text": "It links to [[Rano 2]]."})
    assert pairs(http, source, "links") == [(two, "Rano 2")]
    assert pairs(http, one, "backlinks") == []


@pytest.mark.sqlite
def test_links_of_an_older_file_are_made_at_start(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    http = Http(engine.url)
    target, source = http.add_note("It is linked to", title="Fossa"), http.add_note("Here is a link to [[Fossa]].")
    engine.stop()
    with connect(tmp_path / "data" / "kb.db") as connection:
        connection.execute("DROP TABLE links; DROP TABLE names; DELETE FROM migrations WHERE version >= 11")
        connection.execute("DROP INDEX documents_edited; DROP INDEX jobs_document")
        connection.execute("DROP INDEX chunks_without_static_vector; ALTER TABLE chunks DROP COLUMN static_vector")
    http = Http(start_engine().url)
    assert pairs(http, source, "links") == [(target, "Fossa")]


def test_lost_links_are_made_again_by_the_doctor(start_engine: StartEngine, tmp_path: Path) -> None:
    engine = start_engine()
    http = Http(engine.url)
    target, source = http.add_note("It is linked to", title="Fossa"), http.add_note("Here is a link to [[Fossa]].")
    engine.stop()
    with stored(tmp_path / "data") as store, store.database.write() as tx:
        tx.run("DELETE FROM links")
        tx.run("DELETE FROM names WHERE kind = 'title'")
    http = Http(start_engine().url)
    assert not http("GET", "/api/v1/doctor").json["healthy"]
    assert http("POST", "/api/v1/doctor").json["healthy"]
    assert pairs(http, source, "links") == [(target, "Fossa")]
