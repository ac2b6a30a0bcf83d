"""Text as a reader would type it: ligatures, odd spaces, line ends and words cut at them put right."""

import re

LIGATURES = str.maketrans(
    {
        "ﬀ": "ff",
        "ﬁ": "fi",
        "ﬂ": "fl",
        "ﬃ": "ffi",
        "ﬄ": "ffl",
        "ﬅ": "st",
        "ﬆ": "st",
        "\u00ad": None,  # soft hyphen
        "\u200b": None,  # zero-width space
        "\ufeff": None,
        "\x00": None,
    }
)
DETAIL_CHARACTERS = 1000
LINE_ENDS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")
SPACES = re.compile(r"[^\S\n]+")
AROUND_LINE_END = re.compile(r" ?\n ?")
BLANK_LINES = re.compile(r"\n{3,}")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f\ufffe\uffff]")
# What `tidy` replaces after line ends and ligatures, in this order; `kb.ingest.extract.traced` does the same.
STEPS = ((CONTROLS, " "), (SPACES, " "), (AROUND_LINE_END, "\n"), (BLANK_LINES, "\n\n"))


def tidy(text: str) -> str:
    """One space between words, no space at the edges of a line, one blank line at most."""
    text = LINE_ENDS.sub("\n", text).translate(LIGATURES)
    for pattern, instead in STEPS:
        text = pattern.sub(instead, text)
    return text.strip()


def one_line(text: str) -> str:
    return " ".join(tidy(text).split())


def detail(text: str | None) -> str:
    """A detail from a file's metadata, on one line of limited length."""
    return one_line((text or "")[:DETAIL_CHARACTERS])
