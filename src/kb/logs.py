"""Log lines, as text or as JSON. Control characters never reach a terminal; keys and queries are never logged."""

import json
import logging
import sys

from kb.settings import Settings
from kb.times import now


class TextLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        text = f"{now()} {record.levelname} {record.name}: {record.getMessage()}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": now(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["trace"] = self.formatException(record.exc_info)
        return json.dumps(entry)


def configure(settings: Settings) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.log_format == "json" else TextLines())
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(max(logging.getLogger().level, logging.WARNING))
