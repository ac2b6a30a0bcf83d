"""`kb open`: the web page in a browser, at a document or a question."""

import argparse

from kb.cli.options import Commands, command, connect

EXAMPLES = """
kb open
kb open 12
kb open how are pensions revalued
"""


def register(commands: Commands) -> None:
    parser = command(commands, "open", run, EXAMPLES, json=False)
    parser.add_argument("what", metavar="ID | QUERY", nargs="*", help="a document's id, or a question")


def run(args: argparse.Namespace) -> int:
    from urllib.parse import quote

    from kb.cli.opener import open_address
    from kb.cli.page import page_url
    from kb.core.endpoint import place

    client = connect()
    if len(args.what) == 1 and args.what[0].isdecimal():
        client.document(args.what[0], max_chunks=0)  # says so if there is none
        url = page_url(f"/d/{args.what[0]}")
    else:
        client.status()  # says so if the engine is away
        url = page_url(f"/?q={quote(' '.join(args.what))}" if args.what else "/")
    key = place().api_key
    print(url)
    # Behind the #, so that it is sent nowhere; the page takes it out of the address at once.
    open_address(f"{url}#key={quote(key, safe='')}" if key else url, url)
    return 0
