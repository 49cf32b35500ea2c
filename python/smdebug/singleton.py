"""The hook of this process, which training code and framework integrations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug import _core
from smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from smdebug.hook import BaseHook

_hook: BaseHook | None = None
_enabled: bool | None = None  # what USE_SMDEBUG said at the first get_hook()


def set_hook(hook: BaseHook) -> None:
    """Makes `hook` the hook of this process. The one before it is forgotten, not closed."""
    from smdebug.hook import BaseHook

    global _hook
    if not isinstance(hook, BaseHook):
        raise SMDebugTypeError(f"A hook was expected, not {hook!r}.")
    _hook = hook


def get_hook() -> BaseHook | None:
    """The hook of this process; None if there is none, or if USE_SMDEBUG switches it off."""
    return _hook if is_enabled() else None


def del_hook() -> None:
    global _hook
    _hook = None


def is_enabled() -> bool:
    """USE_SMDEBUG, read once per process. It does not touch hooks that a script makes itself."""
    global _enabled
    if _enabled is None:
        _enabled = _core.use_smdebug()
    return _enabled


def reset_enabled() -> None:
    """Makes the next get_hook() read USE_SMDEBUG again."""
    global _enabled
    _enabled = None
