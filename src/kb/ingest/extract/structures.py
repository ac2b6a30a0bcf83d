"""Files that look like text, but say little until their structure is read: refused by name, until a reader exists."""

import re

PROLOG = rb"\A(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*\?>\s*)?(?:<!--.*?-->\s*)*"
# The lines at the start of a mail. A text that merely begins with "From:" and "Subject:" has none of the second kind.
HEADERS = rb"(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*){0,100}?"
TECHNICAL = (
    rb"(?:message-id:\s*<|mime-version:\s*1|received:\s*(?:from|by)\s|return-path:\s*<|delivered-to:\s*\S+@"
    rb"|dkim-signature:\s*\w=)"
)
MAIL = rb"(?=" + HEADERS + rb"(?:from|date|subject):)" + HEADERS + TECHNICAL
SAVED = HEADERS + rb"(?:from:\s*[\"<]?saved by |snapshot-content-location:)"
JSON = rb"\A(?:\xef\xbb\xbf)?\s*\{\s*"
CANVAS = (
    rb"\"(?:nodes|edges)\"\s*:\s*\[(?=.*\"type\"\s*:\s*\"(?:text|file|link|group)\")(?=.*\"width\"\s*:)(?=.*\"height\"\s*:)"
    rb"(?=.*\"edges\"\s*:)"
)
# How to recognise it, what it is, and what to add instead.
STRUCTURES = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), f"it is {what}, which is not read as it is; {instead}")
    for pattern, what, instead in (
        (rb"\A\s*\{\\rtf", "an RTF document", "save it as DOCX or PDF and add that"),
        (rb"\A\s*" + SAVED, "a web archive (MHTML)", "save the page as HTML or PDF and add that"),
        (
            rb"\A\s*From (?![0-9a-f]{40} Mon Sep 17)[^\n]+\d{4}[^\n]*\n" + MAIL,
            "a mailbox (MBOX)",
            "save its messages as HTML, PDF or plain text and add those",
        ),
        (
            rb"\A\s*" + MAIL,
            "a mail (EML)",
            "save it as HTML, PDF or plain text and add that, and its attachments as files",
        ),
        (PROLOG + rb"<(?:mxfile|mxGraphModel)[\s>]", "a drawing of draw.io", "export it as SVG or PDF and add that"),
        (JSON + CANVAS, "a canvas (Obsidian)", "export it as Markdown or PDF and add that"),
    )
)


def structure_of(edges: bytes) -> str | None:
    """What a file is, judged by its start and end; None for text."""
    return next((what for pattern, what in STRUCTURES if pattern.search(edges)), None)
