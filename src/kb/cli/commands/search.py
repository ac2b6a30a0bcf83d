"""`kb search`: the best passages for a question, each with its citation."""

import argparse
import re
from typing import TYPE_CHECKING, Any

from kb.cli.options import Commands, add_filters, command, connect, path_filter, print_json, text_or_stdin

if TYPE_CHECKING:
    from kb.cli.screen import Screen
    from kb.cli.transport import SocketClient

EXAMPLES = """
kb search "how are pensions revalued"
kb search router password -t home -n 3
kb search "quarterly costs" --type xlsx --after 2026-01-01 --json
kb search "signed lease" --path ~/Documents --open
kb search invoices --files | xargs ls -l
"""
# The outermost first.
PLACES = ("member", "message", "page", "slide", "sheet", "chapter", "cell", "rows", "symbol", "picture")
AS_WRITTEN = ("text/plain", "text/markdown")  # the extracted text has the lines of the file
LINE_FEED = "\n"
_WORDS = re.compile(r"\w+")
# Scripts that are written without spaces: Chinese, Japanese, Korean syllables, Thai.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\U00020000-\U0003ffff]{3,}")


def register(commands: Commands) -> None:
    parser = command(commands, "search", run, EXAMPLES)
    parser.add_argument(
        "query", metavar="QUERY", nargs="+", help="plain words, nothing is an operator; - reads standard input"
    )
    parser.add_argument("-n", "--top", type=int, metavar="N", help="how many passages at most, 1 to 100 (default 10)")
    add_filters(parser)
    parser.add_argument(
        "-m", "--mode", metavar="MODE", help="hybrid (default), fts (words only) or vector (meaning only)"
    )
    parser.add_argument("--min-score", type=float, metavar="S", help="leave out passages below it, 0 to 1")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="budget for the text of all passages")
    parser.add_argument("--explain", action="store_true", help="say how each passage was found")
    parser.add_argument(
        "-l", "--files", action="store_true", help="print only the paths of the documents, the best first"
    )
    parser.add_argument(
        "-o",
        "--open",
        action="store_true",
        help="open the original of the best result; a program in $VISUAL or $EDITOR, at its line",
    )


def run(args: argparse.Namespace) -> int:
    query = text_or_stdin(" ".join(args.query))
    client = connect()
    answer = client.search(
        query,
        top=args.top,
        tags=args.tags or (),
        doc_type=args.doc_type,
        mode=args.mode,
        min_score=args.min_score,
        source_path=path_filter(args.path),
        created_after=args.after,
        created_before=args.before,
        max_tokens=args.max_tokens,
        explain=args.explain or None,
    )
    if args.json:
        print_json(answer)
    elif args.files:
        show_files(answer)
    else:
        show(answer, client)
    if args.open:
        from kb.cli.opener import open_original

        best = answer["results"][0] if answer["results"] else None
        open_original(client, best, line_of(best, client) if best else None)
    return 0


def show(answer: dict[str, Any], client: "SocketClient") -> None:
    import sys

    from kb.cli.screen import Screen, one_line

    screen = Screen(sys.stdout)
    pattern = matching(answer["query"])
    for rank, hit in enumerate(answer["results"], 1):
        _show_hit(screen, rank, hit, pattern, client)
    notice = answer.get("notice") or (None if answer["results"] else "Nothing was found.")
    if notice:
        screen.say(screen.style(one_line(notice), "yellow"))


def show_files(answer: dict[str, Any]) -> None:
    """One path per line on stdout, for other programs; hits without a path are counted on stderr."""
    import sys

    from kb.cli.screen import escaped, one_line, plural

    hits = answer["results"]
    places = [place for hit in hits for place in (hit, *hit.get("also_in", ()))]
    paths = dict.fromkeys(place["source_path"] for place in places if place["source_path"])
    for path in paths:
        print(escaped(path))
    without = len({place["document_id"] for place in places if not place["source_path"]})
    if without:
        print(f"kb: {plural(without, 'document')} found without a path, such as notes.", file=sys.stderr)
    elif not hits:
        print(f"kb: {one_line(answer.get('notice') or 'Nothing was found.')}", file=sys.stderr)


def _show_hit(
    screen: "Screen", rank: int, hit: dict[str, Any], pattern: "re.Pattern[str] | None", client: "SocketClient"
) -> None:
    from kb.cli.moments import ago
    from kb.cli.page import passage_url
    from kb.cli.screen import cut, one_line, width

    room = screen.columns - 5
    title = cut(one_line(hit["title"]), room)
    place = cut(one_line(" · ".join(citation(hit["anchor"], hit["title"]))), room)
    # Citation and title share a line where it is wide enough.
    between = "  " if width(title) + width(place) < room else "\n   "
    linked = screen.link(screen.style(title, "bold"), passage_url(hit))
    screen.say(f"{rank}. {linked}" + (between + screen.style(place, "cyan") if place else ""))
    facts = [f"score {hit['score']:.2f}", f"document {hit['document_id']}", hit["doc_type"], ago(hit["created_at"])]
    if hit["tags"]:
        facts.append("tags " + ", ".join(hit["tags"]))
    screen.say("   " + screen.style(cut(one_line(" · ".join(facts)), room), "dim"))
    if where := place_on_disk(hit, client):
        screen.say("   " + screen.style(cut(one_line(where), room), "dim"))
    screen.passage(hit["text"], "   ", pattern)
    if named := copies(hit):
        screen.say("   " + screen.style(cut(one_line(f"also in: {named}"), room), "dim"))
    if hit.get("hidden"):
        screen.say("   " + screen.style("(hidden: the original does not show this text)", "yellow"))
    if hit.get("truncated"):
        screen.say("   " + screen.style("(cut to fit --max-tokens)", "dim"))
    if hit.get("explain"):
        screen.say("   " + screen.style(one_line(explained(hit["explain"])), "dim"))
    screen.say()


def place_on_disk(hit: dict[str, Any], client: "SocketClient") -> str | None:
    """The path that a hit came from; of a file that is kept as it is written, with the line: `notes/home.md:12`."""
    path: str | None = hit["source_path"]
    line = line_of(hit, client) if path else None
    return f"{path}:{line}" if line else path


def line_of(hit: dict[str, Any], client: "SocketClient") -> int | None:
    """The line that a hit begins in, of a file that is kept as it is written."""
    start = hit["anchor"].get("start")
    if start is None or hit["doc_type"] == "note" or hit["media_type"] not in AS_WRITTEN:
        return None
    before: str = client.text(hit["document_id"], end=start)["text"]
    return before.count(LINE_FEED) + 1


def citation(anchor: dict[str, Any], title: str = "") -> list[str]:
    """Where a passage stands, in words: page 3, sheet Costs, cell 7, the heading path below the title, metadata."""
    named = [f"{part} {anchor[part]}" for part in PLACES if anchor.get(part)]
    heading = "" if anchor.get("symbol") else anchor.get("heading") or ""  # a symbol names more than its heading
    if title and (heading == title or heading.startswith(f"{title} > ")):
        heading = heading[len(title) :].removeprefix(" > ")
    return [*named, *([heading] if heading else []), *(["metadata"] if anchor.get("metadata") else [])]


def copies(hit: dict[str, Any]) -> str:
    """Where else the same text stands; in the hit's own document, without its name."""
    named = []
    for copy in hit.get("also_in", ()):
        own = copy["document_id"] == hit["document_id"]
        place = " · ".join(citation(copy["anchor"], copy["title"]))
        name = "this document" if own else f"{copy['filename'] or copy['title']} (document {copy['document_id']})"
        named.append(f"{name}, {place}" if place else name)
    if more := hit.get("also_in_more"):
        named.append(f"{more} more")
    return "; ".join(dict.fromkeys(named))


def explained(explain: dict[str, Any]) -> str:
    legs = [
        f"{name} rank {leg['rank']} (score {leg['score']:.3f})"
        for name, leg in (("words", explain.get("fts")), ("meaning", explain.get("vector")))
        if leg and leg["rank"]
    ]
    terms = ", ".join(explain.get("matched_terms") or [])
    return "; ".join([*legs, *([f"matched {terms}"] if terms else [])])


def matching(query: str) -> "re.Pattern[str] | None":
    """A pattern of the query's words, with endings; short words only if there are no longer ones."""
    found = [part for word in _WORDS.findall(query) for part in _parts(word)]
    words = sorted(set(found), key=len, reverse=True)
    telling = [word for word in words if len(word) > 3 or not word.islower() or not word.isascii()] or words
    if not telling:
        return None
    parts = [rf"\b{re.escape(word)}\w{{0,3}}\b" if word.isascii() else re.escape(word) for word in telling]
    return re.compile("|".join(parts), re.IGNORECASE)


def _parts(word: str) -> list[str]:
    """The word; in a script without spaces, which writes phrases as one word, each pair of characters."""
    if _UNSPACED.fullmatch(word):
        return [word, *(word[at : at + 2] for at in range(len(word) - 1))]
    return [word]
