"""The hook of this process, as scripts that use XGBoost ask for it."""

from __future__ import annotations

from smdebug import singleton
from smdebug.singleton import del_hook, set_hook
from smdebug.xgboost.hook import Hook


def get_hook(json_config_path: str | None = None) -> Hook | None:
    """The hook for XGBoost of this process; from the job's JSON file if there is none."""
    return singleton.hook_of(Hook, Hook, json_config_path)  # type: ignore[return-value]


__all__ = ["del_hook", "get_hook", "set_hook"]
