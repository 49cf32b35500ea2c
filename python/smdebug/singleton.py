"""The hook of this process, which training code and framework integrations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from smdebug.hook import BaseHook

_hook: BaseHook | None = None


def set_hook(hook: BaseHook) -> None:
    """Makes `hook` the hook of this process. The one before it is forgotten, not closed."""
    from smdebug.hook import BaseHook

    global _hook
    if not isinstance(hook, BaseHook):
        raise SMDebugTypeError(f"A hook was expected, not {hook!r}.")
    _hook = hook


def get_hook() -> BaseHook | None:
    return _hook


def del_hook() -> None:
    global _hook
    _hook = None
