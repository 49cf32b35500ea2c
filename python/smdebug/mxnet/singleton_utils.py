"""The hook of this process, as scripts that use MXNet ask for it."""

from __future__ import annotations

from smdebug import singleton
from smdebug.mxnet.hook import Hook
from smdebug.singleton import del_hook, set_hook


def get_hook(json_config_path: str | None = None, create_if_not_exists: bool = True) -> Hook | None:
    """The hook for MXNet of this process; without one, that of the job's JSON file if there is one."""
    made = Hook if create_if_not_exists else None
    return singleton.hook_of(Hook, made, json_config_path)  # type: ignore[return-value]


__all__ = ["del_hook", "get_hook", "set_hook"]
