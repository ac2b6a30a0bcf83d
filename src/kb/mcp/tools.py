"""A tool is a method of a contract: its signature and docstring are what agents see and what calls must keep to."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import anyio
from mcp_types import Tool as Listed
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from kb.core.errors import InvalidRequest
from kb.core.types import Json
from kb.mcp.arguments import understood
from kb.mcp.schema import answer_schema, arguments_schema

Run = Callable[..., Awaitable[Json]]
Progress = Callable[[float, float, str], Awaitable[None]]


class Refusal(Exception):
    """A contract's own answer to what it cannot do, where its shape is not that of the engine's errors."""

    def __init__(self, answer: Json) -> None:
        super().__init__(answer.get("message"))
        self.answer = answer


async def _unreported(_progress: float, _total: float, _message: str) -> None:
    """Report progress to no client."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that waits for the answer of a call."""

    base_url: str = ""  # where this server is, as the caller knows it
    wants_progress: bool = False
    progress: Progress = _unreported
    gone: anyio.Event = field(default_factory=anyio.Event)  # set when the client disconnects


class Shape:
    """Marks a tool's return type with what its answer looks like: `Annotated[Json, Shape(Document, DocumentList)]`.

    `without` names fields that the tool never asks the engine for.
    """

    def __init__(self, *shapes: Any, required: tuple[str, ...] = (), without: tuple[str, ...] = ()) -> None:
        self.schema = answer_schema(*shapes, required=required)
        for name in without:
            del self.schema["properties"][name]


def tool(
    title: str, *, name: str = "", reads: bool = False, destroys: bool = False, idempotent: bool = False
) -> Callable[[Run], Run]:
    """Make a method a tool. It reads, adds, or destroys; doing it twice may be the same as once."""
    annotations = ToolAnnotations(
        title=title,
        read_only_hint=reads,
        destructive_hint=destroys,
        idempotent_hint=idempotent or reads,
        open_world_hint=False,
    )

    def mark(method: Run) -> Run:
        method.__dict__["tool"] = (name, annotations)
        return method

    return mark


@dataclass(frozen=True, slots=True)
class Tool:
    listed: Listed
    run: Run
    model: type[BaseModel]
    caller: str | None  # the parameter that takes the caller, if there is one

    @classmethod
    def of(cls, method: Run) -> "Tool":
        name, annotations = method.__dict__["tool"]
        hints = get_type_hints(method, include_extras=True)
        parameters = list(inspect.signature(method).parameters.values())[1:]  # after self
        fields: dict[str, Any] = {
            p.name: (hints[p.name], ... if p.default is p.empty else p.default)
            for p in parameters
            if hints[p.name] is not Caller
        }
        model = create_model("Arguments", __config__=ConfigDict(extra="forbid", strict=True), **fields)
        listed = Listed(
            name=name or method.__name__,
            title=annotations.title,
            description=inspect.getdoc(method),
            input_schema=arguments_schema(model.model_json_schema()),
            output_schema=_shape(hints["return"]).schema,
            annotations=annotations,
        )
        return cls(listed, method, model, next((p.name for p in parameters if hints[p.name] is Caller), None))

    async def call(self, contract: Any, caller: Caller, arguments: Mapping[str, Any]) -> Json:
        checked = self._checked(arguments)
        given = {name: getattr(checked, name) for name in self.model.model_fields}
        if self.caller:
            given[self.caller] = caller
        return await self.run(contract, **given)

    def _checked(self, arguments: Mapping[str, Any]) -> BaseModel:
        known = {about.alias or name for name, about in self.model.model_fields.items()}
        try:
            return self.model.model_validate(understood(arguments, self.listed.input_schema))
        except ValidationError as wrong:
            raise self._mistake(wrong, known) from wrong

    def _mistake(self, wrong: ValidationError, known: set[str]) -> InvalidRequest:
        """Every mistake in one message; the details name the arguments."""
        missing: list[str] = []
        unknown: list[str] = []
        invalid: dict[str, str] = {}
        for error in wrong.errors(include_url=False, include_input=False, include_context=False):
            name = ".".join(str(part) for part in error["loc"])
            if error["type"] == "missing":
                missing.append(name)
            elif error["type"] == "extra_forbidden":
                unknown.append(name)
            else:
                invalid.setdefault(name, error["msg"])
        told = [f"{name} is required" for name in missing]
        told += [f"{name!r} is not an argument of {self.listed.name}" for name in unknown]
        told += [f"{name}: {message}" for name, message in invalid.items()]
        if unknown:
            told.append(f"it takes {', '.join(sorted(known)) or 'none'}")
        return InvalidRequest("; ".join(told) + ".", missing=missing, unknown=unknown, invalid=list(invalid))


def tools_of(contract: type) -> dict[str, Tool]:
    """Every tool of a contract by its name, in the order of declaration, the inherited ones first."""
    methods: dict[str, Run] = {}
    for cls in reversed(contract.__mro__):
        methods |= {name: item for name, item in vars(cls).items() if hasattr(item, "tool")}
    tools = [Tool.of(method) for method in methods.values()]
    return {tool.listed.name: tool for tool in tools}


def _shape(hint: Any) -> Shape:
    assert get_origin(hint) is Annotated, "a tool says what it returns: Annotated[Json, Shape(...)]"
    shape = get_args(hint)[1]
    assert isinstance(shape, Shape)
    return shape
