"""What lies at the root: liveness, metrics, the list of routes, and the page with its files. None of the page's own
files holds data, so they need no key; what they show, they ask of the REST API.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from kb import __version__
from kb.api.dependencies import KEY, errors
from kb.core.errors import NotFound

router = APIRouter()

# Nothing but files of this engine runs, and nothing is sent anywhere else. Trusted Types turn text that reaches a
# place where HTML is parsed into an error.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}
KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
STATIC = "/static/"
LISTS = ("/documents", "/jobs", "/tags", "/duplicates", "/folders", "/trash")
VIEWS = ("/", "/d/{id}", "/n/{id}", *LISTS, "/system", "/connect")
VIEW_PATHS = re.compile("|".join(view.replace("{id}", "[^/]+") for view in VIEWS))


def is_open(path: str) -> bool:
    """Whether a path needs no key: liveness, the page and its files."""
    return path == "/health" or path.startswith(STATIC) or VIEW_PATHS.fullmatch(path) is not None


@dataclass(frozen=True)
class StaticFile:
    content: bytes
    kind: str
    etag: str


@router.get("/health", tags=["state"], responses={403: errors()[403]})
async def health(request: Request) -> JSONResponse:
    """Whether the engine is alive; 503 when it is about to stop, and with `?ready` while it cannot search yet.

    Needs no key.
    """
    state = request.app.state.engine.presence.state
    away = state == "draining" or (state == "starting" and "ready" in request.query_params)
    return JSONResponse({"status": state if away else "ok", "version": __version__}, 503 if away else 200)


@router.get("/metrics", tags=["state"], response_class=PlainTextResponse, responses=errors(), dependencies=[KEY])
def metrics(request: Request) -> PlainTextResponse:
    """Prometheus metrics; their names start with `kb_`."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """The list of routes. The usual viewers load code from other hosts, so kb writes its own page."""
    text = files("kb.web").joinpath("docs.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace("{routes}", route_list(request.app.openapi())), headers=HEADERS)


def route_list(openapi: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(about.get('description', ''))}"
        for path, methods in openapi["paths"].items()
        for method, about in methods.items()
    ]
    return "\n".join(rows)


@router.get(STATIC + "{path:path}", include_in_schema=False)
async def static(request: Request, path: str) -> Response:
    """A file of the page. Below its edition, it never changes, so a browser need not ask again."""
    first, _, rest = path.partition("/")
    fixed = first == edition()
    file = static_files().get(rest if fixed else path)
    if file is None:
        raise NotFound(f"The page has no file {path[:100]!r}.")
    headers = HEADERS | {"ETag": file.etag} | (FOR_EVER if fixed else {})
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


async def page() -> HTMLResponse:
    """The page; its script shows the view that the path names."""
    return HTMLResponse(page_html(), headers=HEADERS)


for _view in VIEWS:
    router.add_api_route(_view, page, include_in_schema=False)


@cache
def page_html() -> str:
    """index.html, which names every script: a browser then loads them side by side, not one import after another."""
    scripts = sorted(path for path in static_files() if path.endswith(".js"))
    links = "\n  ".join(f'<link rel="modulepreload" href="{STATIC}{path}">' for path in scripts)
    text = files("kb.web").joinpath("index.html").read_text(encoding="utf-8").replace("{scripts}", links)
    return text.replace(STATIC, f"{STATIC}{edition()}/")


@cache
def edition() -> str:
    """A name for the files as they are: it changes when one of them does."""
    return hashlib.sha256("".join(static_files()[path].etag for path in sorted(static_files())).encode()).hexdigest()[
        :16
    ]


@cache
def static_files() -> dict[str, StaticFile]:
    """The files of the page by their path below /static."""
    found = {}
    for path, file in _walk(files("kb.web")):
        suffix = path[path.rfind(".") :]
        if suffix in KINDS:
            content = file.read_bytes()
            found[path] = StaticFile(content, KINDS[suffix], f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        if entry.is_dir():
            yield from _walk(entry, f"{path}/")
        else:
            yield path, entry
