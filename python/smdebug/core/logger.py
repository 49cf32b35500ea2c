"""The package's logger, for tools written for the original."""

from smdebug.logger import LOG_DUPLICATION_THRESHOLD, DuplicateLogFilter, get_logger

__all__ = ["LOG_DUPLICATION_THRESHOLD", "DuplicateLogFilter", "get_logger"]
