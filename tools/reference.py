"""The reference pages, made from the code: docs/cli.md, docs/mcp.md, docs/rest.md, docs/settings.md.

And the diagram of imports in docs/architecture.md.

`python -m tools.reference` writes them; with `--check` it fails when one differs from what it would write, and shows
where. Nothing here depends on the width of a terminal or the version of Python.
"""

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kb.cli.main import build_parser
from kb.core.errors import every_error
from kb.core.settings import declared
from tools.imports import diagram

DOCS = Path(__file__).parent.parent / "docs"
NOTE = "<!-- Made by `make docs` from the code; do not edit. -->"
DIFF_LINES = 40
DIAGRAM, END_OF_DIAGRAM = "<!-- Imports, drawn by `make docs` from the code. -->", "<!-- End of imports. -->"

Schema = dict[str, Any]


def pages() -> dict[str, str]:
    """Every page by its file name."""
    from kb.api.app import openapi_document  # noqa: PLC0415 (the other pages need no engine)
    from tools.reference_mcp import mcp_page  # noqa: PLC0415 (nor the MCP server)

    return {
        "cli.md": cli_page(build_parser()),
        "mcp.md": mcp_page(),
        "rest.md": rest_page(openapi_document()),
        "settings.md": settings_page(),
        "architecture.md": with_import_diagram((DOCS / "architecture.md").read_text(encoding="utf-8")),
    }


def with_import_diagram(text: str) -> str:
    """The page with the diagram of imports drawn anew."""
    before, opening, rest = text.partition(DIAGRAM)
    _, closing, after = rest.partition(END_OF_DIAGRAM)
    return f"{before}{opening}\n{diagram()}\n{closing}{after}"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)


def cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", "\\|")


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", NOTE, *(part for part in parts if part)]) + "\n"


def settings_page() -> str:
    return page(
        "Settings",
        "Every setting is an environment variable, or a line of one file, under the same name: `KB_PORT = 8100`. The "
        "file is `~/.config/kb/config.toml` (`XDG_CONFIG_HOME` moves it), or the one that `KB_CONFIG` names; it is "
        "TOML, and a value is a text or a whole number. The environment wins over the file.",
        "`kb config` shows every setting and where its value comes from; `kb config set KB_PORT 8100` and `kb config "
        "unset KB_PORT` change the file. An empty value counts as unset; a name or a value that cannot be understood "
        "is an error that names it, and its line.",
        table(("Name", "Default", "What it does"), [(f"`{s.name}`", s.default, s.help) for s in declared()]),
    )


def error_table(*, exits: bool) -> str:
    heads = ("Code", "Exit code" if exits else "HTTP status", "Worth a retry", "What it means")
    return table(
        heads,
        [
            (
                f"`{error.code}`",
                error.exit_code if exits else error.http_status,
                "yes" if error.retryable else "no",
                error.__doc__ or "",
            )
            for error in every_error()
        ],
    )


def cli_page(parser: argparse.ArgumentParser) -> str:
    parts = [parser.description or "", table(("Command", "What it does"), command_rows(parser))]
    for command in subparsers(parser).values():
        parts += command_section(command)
    return page(
        "Command line",
        *parts,
        "## Exit codes",
        "0 when all went well, 130 after Ctrl-C; otherwise the code of the error. A file whose job failed exits 5, or "
        "1 when kb itself is to blame; of several failures the first one counts. With `--json` the error is printed "
        "as JSON on standard output, otherwise as one sentence on standard error.",
        error_table(exits=True),
    )


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def command_rows(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    return [
        (f"[`{command.prog}`](#{command.prog.replace(' ', '-')})", command.description or "")
        for command in subparsers(parser).values()
    ]


def command_section(parser: argparse.ArgumentParser) -> list[str]:
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    positional = [action for action in actions if not action.option_strings]
    usage = " ".join([f"{parser.prog} [options]", *(usage_of(action) for action in positional)])
    rows = [(f"`{usage_of(action)}`", action.help or "") for action in positional]
    rows += [
        (", ".join(f"`{option_of(name, action)}`" for name in action.option_strings), action.help or "")
        for action in actions
        if action.option_strings
    ]
    heading, _, examples = (parser.epilog or "").partition("\n")
    shown = "\n".join(line.strip() for line in examples.splitlines())
    return [
        f"## {parser.prog}",
        parser.description or "",
        f"```\n{usage}\n```",
        table(("Argument", "What it does"), rows),
        f"{heading.capitalize()}\n\n```sh\n{shown}\n```" if examples else "",
    ]


def usage_of(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    return {"+": f"{name}...", "*": f"[{name}...]", "?": f"[{name}]"}.get(str(action.nargs), name)


def option_of(name: str, action: argparse.Action) -> str:
    return name if action.nargs == 0 else f"{name} {action.metavar or action.dest.upper()}"


def rest_page(document: Schema) -> str:
    operations = [
        (f"{method.upper()} {path}", about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]
    parts = [
        "Times are ISO 8601 in UTC with `Z`. With `KB_API_KEY` set, every route but `GET /health` needs "
        "`Authorization: Bearer <key>`. Every answer carries `X-KB-Version`.",
        table(
            ("Route", "What it does"), [(f"[`{name}`](#{anchor(name)})", first(about)) for name, about in operations]
        ),
        "## Errors",
        'Every error has one shape: `{"error": {"code", "message", "retryable", "details"}}`.',
        error_table(exits=False),
        "## Routes",
    ]
    for name, about in operations:
        parts += operation_section(name, about)
    parts.append("## Shapes")
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        if schema.get("properties"):
            parts += [f"### {name}", schema.get("description", ""), field_table(schema)]
    return page("REST API", *parts)


def anchor(heading: str) -> str:
    """The link that a Markdown viewer gives a heading."""
    return "".join(char for char in heading.lower().replace(" ", "-") if char.isalnum() or char in "-_")


def first(about: Schema) -> str:
    return str(about.get("description") or about.get("summary") or "").partition("\n")[0]


def operation_section(name: str, about: Schema) -> list[str]:
    parts = [f"### {name}", str(about.get("description") or about.get("summary") or "")]
    parameters = about.get("parameters", [])
    if parameters:
        rows = [
            (f"`{p['name']}`", p["in"], *field_cells(p["schema"], required=p.get("required", False), about=p))
            for p in parameters
        ]
        parts.append(table(("Parameter", "In", "Type", "Bounds", "Default", "About"), rows))
    for kind, content in about.get("requestBody", {}).get("content", {}).items():
        parts += [f"Body, `{kind}`:", shape(content["schema"])]
    for status, answer in about.get("responses", {}).items():
        content = answer.get("content", {}).get("application/json")
        if status.startswith("2") and content:
            parts += [f"Answer, {status}:", shape(content["schema"])]
    refused = [f"{status} {answer['description']}" for status, answer in about["responses"].items() if status >= "4"]
    return [*parts, "Errors: " + "; ".join(refused) + "." if refused else ""]


def shape(schema: Schema) -> str:
    return field_table(schema) if schema.get("properties") else type_of(schema)


def field_table(schema: Schema) -> str:
    required = schema.get("required", [])
    return table(
        ("Field", "Type", "Bounds", "Default", "About"),
        [
            (f"`{name}`", *field_cells(field, required=name in required, about=field))
            for name, field in schema["properties"].items()
        ],
    )


def field_cells(schema: Schema, *, required: bool, about: Schema) -> tuple[str, str, str, str]:
    default = f"`{literal(schema['default'])}`" if "default" in schema else "required" if required else ""
    return type_of(schema), bounds_of(schema), default, about.get("description", "")


def literal(value: object) -> str:
    names: dict[object, str] = {None: "null", True: "true", False: "false"}
    return names[value] if value is None or isinstance(value, bool) else str(value)


def type_of(schema: Schema) -> str:
    """A JSON schema in a few words; a shape of its own is a link to its section."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{anchor(name)})"
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{literal(value)}`" for value in choices)
    if options := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        return " or ".join(dict.fromkeys(type_of(option) for option in options))
    return plain_type_of(schema)


def plain_type_of(schema: Schema) -> str:
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    values = schema.get("additionalProperties")
    if schema.get("type") == "object" and isinstance(values, dict) and values:
        return f"object of {type_of(values)}"
    return "file" if schema.get("format") == "binary" else str(schema.get("type", "anything"))


def bounds_of(schema: Schema) -> str:
    """What a value must keep to, also inside `anyOf` and of a list's items."""
    found = []
    for low, high, unit in (
        ("minimum", "maximum", ""),
        ("minLength", "maxLength", " character"),
        ("minItems", "maxItems", " item"),
    ):
        if low not in schema and high not in schema:
            continue
        words = {(True, True): "{} to {}", (True, False): "at least {}", (False, True): "at most {1}"}
        told = words[low in schema, high in schema].format(schema.get(low), schema.get(high))
        found.append(told + (unit and unit + "s" * (schema.get(high, schema.get(low)) != 1)))
    for option in schema.get("anyOf", []):
        found.extend(filter(None, [bounds_of(option)]))
    if "items" in schema and (each := bounds_of(schema["items"])):
        found.append(f"each {each}")
    return ", ".join(found)


def drift(made: dict[str, str], docs: Path) -> str:
    """Where the pages differ from what would be written; nothing when they agree."""
    lines: list[str] = []
    for name, text in made.items():
        path = docs / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        lines += difflib.unified_diff(
            old.splitlines(), text.splitlines(), f"docs/{name}", f"docs/{name} from the code", lineterm="", n=1
        )
    more = [f"... and {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join(lines[:DIFF_LINES] + more)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.reference", description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="fail when a page is not what would be written")
    args = parser.parse_args(argv)
    made = pages()
    if args.check:
        if difference := drift(made, DOCS):
            print(f"{difference}\n\nThe reference pages are out of date; write them with: make docs", file=sys.stderr)
            return 1
        return 0
    DOCS.mkdir(exist_ok=True)
    for name, text in made.items():
        (DOCS / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
