"""`kb bridge`: stdio on one side, the MCP server's HTTP on the other, for agents that only speak stdio.

One JSON-RPC message per line comes in and goes to the server; the server's messages come out as lines. Requests
run side by side, so that a long one holds up no other and can be cancelled. Standard output carries messages only.
"""

import json
import sys
import threading

from kb.cli.connect.agent import McpSession
from kb.core.errors import KBError
from kb.core.types import Json

PARSE_ERROR, INVALID_REQUEST, SERVER_ERROR = -32700, -32600, -32000


class Bridge:
    def __init__(self, session: McpSession) -> None:
        self._session = session
        self._writing = threading.Lock()
        self._running: list[threading.Thread] = []

    def run(self) -> None:
        """Run until the agent closes its side."""
        for line in sys.stdin.buffer:
            if line.strip():
                self._take(line)
        for thread in self._running:
            thread.join()
        self._session.close()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            self._say(_error(None, PARSE_ERROR, "That line is not JSON."))
            return
        if not isinstance(message, dict):
            self._say(_error(None, INVALID_REQUEST, "A message is one JSON object."))
        elif message.get("method") == "initialize" or "id" not in message:
            self._forward(
                message
            )  # in order: a handshake comes before everything else, a notification waits for nothing
        else:
            thread = threading.Thread(target=self._forward, args=(message,), daemon=True)
            self._running = [*(other for other in self._running if other.is_alive()), thread]
            thread.start()

    def _forward(self, message: Json) -> None:
        try:
            for answer in self._session.post(message):
                self._say(answer)
        except KBError as error:
            if "id" in message:
                self._say(_error(message["id"], SERVER_ERROR, error.message))

    def _say(self, message: Json) -> None:
        with self._writing:
            sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
            sys.stdout.flush()


def _error(message_id: object, code: int, text: str) -> Json:
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": text}}
