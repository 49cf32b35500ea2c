"""The logger `smdebug`: where it writes, how its lines look, and which repeats it drops.

Configured from the environment at first use: SMDEBUG_LOG_LEVEL, SMDEBUG_LOG_CONTEXT,
SMDEBUG_LOG_ALL_TO_STDOUT, SMDEBUG_LOG_PATH.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import OrderedDict

LOG_DUPLICATION_THRESHOLD = 3
_NAME = "smdebug"
_REMEMBERED_MESSAGES = 10_000
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "off": logging.CRITICAL + 1,
}
# In the order of the core's LogLevel.
_CORE_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


class DuplicateLogFilter(logging.Filter):
    """Lets the same text through a few times and then no more."""

    def __init__(self, repeat_threshold: int = LOG_DUPLICATION_THRESHOLD) -> None:
        super().__init__()
        self.repeat_threshold = repeat_threshold
        self._seen: OrderedDict[str, int] = OrderedDict()

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        count = self._seen.pop(text, 0) + 1
        self._seen[text] = count
        if len(self._seen) > _REMEMBERED_MESSAGES:
            self._seen.popitem(last=False)
        return count <= self.repeat_threshold


class _BelowError(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR


def _handlers() -> list[logging.Handler]:
    out = logging.StreamHandler(sys.stdout)
    handlers: list[logging.Handler] = [out]
    if os.getenv("SMDEBUG_LOG_ALL_TO_STDOUT", "TRUE").lower() == "false":
        out.addFilter(_BelowError())
        err = logging.StreamHandler(sys.stderr)
        err.setLevel(logging.ERROR)
        handlers.append(err)
    path = os.getenv("SMDEBUG_LOG_PATH")
    if path:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        handlers.append(logging.FileHandler(path))
    return handlers


def get_logger(name: str = _NAME) -> logging.Logger:
    """The package's logger, set up at the first call."""
    logger = logging.getLogger(_NAME)
    if any(isinstance(f, DuplicateLogFilter) for f in logger.filters):
        return logger
    logger.setLevel(_LEVELS.get(os.getenv("SMDEBUG_LOG_LEVEL", "info").lower(), logging.INFO))
    context = os.getenv("SMDEBUG_LOG_CONTEXT") or f"{os.uname().nodename}:{os.getpid()}"
    formatter = logging.Formatter(
        fmt=f"[%(asctime)s.%(msecs)03d {context.replace('%', '%%')} %(levelname)s "
        "%(filename)s:%(lineno)d] %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    for handler in _handlers():
        handler.setFormatter(formatter)
        logger.addHandler(handler)
    logger.addFilter(DuplicateLogFilter())
    logger.propagate = False
    return logger


def core_log(level: int, message: str) -> None:
    """Takes the messages of the C++ core."""
    get_logger().log(_CORE_LEVELS[level], "%s", message, stacklevel=2)
