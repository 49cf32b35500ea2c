"""What hooks have in common that a script does not know of: how they speak and when they end."""

from __future__ import annotations

import logging
import os
import sys

from smdebug.hook import BaseHook
from smdebug.logger import get_logger


def log_to_stderr() -> None:
    """Messages keep off what the script prints."""
    if "SMDEBUG_LOG_ALL_TO_STDOUT" in os.environ:
        return
    for handler in get_logger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is sys.stdout:
            handler.setStream(sys.stderr)


def close_with_process(hook: BaseHook) -> None:
    """Children of multiprocessing end without what is registered with atexit."""
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, hook._close, args=(True,), exitpriority=10)
