"""Calendars and address cards (iCalendar, vCard): a line for each thing that is said, as it was before it was folded.

Lines are cut after 75 bytes when such a file is written, in the middle of words: as they stand, words are not found.
"""

import binascii
import codecs
import re
from collections.abc import Iterator

from kb.ingest.extract.part import EMPTY, Outcome, Part
from kb.ingest.extract.tidy import tidy

FOLDED = re.compile(r"\r?\n[ \t]")
SOFT = re.compile(
    r"(?im)^([^:\n]{0,100}QUOTED-PRINTABLE[^:\n]{0,100}:(?:[^\n]*=\r?\n)+[^\n]*)"
)  # lines of vCard 2.1 that go on
LINE = re.compile(r"(?P<name>[\w.-]+)(?P<details>(?:;(?:[^:\";]|\"[^\"]*\")*+)*+):(?P<value>.*)")
BYTES = re.compile(r"ENCODING=(?:B|BASE64)\b", re.IGNORECASE)
QUOTED = re.compile(r"QUOTED-PRINTABLE", re.IGNORECASE)
CHARSET = re.compile(r"CHARSET=([\w.-]+)", re.IGNORECASE)
FIELDS = re.compile(r"(?<!\\)(?:;\s*)+")  # between the parts of a name or an address
ESCAPED = re.compile(r"\\([nN,;:\\])")
OF_FIELDS = ("N", "ADR", "ORG")
SILENT = ("BEGIN", "END", "VERSION", "PRODID")


def cards(text: str) -> Iterator[Part]:
    """One part: a paragraph for each event or person."""
    blocks: list[list[str]] = [[]]
    left_out = 0
    for line in SOFT.sub(joined, FOLDED.sub("", text)).splitlines():
        found = LINE.fullmatch(line)
        if found is None:
            blocks[-1].append(line)
            continue
        name = found["name"].rpartition(".")[2].upper()
        if name == "BEGIN":
            blocks.append([])
        if BYTES.search(found["details"]) or found["value"].startswith("data:"):
            left_out += 1
        elif name not in SILENT and (value := said(name, found["details"], found["value"])):
            blocks[-1].append(f"{name}: {value}")
    whole = tidy("\n\n".join("\n".join(block) for block in blocks if block))
    reason = f"pictures and keys are left out: {left_out}" if left_out else None
    yield Part("text", whole, outcome=Outcome("ok", reason) if whole else EMPTY)


def joined(lines: re.Match[str]) -> str:
    return re.sub(r"=\r?\n", "", lines[0])


def said(name: str, details: str, value: str) -> str:
    """A value without the signs that stand for others."""
    if QUOTED.search(details):
        charset = CHARSET.search(details)
        value = binascii.a2b_qp(value.encode()).decode(codec(charset[1] if charset else "utf-8"), "replace")
    if name in OF_FIELDS:
        value = FIELDS.sub(" ", value)
    return ESCAPED.sub(lambda sign: "\n" if sign[1] in "nN" else sign[1], value).strip()


def codec(name: str) -> str:
    try:
        return codecs.lookup(name).name
    except LookupError:
        return "utf-8"
