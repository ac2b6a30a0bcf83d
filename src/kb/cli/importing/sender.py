"""Put conversations and memories of other programs into the engine, each under the identity that it has there."""

import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kb.cli.follow import WAIT_SECONDS, followed
from kb.cli.importing.conversation import Broken, Conversation
from kb.cli.importing.mem0 import Memory
from kb.cli.outcomes import Task, TaskOutcome, not_done
from kb.core.errors import InvalidRequest
from kb.core.types import Json

if TYPE_CHECKING:
    from kb.cli.transport import SocketClient

NAME_CHARACTERS = 100


@dataclass(frozen=True)
class Sender:
    client: "SocketClient"
    tags: list[str] | None
    replace_tags: bool
    force: bool

    def task(self, item: Conversation | Memory | Broken) -> Task:
        if isinstance(item, Broken):
            return refused(item)
        name = item.title if isinstance(item, Conversation) else item.text[:NAME_CHARACTERS]
        about = {"title": name, "source_path": item.source_path}

        def act() -> TaskOutcome:
            if isinstance(item, Conversation) and not item.messages:
                return TaskOutcome(name, "skipped", "nothing was said in it", about | {"status": "skipped"})
            accepted = self._send(item) if isinstance(item, Conversation) else self._remember(item)
            answer = followed(self.client, accepted)
            if answer["status"] != "completed":
                return not_done(name, about | answer)
            return TaskOutcome(name, answer["outcome"], f"document {answer['document_id']}", about | answer)

        return Task(name, about, act)

    def _send(self, conversation: Conversation) -> Json:
        with tempfile.NamedTemporaryFile(prefix="kb-import-", suffix=".json") as file:
            file.write(conversation.content())
            file.flush()
            return self.client.add_file(
                file.name,
                filename=f"{conversation.source_path.rpartition('/')[2]}.json",
                title=conversation.title[:NAME_CHARACTERS],
                tags=self.tags,
                metadata=conversation.metadata,
                source_path=conversation.source_path,
                created_at=conversation.created_at,
                replace_tags=self.replace_tags or None,
                force=self.force or None,
                wait=WAIT_SECONDS,
            )

    def _remember(self, memory: Memory) -> Json:
        return self.client.add_note(
            memory.text,
            tags=list(dict.fromkeys([*memory.tags, *(self.tags or [])])),
            metadata=memory.metadata,
            source_path=memory.source_path,
            created_at=memory.created_at,
            replace_tags=self.replace_tags or None,
            force=self.force or None,
            wait=WAIT_SECONDS,
        )


def refused(item: Broken) -> Task:
    def act() -> TaskOutcome:
        raise InvalidRequest(f"it cannot be understood: {item.reason}")

    return Task(item.name, {"title": item.name}, act)
