"""The page's files: open to all, and bound by a policy that lets nothing else run."""

import gzip
import re
from pathlib import Path

import pytest

import kb.web
from support import Http, StartEngine

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
WEB = Path(kb.web.__path__[0])
VIEWS = ("/", "/d/1", "/n/new", "/n/1", "/documents", "/jobs", "/tags", "/duplicates", "/trash", "/system", "/connect")


@pytest.mark.parametrize("path", [*VIEWS, "/docs"])
def test_every_html_answer_carries_the_policy(http: Http, path: str) -> None:
    reply = http("GET", path)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"] == POLICY
    assert reply.headers["x-content-type-options"] == "nosniff"


def test_the_page_and_its_files_need_no_key_and_nothing_else_is_open(start_engine: StartEngine) -> None:
    http = Http(start_engine(KB_API_KEY="secret").url)
    for path in (*VIEWS, "/static/style.css", "/static/app/main.js"):
        assert http("GET", path).status == 200, path
    for path in ("/docs", "/openapi.json", "/metrics", "/api/v1/status", "/d/1/2", "/static/../guard.py"):
        assert http("GET", path).status in (401, 404), path
    assert http("POST", "/documents").status == 401


def test_a_file_is_sent_once(http: Http) -> None:
    first = http("GET", "/static/app/main.js")
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    assert http("GET", "/static/app/main.js", If_None_Match=first.headers["etag"]).status == 304


@pytest.mark.parametrize(
    "path", ["vendor/vendor.toml", "index.html", "../api/app.py", "%2e%2e/api/app.py", "nosuch.js", ""]
)
def test_nothing_but_the_files_of_the_page_is_served(http: Http, path: str) -> None:
    assert http("GET", f"/static/{path}").status == 404


def test_a_browser_that_knows_a_file_does_not_ask_for_it_again(http: Http) -> None:
    address = re.findall(r'src="(/static/[^"]+)"', http("GET", "/").body.decode())[0]
    reply = http("GET", address)
    assert (reply.status, reply.headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert http("GET", "/static/app/main.js").headers["cache-control"] == "no-cache"
    assert http("GET", "/static/0123456789abcdef/app/main.js").status == 404


def test_every_script_is_named_in_the_page_so_that_they_load_side_by_side(http: Http) -> None:
    text = http("GET", "/").body.decode()
    named = re.findall(r'<link rel="modulepreload" href="/static/[0-9a-f]{16}/([^"]+)">', text)
    assert sorted(named) == sorted(str(path.relative_to(WEB)) for path in WEB.rglob("*.js"))


def test_own_scripts_stay_small() -> None:
    own = b"".join(path.read_bytes() for path in sorted(WEB.joinpath("app").rglob("*.js")))
    assert len(gzip.compress(own)) <= 72 * 1024


def test_no_script_parses_html_or_names_another_host() -> None:
    for path in WEB.joinpath("app").rglob("*.js"):
        text = path.read_text()
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|https?://", text), path
