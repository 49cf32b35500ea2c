"""The hook of this process, which training code and framework integrations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smdebug import _core
from smdebug.exceptions import SMDebugTypeError

if TYPE_CHECKING:
    from smdebug.hook import BaseHook

_hook: BaseHook | None = None
_enabled: bool | None = None  # what USE_SMDEBUG said at the first get_hook()


def set_hook(custom_hook: BaseHook) -> None:
    """Makes `custom_hook` the hook of this process. The one before it is forgotten, not closed."""
    from smdebug.hook import BaseHook

    global _hook
    if not isinstance(custom_hook, BaseHook):
        raise SMDebugTypeError(f"A hook was expected, not {custom_hook!r}.")
    before, _hook = _hook, custom_hook
    if before is not None and before is not custom_hook:
        before._replaced()


def current_hook() -> BaseHook | None:
    """The hook of this process, whatever its class and whatever USE_SMDEBUG says."""
    return _hook


def get_hook(
    json_config_path: str | None = None, create_if_not_exists: bool = False
) -> BaseHook | None:
    """The hook of this process; None if there is none, or if USE_SMDEBUG switches it off.

    With `create_if_not_exists`, a missing one is made from the job's JSON file, if there is one.
    """
    from smdebug.hook import BaseHook, Hook

    return hook_of(BaseHook, Hook if create_if_not_exists else None, json_config_path)


def hook_of(
    wanted: type[BaseHook], made: type[BaseHook] | None, json_config_path: str | None = None
) -> BaseHook | None:
    """The hook of this process if it is of the class `wanted`; another one is forgotten.

    Without one, a hook of the class `made` from a JSON file; None if there is no such file. This is
    what the get_hook() of every framework calls, so USE_SMDEBUG counts for all of them.
    """
    global _hook
    if not is_enabled():
        return None
    if _hook is not None and not isinstance(_hook, wanted):
        _hook = None
    if _hook is not None or made is None:
        return _hook
    try:
        return made.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None


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
