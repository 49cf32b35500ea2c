"""The hook of this process, as scripts that use TensorFlow or Keras ask for it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from smdebug import singleton
from smdebug.exceptions import SMDebugValueError
from smdebug.hook import BaseHook
from smdebug.singleton import del_hook, set_hook

# (module, class) for each kind of hook.
HOOKS = {
    "keras": ("smdebug.tensorflow.keras", "KerasHook"),
    "session": ("smdebug.tensorflow.session", "SessionHook"),
    "estimator": ("smdebug.tensorflow.estimator", "EstimatorHook"),
}


def hook_class(hook_type: str) -> type[BaseHook]:
    """The class of a kind of hook; its module is imported."""
    module, name = HOOKS[hook_type]
    kind: type[BaseHook] = getattr(import_module(module), name)
    return kind


def get_hook(
    hook_type: str | None = None,
    json_config_path: str | None = None,
    create_if_not_exists: bool = False,
) -> Any:
    """The hook of this process; from a JSON file if there is none and one is wanted.

    A hook of another kind than `hook_type` is forgotten.
    """
    if hook_type is None:
        made = hook_class("keras") if create_if_not_exists else None
        return singleton.hook_of(BaseHook, made, json_config_path)
    if hook_type not in HOOKS:
        raise SMDebugValueError(
            f"{hook_type!r} is no kind of hook; expected 'keras', 'session' or 'estimator'."
        )
    wanted = hook_class(hook_type)
    return singleton.hook_of(wanted, wanted if create_if_not_exists else None, json_config_path)


__all__ = ["del_hook", "get_hook", "set_hook"]
