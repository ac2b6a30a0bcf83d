"""Links between documents: what a text links to, found again by path, file name, title or alias.

A link is stored as it is written, and looked up when it is asked for: a document that comes, moves or goes later needs
no change of those that link to it. A target is looked for the way Obsidian does: in the folder of the document, else by
the end of the path, the nearest first, then the shortest path.
"""

import json
import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kb.core import link_syntax
from kb.core.link_syntax import folded, name_of, path_of
from kb.core.values import DocumentLink, DocumentLinks
from kb.store import documents
from kb.store.backend import Row, Transaction
from kb.store.rows import listed, readable

LINKING = ("note", "markdown")  # types of documents whose texts have links
MOST_BACKLINKS = 1000  # in an answer
AT_ONCE = 500  # names that are looked up together

ROW = "SELECT id, doc_type, title, source_path, filename, metadata FROM stored WHERE id = :id"
IDS = "SELECT id FROM stored WHERE id > :after ORDER BY id LIMIT 500"
TARGETS = "SELECT target FROM links WHERE document_id = :id ORDER BY position"
NAMES = "SELECT kind, name FROM names WHERE document_id = :id"
CANDIDATES = """
SELECT n.name, n.kind, d.id, d.title, COALESCE(d.source_path, d.filename) AS path
  FROM names n JOIN published d ON d.id = n.document_id
 WHERE n.name IN ({names}) ORDER BY d.id
"""
LINKING_TO = """
SELECT l.target, l.name, d.id, d.title, COALESCE(d.source_path, d.filename) AS path
  FROM links l JOIN published d ON d.id = l.document_id
 WHERE l.name IN ({names}) ORDER BY d.title, d.id, l.position
"""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that has the name of a target."""

    id: int
    title: str
    kind: str  # path, title or alias: what has that name
    path: str  # folded; empty if it has none


def refresh(tx: Transaction, document_id: int) -> None:
    """Record links and names of a document as its text, path and title are now."""
    row = tx.row(ROW, {"id": document_id})
    if row is None:
        return
    targets, names = read(tx, row)
    tx.run("DELETE FROM links WHERE document_id = :id", {"id": document_id})
    tx.run("DELETE FROM names WHERE document_id = :id", {"id": document_id})
    tx.run_many(
        "INSERT INTO links (document_id, position, target, name) VALUES (:id, :position, :target, :name)",
        [
            {"id": document_id, "position": position, "target": target, "name": name_of(path_of(target))}
            for position, target in enumerate(targets)
        ],
    )
    tx.run_many(
        "INSERT INTO names (document_id, kind, name) VALUES (:id, :kind, :name)",
        [{"id": document_id, "kind": kind, "name": name} for kind, name in names],
    )


def follow_move(tx: Transaction, document_id: int) -> None:
    """Record the names of a document that has another path, and of what was found in it."""
    refresh(tx, document_id)
    for member in documents.stored_members(tx, document_id):
        follow_move(tx, member["id"])


def read(tx: Transaction, row: Row) -> tuple[list[str], list[tuple[str, str]]]:
    """The targets of a document's text, and its own names with their kinds, sorted."""
    names = set()
    if path := row["source_path"] or row["filename"]:
        names.add(("path", name_of(path)))
    if row["doc_type"] not in LINKING:
        return [], sorted(names)
    text = documents.text(tx, row["id"])
    with readable("documents"):
        metadata = json.loads(row["metadata"])
        given = [metadata.get("aliases"), metadata.get("alias")]
    aliases = [str(one) for some in given if some for one in (some if isinstance(some, list) else [some])]
    if row["doc_type"] == "note":
        names.add(("title", name_of(row["title"])))
    names.update(("alias", name_of(alias)) for alias in [*aliases, *link_syntax.aliases(text)])
    return link_syntax.targets(text), sorted(names)


def outdated(tx: Transaction) -> Iterator[int]:
    """The documents whose links or names are not what their text, path and title say."""
    after = 0
    while ids := tx.column(IDS, {"after": after}):
        for id_ in ids:
            row = tx.row(ROW, {"id": id_})
            held = tx.column(TARGETS, {"id": id_}), sorted(tx.tuples(NAMES, {"id": id_}))
            if row is not None and held != read(tx, row):
                yield id_
        after = ids[-1]


def refresh_all(tx: Transaction) -> None:
    for id_ in list(outdated(tx)):
        refresh(tx, id_)


def of(tx: Transaction, ref: int | str) -> DocumentLinks:
    """What a document links to, and which documents link to it."""
    row = documents.find(tx, ref)
    targets = tx.column(TARGETS, {"id": row["id"]})
    known = candidates(tx, {name_of(path_of(target)) for target in targets})
    path = row["source_path"] or row["filename"] or ""
    links = [link(target, resolved(target, path, known[name_of(path_of(target))])) for target in targets]
    backlinks = [
        DocumentLink(one["id"], one["title"], one["target"])
        for one in linking_to(tx, row["id"])
        if one["id"] != row["id"]
    ]
    more = max(len(backlinks) - MOST_BACKLINKS, 0)
    return DocumentLinks(links, backlinks[:MOST_BACKLINKS], more or None)


def linking_to(tx: Transaction, document_id: int) -> list[Row]:
    """The links that find this document."""
    own = {name for _, name in tx.tuples(NAMES, {"id": document_id})}
    known = candidates(tx, own)
    names, params = listed(sorted(own))
    rows = tx.rows(LINKING_TO.format(names=names), params) if own else []
    found = ((row, resolved(row["target"], row["path"] or "", known[row["name"]])) for row in rows)
    return [row for row, to in found if to is not None and to.id == document_id]


def candidates(tx: Transaction, names: Collection[str]) -> dict[str, list[Candidate]]:
    """The documents that have each of these names."""
    found: defaultdict[str, list[Candidate]] = defaultdict(list)
    wanted = sorted(names)
    for start in range(0, len(wanted), AT_ONCE):
        placeholders, params = listed(wanted[start : start + AT_ONCE])
        for row in tx.rows(CANDIDATES.format(names=placeholders), params):
            found[row["name"]].append(Candidate(row["id"], row["title"], row["kind"], folded(row["path"] or "")))
    return found


def link(target: str, to: Candidate | None) -> DocumentLink:
    return DocumentLink(None, None, target) if to is None else DocumentLink(to.id, to.title, target)


def resolved(target: str, source: str, known: Sequence[Candidate]) -> Candidate | None:
    """The document that a target in the document at the path `source` means; None if there is none."""
    wanted, folder = folded(path_of(target)), posixpath.dirname(folded(source))
    beside = posixpath.normpath(posixpath.join(folder, wanted))
    for one in known:
        if one.kind == "path" and one.path == beside:
            return one
    if wanted.startswith(("./", "../")):
        return None
    end = "/" + wanted.strip("/")
    named = [one for one in known if one.kind == "path" and f"/{one.path}".endswith(end)]
    called = [one for one in known if one.kind != "path"] if "/" not in wanted else []
    # Notes without a path know each other by their titles, files by their names.
    for some in (named, called) if source else (called, named):
        if some:
            return min(some, key=lambda one: (-shared(folder, one.path), one.path.count("/"), one.path, one.id))
    return None


def shared(folder: str, path: str) -> int:
    """How many folders a path has in common with a folder, from the root on."""
    count = 0
    for mine, other in zip(folder.split("/"), posixpath.dirname(path).split("/"), strict=False):
        if mine != other:
            break
        count += 1
    return count
