"""Checks what hooks are given."""

from __future__ import annotations

from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError


def flag_argument(value: Any, name: str) -> bool:
    """True or False, or one of their spellings; as loose as configuration files are."""
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, str):
        known = {"true": True, "1": True, "false": False, "0": False}
        if value.lower() not in known:
            raise SMDebugValueError(f"{name} must be True or False, not {value!r}.")
        return known[value.lower()]
    return bool(value)


def text_argument(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise SMDebugTypeError(f"{name} must be a string, not {value!r}.")
    return value
