from __future__ import annotations

import importlib
import json
import logging
import pkgutil
from collections.abc import Iterator

import pytest
import sessionref_server
from sessionref_server.telemetry import FIELDS, LOGGER, JsonFormatter, LineFormatter, configure_logging


@pytest.fixture(autouse=True)
def logger_as_it_was() -> Iterator[None]:
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    yield
    LOGGER.handlers[:], LOGGER.level, LOGGER.propagate = before


@pytest.mark.parametrize("form", ["text", "json"])
def test_events_of_every_module_come_out_in_the_form_that_was_configured(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", form)
    for module in pkgutil.walk_packages(sessionref_server.__path__, "sessionref_server."):
        logger = vars(importlib.import_module(module.name)).get("_log")
        if isinstance(logger, logging.Logger):
            logger.warning("from %s", module.name)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 5
    assert all(json.loads(line)["level"] == "warning" if form == "json" else " warning from " in line for line in lines)


@pytest.mark.parametrize("formatter", [LineFormatter(), JsonFormatter()])
def test_line_break_in_a_value_forges_no_event(formatter: logging.Formatter) -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "first\r\nsecond %s", ("a\nb",), None)
    record.__dict__["reason"] = "third\nfourth"
    assert len(formatter.format(record).splitlines()) == 1


def test_fields_that_are_not_on_the_list_are_dropped() -> None:
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "m", (), None)
    record.__dict__.update({"query": "SECRET", "title": "SECRET", "count": 3})
    event = json.loads(JsonFormatter().format(record))
    assert set(event) == {"time_ms", "level", "message", "count"}
    assert "SECRET" not in LineFormatter().format(record)
    assert not {"query", "title", "label", "path", "text", "cwd"} & set(FIELDS)
