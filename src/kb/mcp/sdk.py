"""A contract as the SDK's server: what MCP's methods mean for it, and how errors look on the wire."""

import logging
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListToolsResult,
    NotificationParams,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    RequestParams,
    SetLevelRequestParams,
    TextContent,
)
from pydantic import Field, ValidationError
from starlette.requests import HTTPConnection

from kb import __version__
from kb.core.errors import KBError
from kb.core.invisible import plain
from kb.core.types import Json
from kb.mcp.budget import compact
from kb.mcp.contracts.contract import Contract
from kb.mcp.engine_client import calling_agent
from kb.mcp.errors import SERVER_ERROR, wire_error
from kb.mcp.resources import Resources
from kb.mcp.tools import Caller, Refusal
from kb.mcp.work import cancel

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]
GONE = "kb.gone"  # where the scope of a request keeps the event that its client is gone
UNEXPECTED = KBError("Something went wrong here; the server's log says what.")


class ContractServer(Server[Any]):
    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        resources = Resources(contract.client) if contract.resources else None
        super().__init__(
            contract.server_name,
            version=__version__,
            title=contract.title,
            instructions=contract.instructions,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_list_resources=resources.listed if resources else None,
            on_list_resource_templates=resources.templates if resources else None,
            on_read_resource=resources.read if resources else None,
            get_tool_input_schema=self._input_schema,
        )
        self.middleware[:] = [explained]  # in place of tracing, which kb does not collect
        if contract.takes_log_level:
            self.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_log_level)
        if contract.cancels_tasks:
            self.add_request_handler("tools/cancel", CancelParams, self._cancel)
            self.add_notification_handler("tools/cancel", CancelNotice, self._cancel_quietly)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        options = notification_options or NotificationOptions(tools_changed=self.contract.tools_change)
        return super().create_initialization_options(options, experimental_capabilities, extensions)

    def _input_schema(self, name: str) -> Json | None:
        tool = self.contract.tools.get(name)
        return tool.listed.input_schema if tool else None

    async def _list_tools(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=[tool.listed for tool in self.contract.tools.values()])

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> CallToolResult:
        """Call a tool. A mistake that the model can mend is a result that says so; only the protocol's are errors."""
        tool = self.contract.tools.get(params.name)
        if tool is None:
            known = ", ".join(self.contract.tools)
            raise wire_error(
                INVALID_PARAMS, f"Unknown tool: {params.name[:100]!r}.", name=params.name[:100], tools=known
            )
        calling_agent.set(agent_of(ctx))
        try:
            answer = await tool.call(self.contract, caller_of(ctx), params.arguments or {})
            failed = answer.get("success") is False
        except Refusal as refused:
            answer, failed = refused.answer, True
        except KBError as error:
            answer, failed = self.contract.failure(error), True
        except Exception:
            log.exception("%s failed", params.name)
            answer, failed = self.contract.failure(UNEXPECTED), True
        # What no person sees in a document does not reach a model through it.
        answer = plain(answer)
        return CallToolResult(content=[TextContent(text=compact(answer))], structured_content=answer, is_error=failed)

    async def _list_prompts(self, _ctx: Context, _params: PaginatedRequestParams | None) -> ListPromptsResult:
        prompts = [
            Prompt(
                name=prompt.name,
                title=prompt.title,
                description=prompt.description,
                arguments=[
                    PromptArgument(name=prompt.argument.name, description=prompt.argument.description, required=True)
                ],
            )
            for prompt in self.contract.prompts
        ]
        return ListPromptsResult(prompts=prompts)

    async def _get_prompt(self, _ctx: Context, params: GetPromptRequestParams) -> GetPromptResult:
        prompt = next((prompt for prompt in self.contract.prompts if prompt.name == params.name), None)
        if prompt is None:
            raise wire_error(INVALID_PARAMS, f"Unknown prompt: {params.name[:100]!r}.", name=params.name[:100])
        value = (params.arguments or {}).get(prompt.argument.name, "").strip()
        if not value:
            raise wire_error(INVALID_PARAMS, f"{prompt.argument.name} is required.", missing=[prompt.argument.name])
        text = prompt.text.replace("{argument}", value)
        return GetPromptResult(
            description=prompt.description, messages=[PromptMessage(role="user", content=TextContent(text=text))]
        )

    async def _set_log_level(self, _ctx: Context, _params: SetLevelRequestParams) -> EmptyResult:
        """Accept any level: nothing is logged to clients."""
        return EmptyResult()

    async def _cancel(self, _ctx: Context, params: "CancelParams") -> Json:
        try:
            job = await self.contract.client.cancel_job(params.task_id)
        except KBError as error:
            code = INVALID_PARAMS if error.http_status == 404 else SERVER_ERROR
            raise wire_error(
                code, error.message, self.contract.failure(error).get("error"), task_id=params.task_id
            ) from error
        return {"success": True, "task_id": job["id"], "status": job["status"]}

    async def _cancel_quietly(self, _ctx: Context, params: "CancelNotice") -> None:
        await cancel(self.contract.client, params.task_id)


class CancelParams(RequestParams):
    task_id: str = Field(alias="taskId", max_length=200)


class CancelNotice(NotificationParams):
    task_id: str = Field(alias="taskId", max_length=200)


def agent_of(ctx: Context) -> str:
    """The agent's name and version as a header can carry them; empty if it did not say."""
    known = ctx.session.client_params
    if known is None:
        return ""
    named = f"{known.client_info.name} {known.client_info.version}"[:100]
    return named if named.isascii() and named.isprintable() else ""


def caller_of(ctx: Context) -> Caller:
    connection = ctx.request
    wants_progress = bool(ctx.meta and ctx.meta.get("progress_token") is not None)
    if not isinstance(connection, HTTPConnection):
        return Caller(wants_progress=wants_progress, progress=ctx.session.report_progress)
    scheme = "https" if connection.url.scheme in ("https", "wss") else "http"
    return Caller(
        base_url=f"{scheme}://{connection.headers.get('host', '')}",
        wants_progress=wants_progress,
        progress=ctx.session.report_progress,
        gone=connection.scope[GONE],
    )


async def explained(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Middleware that gives the data of every error the one shape of `wire_error`."""
    try:
        return await call_next(ctx)
    except MCPError as error:
        if isinstance(error.data, dict) and "error_type" in error.data:
            raise
        details = {"reason": error.data} if error.data else {}
        raise wire_error(error.code, error.message, method=ctx.method, **details) from error
    except ValidationError as wrong:
        problems = [
            {"at": ".".join(str(part) for part in problem["loc"]), "problem": problem["msg"]}
            for problem in wrong.errors(include_url=False, include_input=False, include_context=False)
        ]
        told = "; ".join(f"{problem['at']}: {problem['problem']}" for problem in problems[:5])
        raise wire_error(INVALID_PARAMS, f"Invalid params: {told}", problems=problems[:20]) from wrong
