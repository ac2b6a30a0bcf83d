"""Log lines, as text or as JSON, each with the request it belongs to.

Control characters are escaped. Keys, upload addresses and questions are never logged: the line of a request has its
method, path, status and time.
"""

import json
import logging
import sys
from contextvars import ContextVar

from kb.core.settings import Settings
from kb.core.times import now

request_id: ContextVar[str] = ContextVar("request_id", default="-")


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = printable(f"{now()} {record.levelname} {request_id.get()} {record.name}: {record.getMessage()}")
        if record.exc_info:
            text = "\n".join([text, *map(printable, self.formatException(record.exc_info).split("\n"))])
        return text


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": now(),
            "level": record.levelname,
            "request": request_id.get(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


class Throttle(logging.Filter):
    """Let each message of a logger through a few times a minute, so that an attack cannot fill the disk.

    Messages are told apart by their format. The last one says that others are left out, the next one how many.
    """

    def __init__(self, most: int = 10, seconds: float = 60) -> None:
        super().__init__()
        self._most = most
        self._seconds = seconds
        self._counts: dict[str, tuple[float, int]] = {}  # since when, and how many

    def filter(self, record: logging.LogRecord) -> bool:
        kind = record.msg
        began, count = self._counts.get(kind, (record.created, 0))
        if record.created - began >= self._seconds:
            if count > self._most:
                record.msg += f" ({count - self._most} more like this were not logged)"
            began, count = record.created, 0
        count += 1
        self._counts[kind] = began, count
        if count == self._most:
            record.msg += f" (more like this are not logged for {self._seconds:g} s)"
        return count <= self._most


def printable(line: str) -> str:
    """The line with control characters escaped: a file name with a line break cannot forge a log line."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line)


def configure(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    for chatty in ("uvicorn", "watchfiles"):
        logging.getLogger(chatty).setLevel(max(logging.getLogger().level, logging.WARNING))
