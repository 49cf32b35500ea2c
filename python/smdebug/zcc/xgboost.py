"""XGBoost: puts a hook first among the callbacks of `train`, `cv` and the scikit-learn classes.

All of them make a CallbackContainer, which also learns the data. Nothing is made before that.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

import smdebug_activation
import xgboost
from xgboost.callback import CallbackContainer

from smdebug import singleton
from smdebug.zcc import Patches

if TYPE_CHECKING:
    from smdebug.xgboost.automatic import AutomaticHook


def patch() -> Discovery:
    """Records trainings from now on."""
    with Patches() as patches:
        discovery = Discovery(patches)
        _patch_containers(discovery, patches)
        _patch_train(discovery, patches)
    return discovery


class Discovery:
    """The hook of the script's trainings, once there is one."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self.hook: AutomaticHook | None = None
        self.params: Any = None  # of the training that is about to begin

    def undo(self) -> None:
        """XGBoost is as it was, and what was recorded is complete."""
        self._patches.undo()
        hook, self.hook = self.hook, None
        if hook is not None:
            hook.close()

    def join(self, container: Any) -> None:
        """Puts the hook into a container, unless the script records by itself."""
        from smdebug.xgboost.automatic import AutomaticHook, make_automatic_hook

        current = singleton.current_hook()
        others = [*container.callbacks, current]
        if any(isinstance(other, _hook_class()) and other is not self.hook for other in others):
            self._patches.undo()
            return
        if self.hook is None:
            self.hook = make_automatic_hook()
        assert isinstance(self.hook, AutomaticHook)
        if self.params is not None:
            self.hook.hyperparameters = dict(self.params)
        container.callbacks = [self.hook, *container.callbacks]

    def meet(self, container: Any, dtrain: Any, evals: Any) -> None:
        """The data of a round."""
        if self.hook is not None and self.hook in container.callbacks and not container.is_cv:
            self.hook.meet(dtrain, evals)


def _hook_class() -> type:
    return sys.modules["smdebug.boosting.hook"].BoostingHook


def _guarded(function: Any, *args: Any) -> None:
    try:
        function(*args)
    except Exception as error:
        smdebug_activation.report(error)


def _patch_containers(discovery: Discovery, patches: Patches) -> None:
    init, after = CallbackContainer.__init__, CallbackContainer.after_iteration

    @functools.wraps(init)
    def new_init(container: Any, *args: Any, **kwargs: Any) -> None:
        init(container, *args, **kwargs)
        _guarded(discovery.join, container)

    @functools.wraps(after)
    def new_after(container: Any, model: Any, epoch: int, dtrain: Any, evals: Any) -> bool:
        _guarded(discovery.meet, container, dtrain, evals)
        return after(container, model, epoch, dtrain, evals)

    patches.replace(CallbackContainer, "__init__", new_init)
    patches.replace(CallbackContainer, "after_iteration", new_after)


def _patch_train(discovery: Discovery, patches: Patches) -> None:
    """Only to see the parameters; the scikit-learn classes have a name of their own for it."""
    original = xgboost.train

    @functools.wraps(original)
    def train(params: Any, *args: Any, **kwargs: Any) -> Any:
        discovery.params = params
        try:
            return original(params, *args, **kwargs)
        finally:
            discovery.params = None
            if discovery.hook is not None:
                discovery.hook.set_data(train_data=None, validation_data=None)

    for module in (xgboost, xgboost.training, sys.modules.get("xgboost.sklearn")):
        if module is not None and getattr(module, "train", None) is original:
            patches.replace(module, "train", train)
