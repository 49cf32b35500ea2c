"""Writes a line to the log."""

from __future__ import annotations

import logging
from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.rules.action.base import Action
from smdebug.rules.hit import Hit

LEVELS = ("debug", "info", "warning", "error", "critical")


class Log(Action):
    """Logs the message of the hit at `level`."""

    def __init__(self, level: str = "warning", **options: Any) -> None:
        super().__init__(**options)
        if str(level).lower() not in LEVELS:
            raise SMDebugValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}.")
        self.level = str(level).lower()

    def intent(self, hit: Hit) -> str:
        return f"log the hit as {self.level}"

    def perform(self, hit: Hit) -> str:
        level = logging.getLevelNamesMapping()[self.level.upper()]
        get_logger().log(level, "%s", f"SMDebugRule:{hit.rule} fired. {hit.message}")
        return "The hit was logged."
