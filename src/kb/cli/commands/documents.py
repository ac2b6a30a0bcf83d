"""`kb get`, `kb list`, `kb tag`: what is in the knowledge base, and its tags."""

import argparse
import sys

from kb.cli.options import Commands, add_filters, command, connect, path_filter, print_json, split_tags
from kb.core.errors import InvalidRequest
from kb.core.types import Json

GET_EXAMPLES = """
kb get 42
kb get 42 --first-chunk 10 --max-chunks 5 --json
"""
LIST_EXAMPLES = """
kb list
kb list --tags work --type pdf --sort size -n 20
kb list --path ~/Documents --after 2026-01-01
"""
TAG_EXAMPLES = """
kb tag
kb tag 42 --add work,2026 --remove draft
"""


def register(commands: Commands) -> None:
    parser = command(commands, "get", get, GET_EXAMPLES)
    parser.add_argument("id", metavar="ID", help="number or uid of the document")
    parser.add_argument("--first-chunk", type=int, metavar="N", help="first passage to show, counted from 0")
    parser.add_argument("--max-chunks", type=int, metavar="N", help="how many passages at most")

    parser = command(commands, "list", list_documents, LIST_EXAMPLES)
    add_filters(parser)
    parser.add_argument("--source-path", metavar="PATH", help="as --path, but exactly as it is stored")
    parser.add_argument("--parent", type=int, metavar="ID", help="only what was found in this archive, mail or mailbox")
    parser.add_argument("--sort", metavar="KEY", help="recent (default), created, filename or size")
    parser.add_argument("--order", metavar="ORDER", help="asc or desc (default: what suits the key)")
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="how many at most, 1 to 1000 (default 100)")
    parser.add_argument("--offset", type=int, metavar="N", help="how many to leave out at the start")

    parser = command(commands, "tag", tag, TAG_EXAMPLES)
    parser.add_argument("id", metavar="ID", nargs="?", help="number or uid; without it, all tags are listed")
    for name, text in (("--add", "tags to add"), ("--remove", "tags to take away")):
        parser.add_argument(
            name, metavar="TAGS", type=split_tags, action="extend", help=f"{text}; repeatable, separated by commas"
        )


def get(args: argparse.Namespace) -> int:
    client = connect()
    document = client.document(args.id, first_chunk=args.first_chunk, max_chunks=args.max_chunks)
    if args.json:
        print_json(document)
    else:
        _show(document, client.links(document["id"]))
    return 0


def _show(document: Json, links: Json) -> None:
    from kb.cli.commands.search import citation
    from kb.cli.screen import Screen, one_line
    from kb.core.sizes import readable_size

    screen = Screen(sys.stdout)
    screen.say(screen.style(one_line(document["title"]), "bold"))
    facts = {
        "id": f"{document['id']} ({document['uid']})",
        "type": f"{document['doc_type']}, {document['media_type']}, {readable_size(document['size_bytes'])}",
        "from": document["source_path"] or document["filename"],
        "found in": f"document {document['parent']}: {document['member']}" if "parent" in document else None,
        "tags": ", ".join(document["tags"]),
        "version": document["version"],
        "created": document["created_at"],
        "updated": document["updated_at"],
        "passages": document["chunk_count"],
    }
    for name, value in facts.items():
        if value not in (None, ""):
            screen.say(f"  {name:<9} {one_line(value)}")
    for name, found in (("links to", links["links"]), ("linked by", links["backlinks"])):
        for one in found:
            led = f"{one['document_id']} {one['title']}" if one["document_id"] else "nothing here has this name"
            screen.say(f"  {name:<9} {one_line(led)} {screen.style(one_line('[[' + one['target'] + ']]'), 'dim')}")
    for entry in document["ledger"]:
        if entry["state"] not in ("ok", "ocr"):
            why = f": {entry['reason']}" if entry["reason"] else ""
            screen.say(screen.style(f"  {one_line(entry['part'] + ' ' + entry['state'] + why)}", "yellow"))
    if document["doc_type"] == "note" and document.get("text"):
        screen.say()
        screen.passage(document["text"], "")
        return
    for chunk in document.get("chunks") or []:
        place = " · ".join([f"passage {chunk['index']}", *citation(chunk["anchor"])])
        screen.say()
        screen.say(screen.style(one_line(place), "cyan"))
        screen.passage(chunk["text"], "")


def list_documents(args: argparse.Namespace) -> int:
    answer = connect().documents(
        source_path=args.source_path or path_filter(args.path),
        created_after=args.after,
        created_before=args.before,
        tags=args.tags or (),
        doc_type=args.doc_type,
        parent=args.parent,
        sort=args.sort,
        order=args.order,
        limit=args.limit,
        offset=args.offset,
    )
    if args.json:
        print_json(answer)
        return 0
    from kb.cli.moments import ago
    from kb.cli.screen import Screen

    screen = Screen(sys.stdout)
    when = ago if screen.terminal else str  # another program gets exact times
    screen.table(
        ("ID", "TYPE", "CHANGED", "TAGS", "TITLE"),
        [
            (d["id"], d["doc_type"], when(d["updated_at"] or d["created_at"]), ",".join(d["tags"]), d["title"])
            for d in answer["documents"]
        ],
    )
    tell_rest(len(answer["documents"]), answer["offset"], answer["total"], "document")
    return 0


def tell_rest(shown: int, offset: int, total: int, noun: str) -> None:
    """Say on stderr that the list is empty or not complete."""
    if not total:
        print(f"There are no {noun}s that match.", file=sys.stderr)
    elif shown < total:
        print(f"{shown} of {total} {noun}s, from {offset}; more with --limit and --offset.", file=sys.stderr)


def tag(args: argparse.Namespace) -> int:
    if args.id is None:
        return _list_tags(args)
    client = connect()
    if args.add or args.remove:
        document = client.edit_tags(args.id, add=args.add or (), remove=args.remove or ())
    else:
        document = client.document(args.id, max_chunks=0)
    if args.json:
        print_json(document)
    else:
        from kb.cli.screen import one_line

        print(one_line(f"document {document['id']}: {', '.join(document['tags']) or 'no tags'}"))
    return 0


def _list_tags(args: argparse.Namespace) -> int:
    if args.add or args.remove:
        raise InvalidRequest("--add and --remove need the ID of a document; see: kb tag --help")
    answer = connect().tags()
    if args.json:
        print_json(answer)
        return 0
    from kb.cli.screen import Screen

    Screen(sys.stdout).table(("DOCUMENTS", "TAG"), [(t["documents"], t["tag"]) for t in answer["tags"]])
    return 0
