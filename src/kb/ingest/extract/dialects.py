"""Texts whose structure is read: recognised by how they start, or by their names where that says nothing."""

import re

from kb.core.values import DocType

# Possessive and atomic: with many comments, backtracking would take for ever.
COMMENTS = rb"(?:(?><!--.*?-->)\s*+)*+"
PROLOG = rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?" + COMMENTS
CANVAS = (
    rb"\A(?:\xef\xbb\xbf)?\s*\{\s*\"(?:nodes|edges)\"\s*:\s*\[(?=.*\"type\"\s*:\s*\"(?:text|file|link|group)\")"
    rb"(?=.*\"width\"\s*:)(?=.*\"height\"\s*:)(?=.*\"edges\"\s*:)"
)
DRAWIO_TYPE = "application/vnd.jgraph.mxfile"
CANVAS_TYPE = "application/x-canvas+json"
CSV_TYPE, TSV_TYPE = "text/csv", "text/tab-separated-values"
JSON_TYPE, LINES_TYPE = "application/json", "application/x-ndjson"
XML_TYPE = "application/xml"
CALENDAR_TYPE, CARD_TYPE = "text/calendar", "text/vcard"
STARTS: tuple[tuple[bytes, DocType, str], ...] = (
    (rb"\A(?:\xef\xbb\xbf)?\s*\{\\rtf", "rtf", "application/rtf"),
    (PROLOG + rb"<(?:mxfile|mxGraphModel)[\s>]", "text", DRAWIO_TYPE),
    (CANVAS, "text", CANVAS_TYPE),
    (rb"\A(?:\xef\xbb\xbf)?\s*BEGIN:VCALENDAR\s", "text", CALENDAR_TYPE),
    (rb"\A(?:\xef\xbb\xbf)?\s*BEGIN:VCARD\s", "text", CARD_TYPE),
)
DIALECTS = [(re.compile(start, re.IGNORECASE | re.DOTALL), kind, media) for start, kind, media in STARTS]
RTF_WORDS = re.compile(rb"\s*\{\s*\\[a-z]")  # a fragment, which lacks the first word of a file
# Texts of which only the name says what they are.
NAMED = {
    "csv": CSV_TYPE,
    "tsv": TSV_TYPE,
    "tab": TSV_TYPE,
    "json": JSON_TYPE,
    "geojson": "application/geo+json",
    "jsonld": "application/ld+json",
    "jsonl": LINES_TYPE,
    "ndjson": LINES_TYPE,
    "xml": XML_TYPE,
    "rss": XML_TYPE,
    "atom": XML_TYPE,
    "opml": XML_TYPE,
    "fb2": XML_TYPE,
    "yaml": "application/yaml",
    "yml": "application/yaml",
}


def dialect_of(edges: bytes, suffix: str) -> tuple[DocType, str] | None:
    """The types of a text with a structure, judged by its start and end."""
    if suffix == "rtf" and RTF_WORDS.match(edges):
        return "rtf", "application/rtf"
    return next(((kind, media) for pattern, kind, media in DIALECTS if pattern.search(edges)), None)
