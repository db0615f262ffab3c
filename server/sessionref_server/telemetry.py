"""Logging: one line per event, text or JSON, with a fixed set of fields. Transcript text, titles and queries never get here."""

from __future__ import annotations

import json
import logging
import sys
import time

LOGGER = logging.getLogger("sessionref_server")
"""The parent of every module's own logger."""

FIELDS = ("request_id", "method", "reason", "source", "count", "seconds", "version", "listening")
"""Fields an event may carry besides its message; anything else passed in ``extra`` is dropped."""


class LineFormatter(logging.Formatter):
    """An event as one line of text; line breaks in a value cannot forge another line."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the event."""
        moment = time.strftime("%H:%M:%S", time.localtime(record.created))
        fields = "".join(f" {name}={value}" for name, value in _fields(record).items())
        line = f"{moment} {record.levelname.lower():7} {record.getMessage()}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line.replace("\r", "\\r") if record.exc_info else line.replace("\r", "\\r").replace("\n", "\\n")


class JsonFormatter(logging.Formatter):
    """An event as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the event."""
        event: dict[str, object] = {
            "time_ms": int(record.created * 1000),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            event["trace"] = self.formatException(record.exc_info)
        return json.dumps(event)


def configure_logging(level: str, form: str) -> None:
    """Send events to standard error. ``level`` and ``form`` as in the settings ``log.level`` and ``log.format``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else LineFormatter())
    LOGGER.handlers[:] = [handler]
    LOGGER.setLevel(level.upper())
    LOGGER.propagate = False


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
