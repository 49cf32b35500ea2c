"""Fixtures that every test of the package shares."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import smdebug
from smdebug import singleton
from smdebug.logger import DuplicateLogFilter, get_logger

VARIABLES = (
    "USE_SMDEBUG",
    "SMDEBUG_CONFIG_FILE_PATH",
    "TENSORBOARD_CONFIG_FILE_PATH",
    "CHECKPOINT_CONFIG_FILE_PATH",
    "TRAINING_JOB_NAME",
    "SMDEBUG_STRICT",
    "RANK",
    "WORLD_SIZE",
)


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable and no hook of another test is left."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    smdebug.del_hook()
    singleton.reset_enabled()


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    """A directory for a run, which does not exist yet."""
    return tmp_path / "run"


class Messages(logging.Handler):
    """What was logged, as (level, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))

    def containing(self, text: str) -> list[str]:
        """The messages in which the text is found."""
        return [message for _, message in self.lines if text in message]


@pytest.fixture
def messages() -> Iterator[Messages]:
    """The messages of the package's logger, as if none had been logged before."""
    logger = get_logger()
    for filter_ in logger.filters:
        if isinstance(filter_, DuplicateLogFilter):
            filter_._seen.clear()
    handler = Messages()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)
