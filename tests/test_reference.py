"""The reference pages are made from the code and say the same as it."""

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kb.cli.commands.table import COMMANDS
from kb.cli.main import build_parser
from kb.core.errors import every_error
from kb.core.settings import declared

ROOT = Path(__file__).parent.parent
DOCUMENT = {
    "paths": {
        "/api/v1/things/{id}": {
            "get": {
                "description": "One thing.\n\nWith more about it.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "maxLength": 200}},
                    {
                        "name": "limit",
                        "in": "query",
                        "description": "How | many.",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
                    },
                    {
                        "name": "status",
                        "in": "query",
                        "schema": {"anyOf": [{"enum": ["queued", "failed"]}, {"type": "null"}], "default": None},
                    },
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}}},
                    "404": {"description": "not_found"},
                },
            },
            "post": {
                "summary": "Add",
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Thing"}},
                        "multipart/form-data": {
                            "schema": {
                                "properties": {
                                    "file": {"type": "string", "format": "binary"},
                                    "force": {"type": "boolean", "default": False},
                                },
                                "required": ["file"],
                            }
                        },
                    }
                },
                "responses": {"202": {"content": {"application/json": {"schema": {}}}}},
            },
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "description": "A thing.",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "tags": {
                        "type": "array",
                        "maxItems": 100,
                        "items": {"type": "string", "minLength": 1, "maxLength": 200},
                    },
                    "top": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, {"type": "null"}]},
                    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "kind": {"const": "thing"},
                },
            }
        }
    },
}


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_tool", ROOT / "tools" / "reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_pages_in_docs_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_page_that_drifts_is_shown_with_the_command_that_mends_it(
    reference: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(reference, "pages", lambda: {"settings.md": reference.settings_page()})
    assert reference.main(["--check"]) == 1
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    path = tmp_path / "docs" / "settings.md"
    path.write_text(path.read_text().replace("KB_PORT", "KB_PRT"))
    capsys.readouterr()
    assert reference.main(["--check"]) == 1
    shown = capsys.readouterr().err
    assert "-| `KB_PRT`" in shown
    assert "+| `KB_PORT`" in shown
    assert "make docs" in shown


def test_the_settings_page_lists_every_setting(reference: ModuleType) -> None:
    page = reference.settings_page()
    for setting in declared():
        assert f"| `{setting.name}` | {setting.default} | {setting.help} |" in page


def test_the_cli_page_has_every_command_argument_and_example(reference: ModuleType) -> None:
    page = reference.cli_page(build_parser())
    for name in COMMANDS:
        assert f"\n## kb {name}\n" in page
    for parser in reference.subparsers(build_parser()).values():
        for action in parser._actions:
            if not isinstance(action, argparse._HelpAction):
                assert action.help in page
    assert "`--tags TAGS`, `--tag TAGS`" in page
    assert "kb search [options] QUERY..." in page
    assert "```sh\nkb status\nkb status --json\n```" in page
    for error in every_error():
        assert f"| `{error.code}` | {error.exit_code} |" in page


def test_the_cli_page_does_not_depend_on_the_terminal(reference: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = reference.cli_page(build_parser())
    monkeypatch.setenv("COLUMNS", "40")
    assert reference.cli_page(build_parser()) == wide


@pytest.mark.parametrize(
    "line",
    [
        "| [`GET /api/v1/things/{id}`](#get-apiv1thingsid) | One thing. |",
        "| `id` | path | string | at most 200 characters | required |  |",
        "| `limit` | query | integer | 1 to 1000 | `100` | How \\| many. |",
        "| `status` | query | `queued`, `failed` or null |  | `null` |  |",
        "Answer, 200:\n\n[Thing](#thing)",
        "Errors: 404 not_found.",
        "Body, `multipart/form-data`:",
        "| `file` | file |  | required |  |",
        "| `force` | boolean |  | `false` |  |",
        "Answer, 202:\n\nanything",
        "### Thing\n\nA thing.",
        "| `name` | string | at least 1 character | required |  |",
        "| `tags` | list of string | at most 100 items, each 1 to 200 characters |  |  |",
        "| `top` | integer or null | 1 to 100 |  |  |",
        "| `counts` | object of integer |  |  |  |",
        "| `kind` | `thing` |  |  |  |",
        "| `invalid_request` | 422 | no |",
    ],
)
def test_the_rest_page_says_what_the_document_says(reference: ModuleType, line: str) -> None:
    assert line in reference.rest_page(DOCUMENT)


def test_the_rest_page_has_every_route_of_the_engine(reference: ModuleType) -> None:
    from kb.api.app import openapi_document

    document = openapi_document()
    page = reference.rest_page(document)
    for path, methods in document["paths"].items():
        for method in methods:
            assert f"\n### {method.upper()} {path}\n" in page
