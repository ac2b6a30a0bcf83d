"""`kb import` of what other programs exported. The samples are made by hand, after the documented formats."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kb.cli.importing import chatgpt, claude
from kb.cli.importing.conversation import Conversation
from kb.cli.importing.exports import read
from kb.cli.importing.mem0 import Memory
from kb.core.errors import InvalidRequest

from .conftest import Kb


def node(name: str, parent: str | None, role: str, text: Any, at: float, *children: str, **more: Any) -> dict[str, Any]:
    content = {"content_type": "text", "parts": [text]} if isinstance(text, str) else text
    message = {"id": name, "author": {"role": role}, "create_time": at, "content": content, "metadata": more}
    return {"id": name, "parent": parent, "children": list(children), "message": message}


def chatgpt_export(tag: str = "x") -> list[dict[str, Any]]:
    """A question whose first answer was generated again, and a picture with a question."""
    picture = {"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}, "And this one?"]}
    mapping = {
        "root": {"id": "root", "parent": None, "children": ["s"], "message": None},
        "s": node("s", "root", "system", "You are helpful", 1700000000.0, "q"),
        "q": node("q", "s", "user", f"Which bird is a {tag} wigeon?", 1700000001.5, "old", "new"),
        "old": node("old", "q", "assistant", "No idea.", 1700000002.0),
        "new": node("new", "q", "assistant", "# Wigeon\n\nIt is a dabbling duck.", 1700000003.0, "p"),
        "h": node("h", "new", "user", "hidden", 1700000003.5, is_visually_hidden_from_conversation=True),
        "p": node("p", "new", "user", picture, 1700000004.0),
    }
    about = {"title": f"Birds {tag}", "create_time": 1700000000.25, "conversation_id": f"conv-{tag}"}
    return [about | {"mapping": mapping, "current_node": "p", "default_model_slug": "gpt-4o"}]


def claude_export(tag: str = "x") -> list[dict[str, Any]]:
    thought = {"type": "thinking", "thinking": "secret thought"}
    asked: dict[str, Any] = {
        "uuid": "m1",
        "sender": "human",
        "text": "Summarise it",
        "created_at": "2024-05-01T10:00:00.000000Z",
    }
    asked |= {"attachments": [{"file_name": "lease.txt", "extracted_content": f"The {tag} lease ends in May."}]}
    answer: dict[str, Any] = {"uuid": "m2", "sender": "assistant", "text": "", "created_at": "2024-05-01T10:00:09Z"}
    answer |= {"content": [thought, {"type": "text", "text": "It ends in May."}, {"type": "tool_use", "name": "x"}]}
    about = {"uuid": f"claude-{tag}", "name": f"Lease {tag}", "created_at": "2024-05-01T09:59:00Z"}
    return [about | {"chat_messages": [asked, answer]}]


def session_lines(tag: str = "x") -> str:
    usual = {"sessionId": f"session-{tag}", "cwd": "/srv/app", "gitBranch": "main", "timestamp": "2025-06-01T08:00:00Z"}
    records = [
        {"type": "summary", "summary": f"Mending the {tag} parser"},
        usual | {"type": "user", "isMeta": True, "message": {"role": "user", "content": "caveat"}},
        usual | {"type": "user", "message": {"role": "user", "content": f"Why does the {tag} parser loop?"}},
        usual | {"type": "assistant", "message": {"content": [{"type": "text", "text": "I look at it."}]}},
        usual | {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Bash", "input": {}}]}},
        usual | {"type": "user", "message": {"content": [{"type": "tool_result", "content": "raw output"}]}},
        usual | {"type": "assistant", "message": {"content": [{"type": "text", "text": "It never advances."}]}},
    ]
    return "\n".join(json.dumps(record) for record in records) + '\n{"type": "user", "mess'


def test_chatgpts_shown_branch_is_read_and_the_other_counted() -> None:
    found = chatgpt.conversation(chatgpt_export()[0])
    assert [(message.speaker, message.text) for message in found.messages] == [
        ("user", "Which bird is a x wigeon?"),
        ("assistant", "# Wigeon\n\nIt is a dabbling duck."),
        ("user", "[image asset pointer]\n\nAnd this one?"),
    ]
    assert found.created_at == "2023-11-14T22:13:20.250Z"
    assert found.metadata["messages_in_other_branches"] == 1


def test_claudes_attachments_are_read_and_its_thoughts_are_not() -> None:
    found = claude.conversation(claude_export()[0])
    assert [message.text for message in found.messages] == [
        "Summarise it\n\nlease.txt:\n\nThe x lease ends in May.",
        "It ends in May.",
    ]


def test_a_session_holds_what_was_said() -> None:
    found = claude.session(session_lines().splitlines(), "name")
    assert found is not None
    assert [(message.speaker, message.text) for message in found.messages] == [
        ("user", "Why does the x parser loop?"),
        ("assistant", "I look at it.\n\nIt never advances."),
    ]
    assert (found.title, found.metadata["folder"]) == ("Mending the x parser", "/srv/app")


def test_conversations_are_documents_with_an_anchor_for_each_message(kb: Kb, tag: str) -> None:
    with zipfile.ZipFile(kb.folder / "chatgpt.zip", "w") as archive:
        archive.writestr("conversations.json", json.dumps(chatgpt_export(tag)))
    [added] = kb("import", "chatgpt.zip", "--tags", tag, "--json").json
    document = kb("get", str(added["document_id"]), "--json").json
    assert (document["doc_type"], document["title"]) == ("conversation", f"Birds {tag}")
    assert document["created_at"] == "2023-11-14T22:13:20.250Z"
    assert document["metadata"]["model"] == "gpt-4o"
    hit = kb("search", "dabbling duck", "-t", tag, "--json").json["results"][0]
    assert hit["anchor"]["message"] == "2, assistant, 2023-11-14 22:13"
    [again] = kb("import", "chatgpt.zip", "--tags", tag, "--json").json
    assert (again["outcome"], again["document_id"]) == ("unchanged", added["document_id"])


def test_a_conversation_that_went_on_updates_its_document(kb: Kb, tag: str) -> None:
    export = claude_export(tag)
    (kb.folder / "conversations.json").write_text(json.dumps(export))
    [first] = kb("import", "conversations.json", "-t", tag, "-j").json
    export[0]["chat_messages"].append({"sender": "human", "text": "Thank you", "created_at": "2024-05-02T10:00:00Z"})
    (kb.folder / "conversations.json").write_text(json.dumps(export))
    [second] = kb("import", "conversations.json", "-t", tag, "-j").json
    assert (second["outcome"], second["document_id"]) == ("updated", first["document_id"])


def test_a_folder_of_sessions_and_notes_is_taken_in(kb: Kb, tag: str) -> None:
    folder = kb.folder / tag
    folder.mkdir()
    (folder / "session.jsonl").write_text(session_lines(tag))
    (folder / "note.md").write_text(
        f"---\ntitle: Coffee {tag}\ntype: note\npermalink: c\ncreated: 2023-02-01\n---\n\n- [method] Pour over #brew\n"
    )
    outcomes = {one["source_path"].rpartition("/")[2]: one for one in kb("import", tag, "-t", tag, "-j").json}
    assert {one["outcome"] for one in outcomes.values()} == {"added"}
    note = kb("get", str(outcomes["note.md"]["document_id"]), "-j").json
    assert (note["title"], note["created_at"]) == (f"Coffee {tag}", "2023-02-01T00:00:00.000Z")
    session = kb("get", str(outcomes[f"session-{tag}"]["document_id"]), "-j").json
    assert session["created_at"] == "2025-06-01T08:00:00.000Z"


def test_memories_of_mem0_are_notes(kb: Kb, tag: str) -> None:
    memory: dict[str, Any] = {"id": tag, "memory": f"{tag} prefers tea", "user_id": "dev", "categories": ["food"]}
    memory |= {"metadata": {"type": "preference"}, "created_at": "2024-07-20T01:30:36.275141-07:00"}
    (kb.folder / "mem0.json").write_text(json.dumps({"count": 1, "results": [memory]}))
    [added] = kb("import", "mem0.json", "-t", tag, "-j").json
    note = kb("get", str(added["document_id"]), "-j").json
    assert (note["text"], note["tags"]) == (f"{tag} prefers tea", ["food", tag])
    assert note["metadata"] == {"source": "mem0", "user_id": "dev", "type": "preference"}
    assert note["created_at"] == "2024-07-20T08:30:36.275Z"
    assert kb("import", "mem0.json", "-t", tag, "-j").json[0]["outcome"] == "unchanged"


@pytest.mark.parametrize("content", ["[]", "{}", '{"a": 1}', "[1, 2]", "not JSON", "[" * 100_000])
def test_what_is_no_export_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "strange.json"
    path.write_text(content)
    with pytest.raises(InvalidRequest, match=r"strange\.json"):
        read(str(path))


def test_a_tree_that_bites_its_tail_ends() -> None:
    export = chatgpt_export()[0]
    export["mapping"]["root"]["parent"] = "p"
    assert len(chatgpt.conversation(export).messages) == 3


def test_conversations_without_an_id_stay_apart(tmp_path: Path) -> None:
    exports = [chatgpt_export("one")[0], chatgpt_export("two")[0], claude_export()[0]]
    for export in exports:
        export.pop("conversation_id", export.pop("uuid", None))
    chats = [chatgpt.conversation(one).source_path for one in exports[:2]]
    assert len(set(chats)) == 2
    exports[0]["mapping"]["p"]["message"] = None  # the same conversation, before its last question
    (tmp_path / "one.json").write_text(json.dumps(exports[0]))  # of one conversation, as some tools export it
    (item,) = read(str(tmp_path / "one.json"))
    assert isinstance(item, Conversation)
    assert item.source_path == chats[0]
    assert claude.conversation(exports[2]).source_path != "claude/"


def test_a_session_is_known_by_its_file_and_named_by_its_title(tmp_path: Path) -> None:
    path = tmp_path / "0f9f5d65-7bd2-4d5b-8f3c-6a1f0c4e2b11.jsonl"
    lines = session_lines() + '"é'
    path.write_bytes(b'{"type": "ai-title", "sessionId": "other", "aiTitle": "Better"}\n' + lines.encode()[:-1])
    [found] = read(str(path))
    assert isinstance(found, Conversation)
    assert found.source_path == f"claude-code/{path.stem}"
    (tmp_path / "empty.jsonl").write_text('{"type": "user", "sessionId": "x", "isSidechain": true}\n')
    assert [item.messages for item in read(str(tmp_path / "empty.jsonl")) if isinstance(item, Conversation)] == [[]]
    (tmp_path / "table.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(InvalidRequest, match="no session of Claude Code"):
        read(str(tmp_path / "table.jsonl"))


def test_a_file_that_is_no_session_does_not_stop_the_others(kb: Kb, tag: str) -> None:
    folder = kb.folder / tag
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"a": 1}\n')
    (folder / "b.jsonl").write_text(session_lines(tag))
    done = kb("import", tag, "-t", tag, "-j")
    assert done.code == 2
    assert [one.get("outcome") for one in done.json] == [None, "added"]


def test_one_odd_conversation_does_not_fail_the_others(kb: Kb, tag: str, tmp_path: Path) -> None:
    export = chatgpt_export(tag)
    odd = chatgpt_export("odd")[0]
    odd["mapping"]["q"]["message"] |= {"author": "somebody", "content": "words"}
    (tmp_path / "conversations.json").write_text(json.dumps([odd, {"mapping": None, "title": "Empty"}, *export]))
    done = kb("import", str(tmp_path / "conversations.json"))
    assert done.code == 2
    assert "item 1 (Birds odd)" in done.err
    assert "item 2 (Empty)" in done.err
    assert f"Birds {tag}" in done.out


def test_what_is_said_to_a_tool_is_left_out() -> None:
    export = chatgpt_export()[0]
    export["mapping"]["new"]["message"]["recipient"] = "python"
    assert [message.speaker for message in chatgpt.conversation(export).messages] == ["user", "user"]


def test_a_single_category_of_mem0_is_one_tag(tmp_path: Path) -> None:
    (tmp_path / "mem0.json").write_text(json.dumps([{"id": 1, "memory": "Likes tea", "categories": "food"}]))
    (memory,) = read(str(tmp_path / "mem0.json"))
    assert isinstance(memory, Memory)
    assert memory.tags == ["food"]
