"""What a path may replace: an edit in kb stays, kinds stay, history stays; tags and metadata are added."""

from typing import Any

import pytest

from support import Http, Reply

AGAIN = {"tags": ["new"]}


def put(http: Http, text: str, path: str, **given: Any) -> Reply:
    return http("POST", "/api/v1/jobs?wait=60", {"text": text, "source_path": path, **given})


def texts(http: Http, note: int) -> list[str]:
    """Of every version, the newest first."""
    return [version["text"] for version in http("GET", f"/api/v1/notes/{note}/versions").json["versions"]]


def document(http: Http, id_: int) -> Any:
    return http("GET", f"/api/v1/documents/{id_}").json


@pytest.fixture
def edited(http: Http, path: str) -> int:
    """A note that its path brought and that was edited in kb since."""
    note = http.add_note("brought by the path", source_path=path, tags=["own"])
    http("PATCH", f"/api/v1/notes/{note}", {"text": "edited in kb"})
    return note


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    return f"/identity/{request.node.name}.md"


def test_new_text_at_the_path_does_not_replace_an_edit(http: Http, edited: int, path: str) -> None:
    refused = put(http, "newer at the path", path)
    error = refused.json["error"]
    assert (refused.status, error["code"]) == (409, "conflict")
    assert error["details"] == {"document_id": edited, "current_version": 2}
    assert "--force" in error["message"]
    assert texts(http, edited) == ["edited in kb", "brought by the path"]


def test_with_force_it_does_and_history_stays(http: Http, edited: int, path: str) -> None:
    done = put(http, "newer at the path", path, force=True).json
    assert (done["document_id"], done["outcome"]) == (edited, "updated")
    assert texts(http, edited) == ["newer at the path", "edited in kb", "brought by the path"]
    assert put(http, "newest at the path", path).json["outcome"] == "updated"  # what was forced is the path's again


def test_an_unchanged_text_at_the_path_leaves_the_edit_alone(http: Http, edited: int, path: str) -> None:
    kept = put(http, "brought by the path", path).json
    assert (kept["status"], kept["outcome"], kept["document_id"]) == ("completed", "kept", edited)
    assert texts(http, edited) == ["edited in kb", "brought by the path"]
    assert http.search("edited in kb", source_path=path)["results"][0]["document_id"] == edited
    assert put(http, "newer at the path", path).status == 409  # the answer before has not made the edit the path's
    assert put(http, "brought by the path", path, force=True).json["outcome"] == "updated"
    assert texts(http, edited)[0] == "brought by the path"


def test_the_same_text_at_the_path_ends_the_difference(http: Http, edited: int, path: str) -> None:
    assert put(http, "edited in kb", path).json["outcome"] == "unchanged"
    assert put(http, "newer at the path", path).json["outcome"] == "updated"


@pytest.mark.parametrize("back", ["patch", "restore"])
def test_an_edit_that_was_taken_back_is_none(http: Http, edited: int, path: str, back: str) -> None:
    if back == "patch":
        http("PATCH", f"/api/v1/notes/{edited}", {"text": "brought by the path"})
    else:
        http("POST", f"/api/v1/notes/{edited}/restore", {"version": 1})
    assert put(http, "newer at the path", path).json["outcome"] == "updated"


def test_a_restored_version_is_an_edit(http: Http, path: str) -> None:
    note = http.add_note("first at the path", source_path=path)
    put(http, "second at the path", path)
    http("POST", f"/api/v1/notes/{note}/restore", {"version": 1})
    assert put(http, "second at the path", path).json["outcome"] == "kept"
    assert put(http, "third at the path", path).status == 409
    assert len(texts(http, note)) == 3


@pytest.mark.parametrize("fields", [[], [("force", "true")]])
def test_a_note_never_becomes_a_file(http: Http, path: str, fields: list[tuple[str, str]]) -> None:
    note = http.add_note("a note with a history", source_path=path)
    http("PATCH", f"/api/v1/notes/{note}", {"text": "a note with a longer history"})
    refused = http.add_file("note.md", b"# A file", [("source_path", path), *fields])
    assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
    assert f"kb rm {note}" in refused.json["error"]["message"]
    assert document(http, note)["doc_type"] == "note"
    assert len(texts(http, note)) == 2


def test_a_file_never_becomes_a_note(http: Http, path: str) -> None:
    file = http.add_file("page.md", b"# A page", [("source_path", path)]).json["document_id"]
    refused = put(http, "# A page", path, force=True)
    assert (refused.status, refused.json["error"]["code"]) == (409, "conflict")
    assert document(http, file)["doc_type"] == "markdown"


@pytest.mark.parametrize("text", ["the same text", "another text"])
@pytest.mark.parametrize("kind", ["note", "file"])
def test_tags_are_added_or_replaced_by_the_same_rule(http: Http, path: str, text: str, kind: str) -> None:
    def send(content: str, **given: Any) -> Any:
        if kind == "note":
            return put(http, content, path, **given).json
        tags = [("tags", tag) for tag in given.get("tags", [])]
        replace = [("replace_tags", "true")] if given.get("replace_tags") else []
        return http.add_file("f.txt", content.encode(), [("source_path", path), *tags, *replace]).json

    id_ = send("the same text", tags=["first"])["document_id"]
    http("POST", f"/api/v1/documents/{id_}/tags", {"add": ["by hand"]})
    send(text)
    assert document(http, id_)["tags"] == ["first", "by hand"]
    assert send(text, tags=["second"])["outcome"] == "updated"
    assert document(http, id_)["tags"] == ["first", "by hand", "second"]
    assert send(text, tags=["only"], replace_tags=True)["document_id"] == id_
    assert document(http, id_)["tags"] == ["only"]
    assert send(text, tags=["only"])["outcome"] == "unchanged"


def test_replacing_tags_needs_some(http: Http) -> None:
    refused = http("POST", "/api/v1/jobs", {"text": "a note", "replace_tags": True})
    assert (refused.status, refused.json["error"]["code"]) == (422, "invalid_request")


@pytest.mark.parametrize("text", ["the same text", "another text"])
def test_metadata_that_is_given_replaces_its_keys_and_others_stay(http: Http, path: str, text: str) -> None:
    note = http.add_note("the same text", source_path=path, metadata={"by": "Anna", "year": 2020})
    put(http, text, path, metadata={"year": 2026, "place": "attic"})
    assert document(http, note)["metadata"] == {"by": "Anna", "year": 2026, "place": "attic"}


def test_a_given_title_survives_new_content(http: Http, path: str) -> None:
    note = http.add_note("# First heading", source_path=path, title="Given")
    put(http, "# Second heading", path)
    assert document(http, note)["title"] == "Given"
    put(http, "# Second heading", path, title="Given anew")
    assert document(http, note)["title"] == "Given anew"
    assert http.search("given anew", mode="fts", source_path=path)["results"][0]["document_id"] == note


def test_what_a_file_says_of_itself_follows_the_file(http: Http, path: str) -> None:
    page = "<html><head><meta name=author content='{}'></head><body><p>Text about {}</p></body></html>"
    at = [("source_path", path)]
    id_ = http.add_file("p.html", page.format("Ann", "owls").encode(), [*at, ("metadata", '{"by": "me"}')]).json[
        "document_id"
    ]
    http.add_file("p.html", page.format("Bob", "newts").encode(), at)
    assert document(http, id_)["metadata"] == {"author": "Bob", "by": "me"}
