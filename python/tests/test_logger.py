"""The package's logger: format, levels, places and repeated messages."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import recorded
from smdebug.logger import DuplicateLogFilter, core_log, get_logger

SPEAK = """
from smdebug.logger import get_logger
logger = get_logger()
for level in ("debug", "info", "warning", "error", "critical"):
    getattr(logger, level)("a %s message", level)
"""
LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (?P<context>\S+) (?P<level>[A-Z]+) "
    r"(?P<file>[^:]+):\d+\] (?P<text>.*)"
)


def levels(text: str) -> list[str]:
    """The levels of the lines, all of which must have the documented form."""
    matches = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(matches), text
    return [match["level"].lower() for match in matches if match]


def test_lines_have_the_documented_form() -> None:
    first = recorded.run(SPEAK).splitlines()[0]
    match = LINE.fullmatch(first)
    assert match is not None
    assert re.fullmatch(r".+:\d+", match["context"])
    assert match["text"] == "a info message"
    assert match["file"] == "<string>"


@pytest.mark.parametrize(
    ("level", "count"),
    [
        ("debug", 5),
        ("info", 4),
        ("WARNING", 3),
        ("error", 2),
        ("critical", 1),
        ("off", 0),
        ("nonsense", 4),
    ],
)
def test_the_level_comes_from_the_environment(level: str, count: int) -> None:
    assert len(levels(recorded.run(SPEAK, SMDEBUG_LOG_LEVEL=level))) == count


def test_the_context_comes_from_the_environment() -> None:
    out = recorded.run(SPEAK, SMDEBUG_LOG_CONTEXT="50%s-node")
    assert all(" 50%s-node " in line for line in out.splitlines())


def test_errors_go_to_stderr_when_asked() -> None:
    process = recorded.start(SPEAK, SMDEBUG_LOG_ALL_TO_STDOUT="False")
    out, err = process.communicate(timeout=recorded.TIMEOUT_SECS)
    assert levels(out) == ["info", "warning"]
    assert levels(err) == ["error", "critical"]


def test_a_log_file_gets_everything_as_well(tmp_path: Path) -> None:
    path = tmp_path / "logs/smdebug.log"
    out = recorded.run(SPEAK, SMDEBUG_LOG_PATH=str(path))
    assert path.read_text() == out
    assert len(levels(out)) == 4


def test_messages_of_the_core_have_the_same_form(tmp_path: Path) -> None:
    code = """
import sys
from smdebug import Hook
hook = Hook(sys.argv[1], include_collections=["absent"])
hook.step()
hook.close()
"""
    (line,) = recorded.run(code, tmp_path).splitlines()
    assert levels(line) == ["warning"]
    assert "'absent'" in line


def test_the_same_text_comes_three_times_at_most() -> None:
    code = """
from smdebug.logger import get_logger
for number in range(10):
    get_logger().info("the same")
    get_logger().info("number %d", number)
"""
    lines = recorded.run(code).splitlines()
    assert sum(line.endswith("the same") for line in lines) == 3
    assert sum("number" in line for line in lines) == 10


def test_the_memory_for_repeated_texts_is_bounded() -> None:
    filter_ = DuplicateLogFilter()

    def passes(text: str) -> bool:
        return filter_.filter(logging.LogRecord("smdebug", 20, "f", 1, text, None, None))

    for _ in range(3):
        assert passes("often")
    for number in range(30_000):
        assert passes(str(number))
        assert number % 1000 or not passes("often")
    assert len(filter_._seen) <= 10_000


def test_the_logger_is_set_up_once_and_does_not_propagate() -> None:
    logger = get_logger()
    handlers = list(logger.handlers)
    assert get_logger() is logger
    assert get_logger("other") is logger
    assert logger.handlers == handlers
    assert logger.name == "smdebug"
    assert not logger.propagate
    assert any(isinstance(f, DuplicateLogFilter) for f in logger.filters)


def test_handlers_of_others_see_the_messages_of_the_core(messages) -> None:
    for level, text in enumerate(("debug", "info", "warning", "error")):
        core_log(level, text + " 100%")
    assert messages.lines == [
        ("INFO", "info 100%"),
        ("WARNING", "warning 100%"),
        ("ERROR", "error 100%"),
    ]
