"""The hook of this process, as scripts that use PyTorch ask for it."""

from __future__ import annotations

from smdebug import singleton
from smdebug.pytorch.hook import Hook
from smdebug.singleton import del_hook, set_hook


def get_hook(
    json_config_path: str | None = None, create_if_not_exists: bool = False
) -> Hook | None:
    """The hook for PyTorch of this process; from a JSON file if there is none and one is wanted."""
    hook = singleton.get_hook()
    if isinstance(hook, Hook):
        return hook
    if hook is not None:
        del_hook()
    if not create_if_not_exists or not singleton.is_enabled():
        return None
    try:
        return Hook.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None


__all__ = ["del_hook", "get_hook", "set_hook"]
