"""The front matter of a Markdown file: fields in YAML, with text, numbers, true and false, or lists of them as values.

PyYAML finds the nodes; none of its constructors runs, so tags and aliases create nothing. Any other value stays the
text of the file, so that nothing is lost: a mapping, a date, what is not valid YAML such as `title: a: b`.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml

MAX_CHARS = 2**16  # as many as the engine takes as metadata; PyYAML reads a megabyte in some ten seconds

_FENCE = re.compile(r"---[ \t]*\r?\n")
_END = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_NEXT_FIELD = re.compile(r"\n(?=[^\s#\]}-]|-\S)")
_FIELD = re.compile(r"([^\s\"'\[\]{}#][^:]*?)\s*:\s+(.*)", re.DOTALL)
_INDENT = re.compile(r"^[ \t]+", re.MULTILINE)
_TEXT = "tag:yaml.org,2002:str"
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER: dict[str, Callable[[str], Any]] = {r"[-+]?\d{1,18}": int, r"[-+]?\d+\.\d+": float}


def split(text: str) -> tuple[dict[str, Any], str]:
    """The fields and the rest of the text; no fields where there is no front matter. Raises ValueError."""
    start = _FENCE.match(text)
    end = _END.search(text, start.end()) if start else None
    if start is None or end is None:
        return {}, text
    if end.start() - start.end() > MAX_CHARS:
        raise ValueError(f"the front matter has more than {MAX_CHARS} characters")
    return _fields(text[start.end() : end.start()]), text[end.end() :].lstrip("\r\n")


def tags_of(value: Any) -> list[str]:
    """Tags as people write them: a list, or one string with commas or spaces; a leading # is not part of a tag."""
    parts = value if isinstance(value, list) else re.split(r"[,\s]+", str(value or ""))
    return list(dict.fromkeys(tag for part in parts if (tag := str(part).strip().removeprefix("#"))))


def _fields(text: str) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    line = 2  # the fence is the first
    for part in _NEXT_FIELD.split(text):
        fields |= _field(part, line)
        line += part.count("\n") + 1
    return fields


def _field(part: str, line: int) -> dict[str, Any]:
    part = _INDENT.sub(lambda indent: indent[0].expandtabs(2), part)  # YAML refuses tabs there
    try:
        root = yaml.compose(part, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError):
        if found := _FIELD.match(part):
            return {found[1]: found[2].rstrip()}
        root = part
    if root is None:
        return {}
    if not isinstance(root, yaml.MappingNode) or not all(isinstance(key, yaml.ScalarNode) for key, _ in root.value):
        raise ValueError(f"line {line} of the front matter is not `name: value`")
    return {key.value: _value(node, part) for key, node in root.value}


def _value(node: yaml.Node, part: str) -> Any:
    if isinstance(node, yaml.SequenceNode) and all(map(_is_plain, node.value)):
        return [_scalar(item) for item in node.value]
    if _is_plain(node):
        return _scalar(node)
    start = node.start_mark.index
    indent = part[part.rfind("\n", 0, start) + 1 : start]
    return part[start - len(indent) * indent.isspace() : node.end_mark.index].rstrip()


def _is_plain(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == _TEXT


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.style in ("|", ">"):
        return text.strip("\n")
    if node.style is None:
        if text.lower() in _WORDS:
            return _WORDS[text.lower()]
        for pattern, kind in _NUMBER.items():
            if re.fullmatch(pattern, text):
                return kind(text)
    return text
