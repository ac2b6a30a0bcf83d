"""Addresses of the web page: a document, the place of a passage in it, a question."""

from kb.core.endpoint import addresses, place
from kb.core.types import Json


def page_url(path: str) -> str:
    return addresses(place().engine_url)[0].rstrip("/") + path


def passage_url(hit: Json) -> str:
    """Where the page shows a search's result."""
    anchor = hit["anchor"]
    found = [f"page={anchor['page']}"] if "page" in anchor else []
    if "start" in anchor:
        found.append(f"at={anchor['start']}-{anchor['end']}")
    return page_url(f"/d/{hit['document_id']}" + (f"?{'&'.join(found)}" if found else ""))
