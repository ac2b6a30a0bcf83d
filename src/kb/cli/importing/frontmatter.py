"""The front matter of a Markdown file: the part of YAML that people write there.

Scalars, quoted strings, lists of scalars in both notations, and blocks of text. Anything deeper is kept as the text
it is, so that nothing is lost; what is no front matter at all is an error that names the line.
"""

import re
from collections.abc import Callable
from typing import Any

_FENCE = re.compile(r"---[ \t]*\r?\n")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KEY = re.compile(r"""(?P<key>"[^"]+"|'[^']+'|[^\s#:'"\[\]{}-][^:#]*?)\s*:(?:\s+(?P<value>.*))?$""")
_ITEM = re.compile(r"\s*-(?:\s+(?P<value>.*))?$")
_COMMENT = re.compile(r"\s+#.*$")
_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\[\]]*?)\s*(?:,|$)""")
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER: dict[str, Callable[[str], Any]] = {r"[-+]?\d{1,18}": int, r"[-+]?\d+\.\d+": float}


def split(text: str) -> tuple[dict[str, Any], str]:
    """The fields and the rest of the text; no fields where there is no front matter. Raises ValueError."""
    start = _FENCE.match(text)
    end = _END.search(text, start.end()) if start else None
    if start is None or end is None:
        return {}, text
    return _fields(text[start.end() : end.start()].splitlines()), text[end.end() :].lstrip("\r\n")


def tags_of(value: Any) -> list[str]:
    """Tags as people write them: a list, or one string with commas or spaces; a leading # is not part of a tag."""
    parts = value if isinstance(value, list) else re.split(r"[,\s]+", str(value or ""))
    return list(dict.fromkeys(tag for part in parts if (tag := str(part).strip().removeprefix("#"))))


def _fields(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    at = 0
    while at < len(lines):
        line = lines[at].rstrip()
        at += 1
        if not line or line.lstrip().startswith("#"):
            continue
        found = _KEY.match(line)
        if found is None:
            raise ValueError(f"line {at + 1} of the front matter is not `name: value`")
        block = []
        while at < len(lines) and (not lines[at].strip() or lines[at][0] in " \t" or _ITEM.match(lines[at])):
            block.append(lines[at].rstrip())
            at += 1
        fields[_unquoted(found["key"])] = _value((found["value"] or "").strip(), block)
    return fields


def _value(text: str, block: list[str]) -> Any:
    inner = [line for line in block if line.strip() and not line.lstrip().startswith("#")]
    if re.fullmatch(r"[|>][-+]?", text):
        dedented = [line.strip() for line in block]
        return ("\n" if text[0] == "|" else " ").join(dedented).strip()
    if not text and inner:
        items = [_ITEM.match(line) for line in inner]
        if all(items):
            return [_scalar(item["value"] or "") for item in items if item]
        return "\n".join(block).strip("\n")
    if inner:  # a plain value that goes on in the next lines
        text = " ".join([text, *(line.strip() for line in inner)])
    bare = _COMMENT.sub("", text)
    if bare.startswith("[") and bare.endswith("]"):
        return [_scalar(part) for part in _PART.findall(bare[1:-1]) if part]
    return _scalar(text)


def _scalar(text: str) -> Any:
    text = text.strip()
    if text[:1] in ('"', "'"):
        return _unquoted(text)
    text = _COMMENT.sub("", text) if not text.startswith("#") else ""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for pattern, kind in _NUMBER.items():
        if re.fullmatch(pattern, text):
            return kind(text)
    return text


def _unquoted(text: str) -> str:
    if text.startswith('"') and (end := re.match(r'"((?:[^"\\]|\\.)*)"', text)):
        return re.sub(r'\\(["\\/])', r"\1", end[1]).replace("\\n", "\n").replace("\\t", "\t")
    if text.startswith("'") and (end := re.match(r"'((?:[^']|'')*)'", text)):
        return end[1].replace("''", "'")
    return text.strip()
