"""One error shape for everything: our errors, the framework's, and what does not fit a schema."""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from kb.core.errors import InvalidRequest, KBError, MethodNotAllowed, NotFound, TooLarge
from kb.http.guard import refusal

Handler = Callable[[Request, Exception], Awaitable[Response]]


def install(app: FastAPI) -> None:
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.add_exception_handler(Exception, unexpected)


async def ours(_: Request, error: Exception) -> Response:
    assert isinstance(error, KBError)
    return refusal(error)


async def invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError | ValidationError)
    framed = isinstance(error, RequestValidationError)
    problems = [
        {"field": field_name(problem, framed=framed), "problem": problem["msg"].removeprefix("Value error, ")}
        for problem in error.errors()
    ]
    message = "; ".join(f"{p['field']}: {p['problem']}" if p["field"] else p["problem"] for p in problems[:5])
    return refusal(InvalidRequest(f"The request is not valid: {message.rstrip('.')}.", problems=problems[:20]))


async def framework(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 404:
        return refusal(NotFound(f"There is no route {request.url.path[:200]}. The routes are listed at /docs."))
    if error.status_code == 405:
        return refusal(MethodNotAllowed(f"{request.url.path[:200]} does not take {request.method}."))
    if error.status_code == 413:
        return refusal(TooLarge(str(error.detail)))
    if error.status_code < 500:
        return refusal(InvalidRequest(f"The request cannot be read: {error.detail}."))
    return refusal(KBError(str(error.detail)))


async def disconnected(_: Request, __: Exception) -> Response:
    """For the log and the metrics: the client is not there to read it."""
    return refusal(InvalidRequest("The connection ended before the whole request came. Send it again."))


async def unexpected(_: Request, __: Exception) -> Response:
    """The server logs the exception; the client gets no detail of it."""
    return refusal(KBError("Something went wrong inside the engine. Its log says what; please report it."))


def field_name(problem: Any, *, framed: bool) -> str:
    """The name of a field without the framework's prefix: `tags.0` for `body.tags.0`. Broken JSON has no field."""
    if problem["type"] == "json_invalid":
        return ""
    return ".".join(str(step) for step in problem["loc"][framed:])


HANDLERS: dict[type[Exception], Handler] = {
    KBError: ours,
    RequestValidationError: invalid,
    ValidationError: invalid,
    HTTPException: framework,
    ClientDisconnect: disconnected,
}
