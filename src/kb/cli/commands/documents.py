"""`kb get`, `kb list`, `kb tag`, `kb rm`: what is in the knowledge base, and small changes to it."""

import argparse
import sys
from typing import TYPE_CHECKING

from kb.cli.options import Commands, add_tags, command, connect, print_json, split_tags
from kb.core.errors import InvalidRequest, KBError
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

GET_EXAMPLES = """
kb get 42
kb get 42 --first-chunk 10 --max-chunks 5 --json
"""
LIST_EXAMPLES = """
kb list
kb list --tags work --type pdf --sort size --limit 20
"""
TAG_EXAMPLES = """
kb tag
kb tag 42 --add work,2026 --remove draft
"""
RM_EXAMPLES = """
kb rm 42
kb rm 42 43 --yes
"""
DECLINED = 1


def register(commands: Commands) -> None:
    parser = command(commands, "get", get, GET_EXAMPLES)
    parser.add_argument("id", metavar="ID", help="number or uid of the document")
    parser.add_argument("--first-chunk", type=int, metavar="N", help="first passage to show, counted from 0")
    parser.add_argument("--max-chunks", type=int, metavar="N", help="how many passages at most")

    parser = command(commands, "list", list_documents, LIST_EXAMPLES)
    add_tags(parser, "only documents that have all of these tags; repeatable, separated by commas")
    parser.add_argument("--type", dest="doc_type", metavar="TYPE", help="only this type, such as note or pdf")
    parser.add_argument("--source-path", metavar="PATH", help="only the document that came from this path")
    parser.add_argument("--sort", metavar="KEY", help="recent (default), created, filename or size")
    parser.add_argument("--order", metavar="ORDER", help="asc or desc (default: what suits the key)")
    parser.add_argument("--limit", type=int, metavar="N", help="how many at most, 1 to 1000 (default 100)")
    parser.add_argument("--offset", type=int, metavar="N", help="how many to leave out at the start")

    parser = command(commands, "tag", tag, TAG_EXAMPLES)
    parser.add_argument("id", metavar="ID", nargs="?", help="number or uid; without it, all tags are listed")
    for name, text in (("--add", "tags to add"), ("--remove", "tags to take away")):
        parser.add_argument(
            name, metavar="TAGS", type=split_tags, action="extend", help=f"{text}; repeatable, separated by commas"
        )

    parser = command(commands, "rm", remove, RM_EXAMPLES)
    parser.add_argument("ids", metavar="ID", nargs="+", help="number or uid of a document")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def get(args: argparse.Namespace) -> int:
    document = connect().document(args.id, first_chunk=args.first_chunk, max_chunks=args.max_chunks)
    if args.json:
        print_json(document)
    else:
        _show(document)
    return 0


def _show(document: Json) -> None:
    from kb.cli.commands.search import citation
    from kb.cli.screen import Screen, one_line
    from kb.core.sizes import readable_size

    screen = Screen(sys.stdout)
    screen.say(screen.style(one_line(document["title"]), "bold"))
    facts = {
        "id": f"{document['id']} ({document['uid']})",
        "type": f"{document['doc_type']}, {document['media_type']}, {readable_size(document['size_bytes'])}",
        "from": document["source_path"] or document["filename"],
        "tags": ", ".join(document["tags"]),
        "version": document["version"],
        "created": document["created_at"],
        "updated": document["updated_at"],
        "passages": document["chunk_count"],
    }
    for name, value in facts.items():
        if value not in (None, ""):
            screen.say(f"  {name:<9} {one_line(value)}")
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
        source_path=args.source_path,
        tags=args.tags or (),
        doc_type=args.doc_type,
        sort=args.sort,
        order=args.order,
        limit=args.limit,
        offset=args.offset,
    )
    if args.json:
        print_json(answer)
        return 0
    from kb.cli.screen import Screen

    screen = Screen(sys.stdout)
    screen.table(
        ("ID", "TYPE", "CHANGED", "TAGS", "TITLE"),
        [
            (d["id"], d["doc_type"], d["updated_at"] or d["created_at"], ",".join(d["tags"]), d["title"])
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


def remove(args: argparse.Namespace) -> int:
    client = connect()
    if not args.yes:
        # Look up all documents before the question: a wrong number deletes nothing.
        doomed = [client.document(document_id, max_chunks=0) for document_id in args.ids]
        if not _agreed(doomed):
            print("Nothing was deleted.", file=sys.stderr)
            return DECLINED
    if len(args.ids) == 1:
        removed = client.delete_document(args.ids[0])
        if args.json:
            print_json(removed)
        else:
            _tell_removed(removed)
        return 0
    return _remove_all(client, args)


def _remove_all(client: "SocketClient", args: argparse.Namespace) -> int:
    """Delete one document after the other; a failure does not stop the rest."""
    from kb.cli.screen import one_line

    answers, code = [], 0
    for document_id in args.ids:
        try:
            answers.append(client.delete_document(document_id))
            if not args.json:
                _tell_removed(answers[-1])
        except KBError as error:
            answers.append(error.body())
            code = code or error.exit_code
            if not args.json:
                print(f"kb: {one_line(error.message)}", file=sys.stderr)
    if args.json:
        print_json(answers)
    return code


def _tell_removed(removed: Json) -> None:
    from kb.cli.screen import plural

    print(f"Deleted document {removed['document_id']} ({plural(removed['chunks_removed'], 'passage')}).")


def _agreed(documents: list[Json]) -> bool:
    from kb.cli.screen import one_line, plural

    if not sys.stdin.isatty():
        raise InvalidRequest("Deleting asks first, and nobody is there to answer: say --yes.")
    for document in documents:
        passages = plural(document["chunk_count"], "passage")
        print(one_line(f"{document['id']}  {document['title']} ({passages})"), file=sys.stderr)
    print("Delete for good? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
