"""Obsidian canvas (JSON Canvas): the cards in order, then what is connected with what."""

import json
from collections.abc import Iterator

from kb.core.types import Json
from kb.ingest.extract.notebook import items
from kb.ingest.extract.part import Outcome, Part
from kb.ingest.extract.tidy import one_line
from kb.ingest.extract.unstructured import Unstructured

SAYS = {"text": "text", "file": "file", "link": "url", "group": "label"}  # the field of each kind of card
NAME_CHARACTERS = 80  # of a card in a connection


def canvas(text: str) -> Iterator[Part]:
    try:
        drawn = json.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise Unstructured("its JSON is nested too deeply") from None
    except ValueError as error:
        raise Unstructured(f"it is not valid JSON: {error}") from None
    cards = {str(node.get("id")): said(node) for node in items(drawn, "nodes")}
    ties = [connection(edge, cards) for edge in items(drawn, "edges")]
    blocks = [*filter(None, cards.values()), "\n".join(filter(None, ties))]
    outcome = Outcome("ok", f"{len(cards)} cards, {len(ties)} connections")
    return iter([Part("text", "\n\n".join(filter(None, blocks)), outcome=outcome)])


def said(node: Json) -> str:
    """What a card shows: its text, the file or page that it opens, the name of a group."""
    text = str(node.get(SAYS.get(str(node.get("type")), "text")) or "").strip()
    return text + str(node.get("subpath") or "") if node.get("type") == "file" else text


def connection(edge: Json, cards: dict[str, str]) -> str:
    """ "Ebb → Flood: follows" """
    first, last = (one_line(cards.get(str(edge.get(end)), ""))[:NAME_CHARACTERS] for end in ("fromNode", "toNode"))
    label = one_line(str(edge.get("label") or ""))
    return f"{first} → {last}: {label}" if label else f"{first} → {last}" if first and last else ""
