"""What every contract has: a name, tools, prompts, and its own way to say that something went wrong."""

from dataclasses import dataclass
from typing import ClassVar

from kb.core.errors import KBError
from kb.core.settings import Settings
from kb.core.types import Json
from kb.mcp.engine_client import Client
from kb.mcp.prompts import Prompt
from kb.mcp.tools import Tool
from kb.mcp.uploads.staging import Uploads


@dataclass
class Contract:
    """A presentation of the engine for agents; it holds no logic beyond what its contract demands."""

    name: ClassVar[str]  # as in its path and in KB_MCP_CONTRACTS
    server_name: ClassVar[str]
    title: ClassVar[str]
    instructions: ClassVar[str]
    tools: ClassVar[dict[str, Tool]]
    prompts: ClassVar[tuple[Prompt, ...]] = ()
    resources: ClassVar[bool] = True  # kb://documents/{id}
    tools_change: ClassVar[bool] = False  # what the handshake says of `listChanged`
    takes_log_level: ClassVar[bool] = True  # some clients set one first and give up when it is refused
    cancels_tasks: ClassVar[bool] = False  # the method `tools/cancel`

    client: Client
    uploads: Uploads
    settings: Settings

    def failure(self, error: KBError) -> Json:
        """The answer of a tool that could not do what it was asked."""
        return error.body()
