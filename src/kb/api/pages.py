"""What lies at the root: liveness, the page, the list of routes. No data, and nothing from any other host."""

from html import escape
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import HTMLResponse, PlainTextResponse

from kb import __version__
from kb.api.dependencies import KEY, errors

router = APIRouter()

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
}


@router.get("/health", tags=["state"], responses={403: errors()[403]})
async def health() -> dict[str, str]:
    """Whether the engine is alive. Needs no key."""
    return {"status": "ok", "version": __version__}


@router.get("/metrics", tags=["state"], response_class=PlainTextResponse, responses=errors(), dependencies=[KEY])
def metrics(request: Request) -> PlainTextResponse:
    """Prometheus metrics; their names start with `kb_`."""
    return PlainTextResponse(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


@router.get("/", include_in_schema=False)
async def page() -> HTMLResponse:
    text = files("kb.web").joinpath("index.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace("{version}", __version__), headers=HEADERS)


@router.get("/docs", include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """The routes, written out here: the usual viewers load their code from elsewhere."""
    text = files("kb.web").joinpath("docs.html").read_text(encoding="utf-8")
    return HTMLResponse(text.replace("{routes}", route_list(request.app.openapi())), headers=HEADERS)


def route_list(openapi: dict[str, Any]) -> str:
    rows = [
        f"<tr><td>{method.upper()}<td><code>{escape(path)}</code><td>{escape(about.get('description', ''))}"
        for path, methods in openapi["paths"].items()
        for method, about in methods.items()
    ]
    return "\n".join(rows)
