"""Exports of other programs: which one a file is, and the conversations and memories in it."""

import json
import os
import re
import zipfile
from collections.abc import Callable
from typing import Any

from kb.cli.importing import chatgpt, claude, mem0
from kb.cli.importing.conversation import Broken, Conversation
from kb.cli.importing.mem0 import Memory
from kb.core.errors import InvalidRequest
from kb.core.types import Json

SESSION = ".jsonl"
EXPORTS = (".json", SESSION, ".zip")
KNOWN = "an export of ChatGPT, Claude or mem0, or a session of Claude Code"
# A large export of ChatGPT comes in several files.
CONVERSATIONS = re.compile(r"(?:.*/)?conversations(?:-\d+)?\.json")

Item = Conversation | Memory | Broken


def read(path: str) -> list[Item]:
    """All that an export holds, in its order. Raises InvalidRequest if it is no export that kb knows."""
    try:
        if path.lower().endswith(".zip"):
            return in_zip(path)
        if path.lower().endswith(SESSION):
            return [session(path)]
        with open(path, encoding="utf-8-sig") as file:
            return items(json.load(file), path)
    except OSError as wrong:
        raise InvalidRequest(f"{path} cannot be read: {wrong.strerror or wrong}.") from wrong
    except (ValueError, RecursionError, zipfile.BadZipFile) as wrong:
        raise InvalidRequest(f"{path} cannot be understood: {wrong}.") from wrong


def session(path: str) -> Conversation:
    with open(path, encoding="utf-8-sig", errors="replace") as file:  # its last line may end within a letter
        found = claude.session(file, os.path.splitext(os.path.basename(path))[0])
    if found is None:
        raise InvalidRequest(f"{path} is no session of Claude Code. To add it as a document: kb add {path}")
    return found


def in_zip(path: str) -> list[Item]:
    with zipfile.ZipFile(path) as archive:
        names = sorted(name for name in archive.namelist() if CONVERSATIONS.fullmatch(name))
        if not names:
            raise InvalidRequest(f"{path} is no {KNOWN[3:]}: it holds no conversations.json.")
        return [item for name in names for item in items(json.loads(archive.read(name)), path)]


def items(found: Any, path: str) -> list[Item]:
    """The conversations or memories of an export, by what it looks like."""
    listed = found.get("conversations") if isinstance(found, dict) and "conversations" in found else found
    if chatgpt.is_one(found) or claude.is_one(found):
        listed = [found]
    if isinstance(listed, list):
        if any(map(chatgpt.is_one, listed)):
            return [made(chatgpt.conversation, item, number) for number, item in enumerate(listed, 1)]
        if any(map(claude.is_one, listed)):
            return [made(claude.conversation, item, number) for number, item in enumerate(listed, 1)]
    remembered = mem0.memories(found)
    if remembered is None:
        raise InvalidRequest(f"{path} is not {KNOWN}. To add it as a document: kb add {path}")
    return [made(mem0.memory, item, number) for number, item in enumerate(remembered, 1)]


def made(make: Callable[[Json], Item], item: Any, number: int) -> Item:
    """One item of an export; one that is not as it should be does not fail the others."""
    try:
        return make(item)
    except (TypeError, AttributeError, KeyError, ValueError) as wrong:
        given = item.get("title") or item.get("name") if isinstance(item, dict) else None
        return Broken(f"item {number}" + (f" ({given})" if isinstance(given, str) else ""), str(wrong))
