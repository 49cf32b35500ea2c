"""Records models of Keras and graphs of TensorFlow: `model.fit(..., callbacks=[KerasHook("run")])`.

Nothing of TensorFlow is imported before a hook is asked for: Keras may run without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes
from smdebug.open_trial import create_trial
from smdebug.tensorflow.collection import Collection
from smdebug.tensorflow.singleton_utils import HOOKS, del_hook, get_hook, hook_class, set_hook

if TYPE_CHECKING:
    from smdebug.tensorflow.estimator import EstimatorHook
    from smdebug.tensorflow.keras import KerasHook
    from smdebug.tensorflow.session import SessionHook

_KINDS = {name: kind for kind, (_, name) in HOOKS.items()}


def __getattr__(name: str) -> Any:
    if name in _KINDS:
        return hook_class(_KINDS[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_KINDS})


__all__ = [
    "Collection",
    "CollectionKeys",
    "EstimatorHook",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "SessionHook",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
