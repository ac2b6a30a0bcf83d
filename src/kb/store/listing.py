"""Lists of documents: filtered, sorted and cut into pages, whole or as summaries; and the pages of a ledger.

A summary counts the states in the text of the ledger. It does not parse the ledger, which has an entry for every page
of a file.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any
from unicodedata import normalize

from kb.core.metadata import shown
from kb.core.searches import Listing, Order, Sort
from kb.core.values import LEDGER_STATES, Document, DocumentSummary, LedgerEntry, LedgerState
from kb.store.backend import Row, Transaction
from kb.store.documents import RECENT, as_documents, filtered, find, ledger_of, tags_of
from kb.store.rows import from_row, listed, readable

SORT_BY: dict[Sort, tuple[str, Order]] = {
    "recent": (RECENT, "desc"),
    "created": ("created_at", "desc"),
    "filename": ("COALESCE(filename, title)", "asc"),
    "size": ("size_bytes", "desc"),
}
ROWS = "SELECT * FROM published WHERE id IN ({ids})"
# An entry with this state, as `documents.publish` writes it. A reason cannot hold it: JSON escapes the quotes there.
ENTRY = '"state": "{state}"'
WORD = re.compile(r"[^\W_]+")
# Scripts that put no space between words: Thai to Myanmar, Khmer, and everything from the CJK radicals on.
UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u2e80-\U0003ffff]")


def page(tx: Transaction, listing: Listing) -> tuple[list[Document], int]:
    """One page of the documents, and how many there are in all."""
    rows, total = page_of_rows(tx, listing)
    return as_documents(tx, rows), total


def summaries(tx: Transaction, listing: Listing) -> tuple[list[DocumentSummary], int]:
    """One page of the documents as summaries, and how many there are in all."""
    rows, total = page_of_rows(tx, listing)
    return as_summaries(tx, rows), total


def as_summaries(tx: Transaction, rows: Sequence[Row], **more: Sequence[Any]) -> list[DocumentSummary]:
    """The summaries of these rows; `more` has further fields, with a value for each row."""
    tags = tags_of(tx, [row["id"] for row in rows])
    with readable("documents"):
        return [
            as_summary(row, tags[row["id"]], **{name: values[at] for name, values in more.items()})
            for at, row in enumerate(rows)
        ]


def summary(tx: Transaction, ref: str) -> DocumentSummary:
    """One document as a summary, with its metadata."""
    row = find(tx, ref)
    with readable("documents"):
        tags = tags_of(tx, [row["id"]])[row["id"]]
        return as_summary(row, tags, content_hash=row["content_hash"], metadata=shown(row["metadata"]))


def ledger(
    tx: Transaction, ref: str, state: LedgerState | None, limit: int, offset: int
) -> tuple[list[LedgerEntry], int]:
    """One page of the parts of a document, those in one state if it is given, and how many there are in all."""
    row = find(tx, ref)
    with readable("documents"):
        entries = [entry for entry in ledger_of(row) if state in (None, entry.state)]
    return entries[offset : offset + limit], len(entries)


def page_of_rows(tx: Transaction, listing: Listing) -> tuple[list[Row], int]:
    """Sort ids, then load the rows of one page: rows are wide, and most of them are not shown."""
    where, params = filtered(listing.filter)
    if listing.state is not None:
        where += " AND d.ledger LIKE :state"
        params["state"] = f"%{ENTRY.format(state=listing.state)}%"
    expression, natural = SORT_BY[listing.sort]
    direction = listing.order or natural
    sorted_by = f"published d WHERE {where} ORDER BY {expression} {direction}, id {direction}"
    if listing.words.strip() or listing.state is not None:  # one scan finds the page and the total
        found = named(tx, sorted_by, params, listing.words)
        total, ids = len(found), found[listing.offset : listing.offset + listing.limit]
    else:
        total = int(tx.value(f"SELECT count(*) FROM published d WHERE {where}", params))
        cut = {"limit": listing.limit, "offset": listing.offset}
        ids = tx.column(f"SELECT id FROM {sorted_by} LIMIT :limit OFFSET :offset", params | cut)
    names, given = listed(ids)
    rows = {row["id"]: row for row in tx.rows(ROWS.format(ids=names), given)} if ids else {}
    with readable("documents"):
        return [rows[id_] for id_ in ids], total


def named(tx: Transaction, sorted_by: str, params: dict[str, Any], words: str) -> list[int]:
    """Ids of the documents whose title or file name has all of the words."""
    has_all = matcher(words)
    found = tx.tuples(f"SELECT id, title, filename FROM {sorted_by}", params)
    return [id_ for id_, title, filename in found if has_all(f"{title} {filename or ''}")]


def matcher(words: str) -> Callable[[str], bool]:
    """Return a test of a text: whether each of the words begins a word of it, in upper or lower case.

    In a script without spaces a word may stand anywhere; so may signs, if they are all that was asked for.
    """
    asked = list(dict.fromkeys(WORD.findall(folded(words)))) or [folded(words).strip()]
    anywhere = [word for word in asked if UNSPACED.search(word) or not WORD.match(word)]
    at_start = [re.compile(rf"(?<![^\W_]){re.escape(word)}").search for word in asked if word not in anywhere]

    def has_all(text: str) -> bool:
        text = folded(text)
        return all(word in text for word in asked) and all(found(text) for found in at_start)

    return has_all


def folded(text: str) -> str:
    return text.lower() if text.isascii() else normalize("NFKC", text).casefold()


def as_summary(row: Row, tags: list[str], **more: Any) -> DocumentSummary:
    others = {"tags": tags, "ledger_counts": counted(row["ledger"]), "content_hash": None, "metadata": None}
    others["parent"] = row["parent_id"]
    return from_row(DocumentSummary, row, **others | more)


def counted(ledger: str) -> dict[LedgerState, int]:
    counts: Sequence[tuple[LedgerState, int]] = [
        (state, ledger.count(ENTRY.format(state=state))) for state in LEDGER_STATES
    ]
    return {state: count for state, count in counts if count}
