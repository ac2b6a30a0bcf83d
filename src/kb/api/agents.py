"""Agents: how each is connected to the MCP server, and which of them have called."""

from fastapi import APIRouter, Depends, Request, Response

from kb.api.dependencies import Answer, errors
from kb.core import times
from kb.core.mcp_clients import CLIENTS, mcp_url
from kb.core.settings import Settings
from kb.core.values import AgentCaller, AgentList, AgentSetup

router = APIRouter(tags=["state"])

MOST_CALLERS = 100  # beyond that, the one that called least recently is forgotten
LONGEST_NAME = 100
YOUR_KEY = "YOUR-KB_MCP_API_KEY"  # the key itself is never shown


class Callers:
    """The agents that called since the engine started, by the name that the MCP server passes on."""

    def __init__(self) -> None:
        self._found: dict[str, AgentCaller] = {}  # the most recent last

    def note(self, name: str) -> None:
        before = self._found.pop(name, None)
        self._found[name] = AgentCaller(name, before.calls + 1 if before else 1, times.now())
        if len(self._found) > MOST_CALLERS:
            del self._found[next(iter(self._found))]

    def recent(self) -> list[AgentCaller]:
        return list(reversed(self._found.values()))


async def note_caller(request: Request) -> None:
    """Remember which agent a request came from. Runs on the event loop, so calls never meet."""
    name = request.headers.get("x-kb-agent")
    if name and name.isprintable():
        request.app.state.callers.note(name[:LONGEST_NAME])


CALLER = Depends(note_caller)


@router.get("/agents", response_model=AgentList, responses=errors())
def list_agents(request: Request) -> Response:
    """The agents that kb knows how to connect, and those that have called a tool since the engine started."""
    settings: Settings = request.app.state.settings
    callers: list[AgentCaller] = request.app.state.callers.recent()
    url, key = mcp_url(settings), YOUR_KEY if settings.mcp_api_key else ""
    agents = [
        AgentSetup(
            name=name,
            label=client.label,
            file=client.file(),
            snippet=client.snippet(url, key),
            hint=client.hint,
            last_call=next((one.last_call for one in callers if _is(one.name, client.calls_itself or name)), None),
        )
        for name, client in CLIENTS.items()
    ]
    return Answer(AgentList(url, agents, callers))


def _is(caller: str, name: str) -> bool:
    return caller.lower().startswith(name)
