"""Links as they are written in Markdown: `[[Note]]`, `[[folder/Note#Heading|shown]]`, `![[embed]]`, `[x](other.md)`.

Every pattern is bounded and cannot backtrack far: the text may be hostile.
"""

import re
from collections.abc import Iterator
from unicodedata import normalize
from urllib.parse import unquote

MOST = 10_000  # different targets of one document that are kept
LONGEST = 1000  # characters of a target
LONGEST_NAME = 250  # characters that are compared, so that an index can hold them

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"`[^`\n]{1,1000}`")
_LINK = re.compile(
    r"(?<!\\)\[\[(?P<wiki>[^\[\]|\n]{1,1000})(?:\|[^\[\]\n]{0,1000})?\]\]"
    r"|(?<!\\)\[[^\[\]\n]{0,1000}\]"
    r"\((?:<(?P<angled>[^<>\n]{1,1000})>|(?P<plain>[^\s<>()]{1,1000}))(?:[ \t]{1,8}[^()\n]{0,1000})?\)"
    r"|^ {0,3}\[[^\[\]\n]{1,1000}\]:[ \t]{0,8}(?P<defined>[^\s<>]{1,1000})",
    re.MULTILINE,
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_ALIASES = re.compile(r"^alias(?:es)?:[ \t]*([^\n]*)\n?((?:[ \t]*-[ \t][^\n]*\n?)*)", re.MULTILINE | re.IGNORECASE)
_SUFFIX = re.compile(r"\.(?:md|markdown)\Z", re.IGNORECASE)


def targets(text: str) -> list[str]:
    """What the text links to inside of the knowledge base, as written, each once."""
    found: dict[str, None] = {}
    for match in _LINK.finditer(_without_code(text)):
        wiki = match["wiki"]
        target = (wiki or unquote(match["angled"] or match["plain"] or match["defined"])).strip().rstrip("\\")
        if path_of(target) and (wiki or not _SCHEME.match(target)) and len(target) <= LONGEST:
            found[target] = None
            if len(found) == MOST:
                break
    return list(found)


def path_of(target: str) -> str:
    """The path of a target, without heading (`#`) and block (`^`)."""
    return re.split(r"[#^]", target, maxsplit=1)[0].strip()


def folded(path: str) -> str:
    """A path or a name as it is compared: without `.md`, in lower case, in one form of Unicode."""
    return normalize("NFC", _SUFFIX.sub("", path.replace("\\", "/"))).casefold()


def name_of(path: str) -> str:
    """The last part of a path, as it is compared."""
    return folded(path).rstrip("/").rpartition("/")[2][:LONGEST_NAME]


def aliases(text: str) -> list[str]:
    """Other names that the front matter gives a note: `aliases: [a, b]`, a list of lines, or one name."""
    front = _FRONT_MATTER.match(text[:70_000])
    if front is None or (found := _ALIASES.search(front[1])) is None:
        return []
    one, lines = found[1].strip(), [line.strip().removeprefix("-") for line in found[2].splitlines()]
    given = one[1:-1].split(",") if one.startswith("[") and one.endswith("]") else [one]
    return [name for part in (*given, *lines) if (name := part.strip().strip("\"'").strip())]


def _without_code(text: str) -> str:
    """The text with code left out: what looks like a link in there is none."""
    return "\n".join(_CODE.sub("", line) for line in _outside_fences(text))


def _outside_fences(text: str) -> Iterator[str]:
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not fence and mark is not None:
            fence = mark[1]
        elif fence and mark is not None and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = ""
        elif not fence:
            yield line
