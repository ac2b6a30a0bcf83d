"""The REST application: routes, error handlers, guard."""

from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Scope

from kb import __version__
from kb.api import (
    agents,
    archives,
    doctor,
    documents,
    duplicates,
    errors,
    events,
    folders,
    jobs,
    notes,
    pages,
    search,
    status,
    tickets,
    trash,
    views,
)
from kb.api.dependencies import KEY
from kb.api.follow import stream_slots
from kb.api.limits import MAX_BODY
from kb.api.metrics import Metrics
from kb.api.uploads import upload_slots
from kb.core.settings import Settings
from kb.engine.engine import Engine
from kb.http.access import Gate
from kb.http.guard import BodyLimit, Guard

PREFIX = "/api/v1"


def create_app(engine: Engine, settings: Settings) -> ASGIApp:
    app = routes()
    app.state.engine = engine
    app.state.settings = settings
    app.state.callers = agents.Callers()
    app.state.search_threads = search.search_threads()
    app.state.streams = stream_slots()
    app.state.tickets = tickets.Tickets()
    app.state.uploads = upload_slots()
    app.state.turns = views.Turns()
    app.state.metrics = Metrics(engine, streams=app.state.streams, uploads=app.state.uploads)

    def is_open(scope: Scope) -> bool:
        return scope["method"] == "GET" and (pages.is_open(scope["path"]) or app.state.tickets.opens(scope))

    def closes() -> bool:
        return engine.presence.draining

    limited = BodyLimit(app, MAX_BODY, f"{PREFIX}/jobs")
    return Guard(limited, Gate.of_engine(settings), is_open, app.state.metrics.answered, engine.id.encode(), closes)


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, without an engine behind it."""
    return routes().openapi()


def routes() -> FastAPI:
    app = FastAPI(
        title="kb",
        version=__version__,
        summary="A private knowledge base that people and AI agents share.",
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False},  # also where the environment asks for it
    )
    errors.install(app)
    for module in (
        search,
        jobs,
        documents,
        trash,
        views,
        notes,
        status,
        archives,
        doctor,
        duplicates,
        folders,
        events,
        agents,
        tickets,
    ):
        app.include_router(module.router, prefix=PREFIX, dependencies=[KEY, agents.CALLER])
    app.include_router(jobs.maintenance, prefix=PREFIX, dependencies=[KEY])
    app.include_router(pages.router)
    return app
