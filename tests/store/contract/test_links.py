"""Links and the trash, in every store."""

from dataclasses import replace

import pytest

from kb.core.errors import NotFound
from kb.store import documents, links, notes, trash
from kb.store.backend import Transaction
from kb.store.open import Store
from shelf import content


def add(tx: Transaction, title: str, text: str, path: str | None = None) -> int:
    id_ = documents.reserve(tx)
    documents.publish(tx, id_, replace(content(title), source_path=path), 1, 0)
    notes.add_version(tx, id_, text)
    links.refresh(tx, id_)
    return id_


def found(tx: Transaction, id_: int) -> tuple[list[int | None], list[int | None]]:
    answer = links.of(tx, id_)
    return [one.document_id for one in answer.links], [one.document_id for one in answer.backlinks]


def test_links_follow_what_comes_moves_and_goes(store: Store) -> None:
    with store.database.write() as tx:
        source = add(tx, "Source", "To [[Other]], [[other.MD#part]] and [[n\0one]].", "/v/a/Source.md")
        assert found(tx, source) == ([None] * 3, [])
        other = add(tx, "Another title", "---\naliases: [Second]\n---\nBack to [[Source]].", "/v/b/Other.md")
        assert found(tx, source) == ([other, other, None], [other])
        assert found(tx, other) == ([source], [source, source])
        documents.move(tx, other, "/v/c/Renamed.md", "Renamed.md")
        links.follow_move(tx, other)
        assert found(tx, source)[0] == [None] * 3
        assert list(links.outdated(tx)) == []
        tx.run("DELETE FROM names WHERE document_id = :id", {"id": other})
        assert list(links.outdated(tx)) == [other]
        links.refresh_all(tx)
        late = add(tx, "Late", "By alias: [[second]]; by title: [[another TITLE]]")
        assert found(tx, late) == ([other, other], [])
    with store.database.write() as tx:
        trash.put(tx, other, "2026-01-01T00:00:00.000Z")
        assert found(tx, late) == ([None, None], [])
        with pytest.raises(NotFound):
            links.of(tx, other)
        assert [row["id"] for row in trash.page(tx, 10, 0)] == [other]
        trash.take_out(tx, other)
        assert found(tx, late) == ([other, other], [])
        documents.delete(tx, late)
        assert found(tx, other)[1] == []
