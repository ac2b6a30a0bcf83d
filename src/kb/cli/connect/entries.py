"""Put one entry into another program's configuration file or take it out, and leave every other character as it is.

JSON may have comments and trailing commas, as editors allow. TOML is edited by tables. Either way the result is read
again and must say exactly what was there with that one change; otherwise the file is not touched.
"""

import json
import re
from typing import Any, NamedTuple

from kb.core.errors import InvalidRequest
from kb.core.types import Json

# What stands between the parts of a JSON text: white space and comments.
_GAP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BESIDE = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)(?=\r?\n)")
_ATOM = re.compile(r"[^\s,\]}/]+")


class UnreadableError(Exception):
    """The text does not follow the grammar."""


class JsonMember(NamedTuple):
    """One `"key": value` of an object, by its positions in the text."""

    key: str
    start: int
    value: int
    end: int


class Object(NamedTuple):
    members: list[JsonMember]
    inside: int  # just behind the brace
    last: int  # just behind the last member or its comma
    comma: bool  # whether the last member is followed by one
    end: int  # behind the closing brace


def with_entry(form: str, text: str, section: str, name: str, entry: Json) -> str:
    """The text with the entry in its section; raises InvalidRequest when the text cannot be understood."""
    edit, read = (_edit_toml, read_toml) if form == "toml" else (_edit_json, read_json)
    try:
        wanted = read(text)
        held = wanted.setdefault(section, {})
        if not isinstance(held, dict):
            raise UnreadableError(f"{section} is not a table of servers")
        held[name] = entry
        edited = edit(text, section, name, entry)
        if read(edited) != wanted:
            raise UnreadableError("it is written in a way that cannot be changed safely")
    except (UnreadableError, ValueError) as wrong:
        raise InvalidRequest(f"The file is left alone: {wrong}. Add the entry by hand; see docs/connect.md.") from wrong
    return edited


def without_entry(form: str, text: str, section: str, name: str) -> str:
    """The text without the entry; the same text if it is not there."""
    edit, read = (_cut_toml, read_toml) if form == "toml" else (_cut_json, read_json)
    try:
        wanted = read(text)
        held = wanted.get(section)
        if not isinstance(held, dict) or name not in held:
            return text
        del held[name]
        edited = edit(text, section, name)
        said = read(edited)
        if form == "toml" and not held:  # a table is gone with its last member
            said.setdefault(section, {})
        if said != wanted:
            raise UnreadableError("it is written in a way that cannot be changed safely")
    except (UnreadableError, ValueError) as wrong:
        raise InvalidRequest(f"The file is left alone: {wrong}. Remove the entry {name} by hand.") from wrong
    return edited


def read_json(text: str) -> Json:
    """What a JSON text with comments says; an empty one is an empty object."""
    if not text.strip():
        return {}
    said = json.loads(_bare(text))
    if not isinstance(said, dict):
        raise UnreadableError("it does not hold a JSON object")
    return said


def read_toml(text: str) -> Json:
    import tomllib

    return tomllib.loads(text)


def _bare(text: str) -> str:
    """Without comments and trailing commas."""
    kept, at = [], 0
    while at < len(text):
        if text[at] == '"':
            end = _match(_STRING, text, at)
        elif text.startswith(("//", "/*"), at):
            at = _gap(text, at)
            kept.append(" ")
            continue
        elif text[at] == "," and text[_gap(text, at + 1) :][:1] in ("}", "]"):
            at += 1
            continue
        else:
            end = at + 1
        kept.append(text[at:end])
        at = end
    return "".join(kept)


def _edit_json(text: str, section: str, name: str, entry: Json) -> str:
    if not text.strip():
        return json.dumps({section: {name: entry}}, indent=2) + "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    root = _object(text, _gap(text, 0))
    step = _indent(text, root) or "  "
    held = _member(root, section)
    if held is None:
        edited = _inserted(text, root, section, {name: entry}, step, 1)
    else:
        servers = _object(text, held.value)
        known = _member(servers, name)
        if known is None:
            edited = _inserted(text, servers, name, entry, step, 2)
        else:
            edited = text[: known.value] + _dumped(entry, step, 2) + text[known.end :]
    return edited if newline == "\n" else re.sub(r"(?<!\r)\n", newline, edited)


def _cut_json(text: str, section: str, name: str) -> str:
    held = _member(_object(text, _gap(text, 0)), section)
    assert held
    servers = _object(text, held.value)
    known = _member(servers, name)
    assert known
    at = servers.members.index(known)
    begin, end = known.start, known.end
    after = _gap(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif at:  # the last one: the comma before it goes too
        comma = _gap(text, servers.members[at - 1].end)
        text = text[:comma] + text[comma + 1 :]
        begin, end = begin - 1, end - 1
    line = text[:begin].rpartition("\n")[2]
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not line.strip() and rest:  # it has its lines for itself
        begin, end = begin - len(line), rest.end()
    return text[:begin] + text[end:]


def _inserted(text: str, into: Object, key: str, value: Any, step: str, depth: int) -> str:
    member = f"{json.dumps(key)}: {_dumped(value, step, depth)}"
    if into.members:
        comma = "" if into.comma else ","
        beside = _BESIDE.match(text, into.last)  # a comment on the last member's line is about that one
        at = beside.end() if beside else into.last
        return f"{text[: into.last]}{comma}{text[into.last : at]}\n{step * depth}{member}{text[at:]}"
    # An empty object opens up; a comment inside it stays before the member.
    rest = text[into.inside : into.end - 1].rstrip()
    return f"{text[: into.inside]}{rest}\n{step * depth}{member}\n{step * (depth - 1)}{text[into.end - 1 :]}"


def _dumped(value: Any, step: str, depth: int) -> str:
    return json.dumps(value, indent=step).replace("\n", "\n" + step * depth)


def _indent(text: str, root: Object) -> str:
    if not root.members:
        return ""
    line = text[: root.members[0].start].rpartition("\n")[2]
    return line if not line.strip() else ""


def _member(held: Object, key: str) -> JsonMember | None:
    found = [member for member in held.members if member.key == key]
    if len(found) > 1:
        raise UnreadableError(f"it has {key!r} twice")
    return found[0] if found else None


def _object(text: str, at: int) -> Object:
    if text[at : at + 1] != "{":
        raise UnreadableError("it holds something else where an object should be")
    members: list[JsonMember] = []
    inside = last = at + 1
    comma = False
    at = _gap(text, inside)
    while text[at : at + 1] != "}":
        if members and not comma:
            raise UnreadableError("a comma is missing")
        end = _match(_STRING, text, at)
        colon = _gap(text, end)
        if text[colon : colon + 1] != ":":
            raise UnreadableError("a colon is missing")
        value = _gap(text, colon + 1)
        last = _value_end(text, value)
        members.append(JsonMember(json.loads(text[at:end]), at, value, last))
        at = _gap(text, last)
        comma = text[at : at + 1] == ","
        if comma:
            last = at + 1
            at = _gap(text, last)
    return Object(members, inside, last, comma, at + 1)


def _value_end(text: str, at: int) -> int:
    """Just behind the value that begins here."""
    if text[at : at + 1] == '"':
        return _match(_STRING, text, at)
    if text[at : at + 1] not in ("{", "["):
        return _match(_ATOM, text, at)
    depth = 0
    while at < len(text):
        if text[at] == '"':
            at = _match(_STRING, text, at)
            continue
        if text.startswith(("//", "/*"), at):
            at = _gap(text, at)
            continue
        depth += (text[at] in "{[") - (text[at] in "}]")
        at += 1
        if not depth:
            return at
    raise UnreadableError("a bracket is never closed")


def _gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    end = found.end() if found else at
    if end == at and text.startswith(("//", "/*"), at):
        raise UnreadableError("a comment is never closed")
    return end


def _match(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    found = pattern.match(text, at)
    if found is None:
        raise UnreadableError("it is not JSON")
    return found.end()


def _edit_toml(text: str, section: str, name: str, entry: Json) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    table = newline.join([f"[{section}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items()), ""])
    lines = text.splitlines(keepends=True)
    found = _toml_lines(lines, section, name)
    if found is None:
        between = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        return text + between + table
    return "".join(lines[: found.start]) + table + "".join(lines[found.stop :])


def _cut_toml(text: str, section: str, name: str) -> str:
    lines = text.splitlines(keepends=True)
    found = _toml_lines(lines, section, name)
    if found is None:
        raise UnreadableError(f"{name} has no table of its own")
    start = found.start
    while start and not lines[start - 1].strip():  # the blank line that sets it apart
        start -= 1
    return "".join(lines[:start] + lines[found.stop :])


def _toml_lines(lines: list[str], section: str, name: str) -> range | None:
    """The lines of the table and of the tables inside it."""
    own = re.compile(rf"\[\s*{section}\s*\.\s*[\"']?{re.escape(name)}[\"']?\s*[.\]]")
    start = next((number for number, line in enumerate(lines) if own.match(line.lstrip())), None)
    if start is None:
        return None
    end = start + 1
    while end < len(lines) and (not lines[end].lstrip().startswith("[") or own.match(lines[end].lstrip())):
        end += 1
    # Blank lines and comments before the next table belong to that one.
    while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return range(start, end)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)  # a JSON string or list of them is TOML too
