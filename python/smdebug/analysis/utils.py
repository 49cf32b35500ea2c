"""For programs that analyse runs: when a trial looks for news, and parameters that arrive as strings."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import SMDebugValueError
from smdebug.refresh import no_refresh, refresh

_WORDS = {"true": True, "false": False}


def parse_bool(arg: Any, default: bool | None = None) -> bool | None:
    """A boolean, 1, 0, or "True" and "False" in any case; None means the default."""
    if arg is None:
        return default
    if isinstance(arg, str) and arg.strip().lower() in _WORDS:
        return _WORDS[arg.strip().lower()]
    if isinstance(arg, int) and arg in (0, 1):
        return bool(arg)
    raise SMDebugValueError(f"True or False was expected, not {arg!r}.")


def parse_list_from_str(arg: str | list[str] | None, delimiter: str = ",") -> list[str]:
    """The items of a delimited text. A list stays as it is; None or nothing is an empty list."""
    if not arg:
        return []
    if isinstance(arg, str):
        return arg.split(delimiter)
    if isinstance(arg, (list, tuple, set)):
        return list(arg)
    raise SMDebugValueError(f"A text or a list was expected, not {arg!r}.")


__all__ = ["no_refresh", "parse_bool", "parse_list_from_str", "refresh"]
