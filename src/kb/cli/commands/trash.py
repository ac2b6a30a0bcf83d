"""`kb rm` and `kb trash`: deleting documents, and bringing them back."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from kb.cli.options import Commands, command, connect, print_json
from kb.core.errors import InvalidRequest, KBError, NotFound
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

RM_EXAMPLES = """
kb rm 42
kb rm 42 43 --yes
kb rm 42 --purge
"""
TRASH_EXAMPLES = """
kb trash
kb trash restore 42
kb trash empty
"""
DECLINED = 1
AT_ONCE = 1000  # documents in one answer


def register(commands: Commands) -> None:
    parser = command(commands, "rm", remove, RM_EXAMPLES)
    parser.add_argument("ids", metavar="ID", nargs="+", help="number or uid of a document")
    parser.add_argument("--purge", action="store_true", help="remove for good, also from the trash")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")

    parser = command(commands, "trash", trash, TRASH_EXAMPLES)
    parser.add_argument("action", metavar="ACTION", nargs="?", help="restore or empty; without it, the trash is listed")
    parser.add_argument("ids", metavar="ID", nargs="*", help="number or uid of a document to restore")
    parser.add_argument(
        "--without-path", action="store_true", help="restore without the source path, if another document has it by now"
    )
    parser.add_argument("-n", "--limit", type=int, metavar="N", help="how many at most, 1 to 1000 (default 100)")
    parser.add_argument("--offset", type=int, metavar="N", help="how many to leave out at the start")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def remove(args: argparse.Namespace) -> int:
    client = connect()
    if not args.yes:
        # Look up all documents before the question: a wrong number deletes nothing.
        doomed = [_document(client, document_id, deleted=args.purge) for document_id in args.ids]
        if not _agreed(doomed, "Delete for good?" if args.purge else "Delete?"):
            return DECLINED
    return _each(args, lambda document_id: client.delete_document(document_id, purge=args.purge or None), _tell_removed)


def trash(args: argparse.Namespace) -> int:
    client = connect()
    if args.action == "restore" and args.ids:
        without_path = args.without_path or None
        return _each(args, lambda id_: client.restore_document(id_, without_path=without_path), _tell_restored)
    if args.action == "empty" and not args.ids:
        return _empty(client, args)
    if args.action is not None:
        raise InvalidRequest("That is `kb trash`, `kb trash restore ID...` or `kb trash empty`; see: kb trash --help")
    answer = client.trash(limit=args.limit, offset=args.offset)
    if args.json:
        print_json(answer)
    else:
        _show(answer)
    return 0


def _show(answer: Json) -> None:
    from kb.cli.commands.documents import tell_rest
    from kb.cli.moments import ago, day
    from kb.cli.screen import Screen

    if not answer["total"]:
        print("The trash is empty.", file=sys.stderr)
        return
    screen = Screen(sys.stdout)
    when, until = (ago, day) if screen.terminal else (str, str)
    screen.table(
        ("ID", "TYPE", "DELETED", "UNTIL", "TITLE"),
        [
            (one["id"], one["doc_type"], when(one["deleted_at"]), until(one["expires_at"]), one["title"])
            for one in answer["documents"]
        ],
    )
    tell_rest(len(answer["documents"]), answer["offset"], answer["total"], "document")


def _empty(client: "SocketClient", args: argparse.Namespace) -> int:
    from kb.cli.screen import plural

    held = client.trash(limit=AT_ONCE)
    if not args.yes and held["total"] and not _agreed(held["documents"], f"Remove {held['total']} for good?"):
        return DECLINED
    answer = client.empty_trash(held["total"])
    if args.json:
        print_json(answer)
    else:
        print(f"Removed {plural(answer['documents_removed'], 'document')} for good.")
    return 0


def _each(args: argparse.Namespace, change: Callable[[str], Json], tell: Callable[[Json], None]) -> int:
    """Change one document after the other; a failure does not stop the rest."""
    from kb.cli.screen import one_line

    if len(args.ids) == 1:
        answer = change(args.ids[0])
        if args.json:
            print_json(answer)
        else:
            tell(answer)
        return 0
    answers, code = [], 0
    for document_id in args.ids:
        try:
            answers.append(change(document_id))
            if not args.json:
                tell(answers[-1])
        except KBError as error:
            answers.append(error.body())
            code = code or error.exit_code
            if not args.json:
                print(f"kb: {one_line(error.message)}", file=sys.stderr)
    if args.json:
        print_json(answers)
    return code


def _tell_removed(removed: Json) -> None:
    from kb.cli.moments import day
    from kb.cli.screen import plural

    number, passages = removed["document_id"], plural(removed["chunks_removed"], "passage")
    if "expires_at" not in removed:
        print(f"Deleted document {number} ({passages}) for good.")
    else:
        until = day(removed["expires_at"])
        print(f"Deleted document {number} ({passages}). Until {until}, `kb trash restore {number}` brings it back.")


def _tell_restored(document: Json) -> None:
    from kb.cli.screen import one_line

    print(one_line(f"Document {document['id']} is back: {document['title']}"))


def _document(client: "SocketClient", document_id: str, *, deleted: bool) -> Json:
    """A document; with `deleted`, one in the trash too."""
    try:
        return client.document(document_id, max_chunks=0)
    except NotFound:
        held: list[Json] = client.trash(limit=AT_ONCE)["documents"] if deleted else []
        for one in held:
            if document_id in (str(one["id"]), one["uid"]):
                return one
        raise


def _agreed(documents: list[Json], question: str) -> bool:
    from kb.cli.screen import one_line, plural

    if not sys.stdin.isatty():
        raise InvalidRequest("Deleting asks first, and nobody is there to answer: say --yes.")
    for document in documents:
        passages = plural(document["chunk_count"], "passage")
        print(one_line(f"{document['id']}  {document['title']} ({passages})"), file=sys.stderr)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("Nothing was deleted.", file=sys.stderr)
    return False
