"""`kb addnote` and `kb updatenote`: text in, text replaced."""

import argparse

from kb.cli.options import Commands, add_no_wait, add_replacing, add_tags, command, connect, print_json, text_or_stdin

ADD_EXAMPLES = """
kb addnote "The router is in the hall cupboard" --tags home,network
kb addnote - --title "Minutes of May" < minutes.md
"""
UPDATE_EXAMPLES = """
kb updatenote 42 "The router is in the attic now"
kb updatenote 42 - --expected-version 3 < note.md
"""
TOLD = {
    "added": "Added as document {id}.",
    "updated": "Updated document {id}.",
    "unchanged": "Already known as document {id}.",
    "kept": "Document {id} was edited in kb since and is left as it is; --force replaces it.",
}


def register(commands: Commands) -> None:
    parser = command(commands, "addnote", add_note, ADD_EXAMPLES)
    parser.add_argument("text", metavar="TEXT", help="the note; - reads standard input")
    parser.add_argument("--title", metavar="TITLE", help="its title (default: its first line)")
    add_tags(parser, "tags of the note; repeatable, separated by commas")
    parser.add_argument("--source-path", metavar="PATH", help="its identity: the same path again updates the same note")
    add_replacing(parser)
    add_no_wait(parser)

    parser = command(commands, "updatenote", update_note, UPDATE_EXAMPLES)
    parser.add_argument("id", metavar="ID", help="number or uid of the note")
    parser.add_argument("text", metavar="TEXT", help="the new text; - reads standard input")
    parser.add_argument(
        "--expected-version", type=int, metavar="N", help="refuse if somebody else has changed the note since"
    )


def add_note(args: argparse.Namespace) -> int:
    from kb.cli.follow import WAIT_SECONDS, exit_code, followed

    client = connect()
    accepted = client.add_note(
        text_or_stdin(args.text),
        title=args.title,
        tags=args.tags,
        source_path=args.source_path,
        replace_tags=args.replace_tags or None,
        force=args.force or None,
        wait=0 if args.no_wait else WAIT_SECONDS,
    )
    answer = accepted if args.no_wait else followed(client, accepted)
    if args.json:
        print_json(answer)
    elif answer["status"] == "completed":
        print(TOLD[answer["outcome"]].format(id=answer["document_id"]))
    elif args.no_wait:
        print(f"Accepted as job {answer['job_id']}; follow it with: kb jobs {answer['job_id']}")
    else:
        _complain(answer)
    return exit_code(answer)


def _complain(answer: dict[str, object]) -> None:
    import sys

    from kb.cli.follow import reason
    from kb.cli.screen import one_line

    print(f"kb: {one_line(reason(answer))}", file=sys.stderr)


def update_note(args: argparse.Namespace) -> int:
    document = connect().update_note(args.id, text_or_stdin(args.text), expected_version=args.expected_version)
    if args.json:
        print_json(document)
    else:
        print(f"Note {document['id']} is now version {document['version']}.")
    return 0
