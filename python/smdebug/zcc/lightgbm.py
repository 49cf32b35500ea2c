"""LightGBM: puts a hook among the callbacks of `train`, `cv` and the scikit-learn classes."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any

import lightgbm
import smdebug_activation

from smdebug import singleton
from smdebug.zcc import Patches


def patch() -> Discovery:
    """Records trainings from now on."""
    with Patches() as patches:
        discovery = Discovery(patches)
        for name in ("train", "cv"):
            _patch(discovery, patches, name)
    return discovery


class Discovery:
    """The hook of the script's trainings, once there is one."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self.hook: Any = None

    def undo(self) -> None:
        """LightGBM is as it was, and what was recorded is complete."""
        self._patches.undo()
        hook, self.hook = self.hook, None
        if hook is not None:
            hook.close()

    def join(self, arguments: dict[str, Any]) -> None:
        """Puts the hook into the arguments of a training, unless the script records by itself."""
        from smdebug.boosting.automatic import make_hook
        from smdebug.boosting.hook import BoostingHook
        from smdebug.lightgbm import Hook, Rehearsal

        callbacks = list(arguments.get("callbacks") or ())
        others = [*callbacks, singleton.current_hook()]
        if any(isinstance(other, BoostingHook) and other is not self.hook for other in others):
            self._patches.undo()
            return
        if self.hook is None:
            self.hook = make_hook(Rehearsal if "SMDEBUG_PLAN" in os.environ else Hook)
        params = arguments.get("params")
        self.hook.hyperparameters = dict(params) if isinstance(params, dict) else None
        train = arguments.get("train_set")
        sets = arguments.get("valid_sets") or ()
        listed = sets if isinstance(sets, list | tuple) else [sets]
        validation = [data for data in listed if data is not train]
        self.hook.set_data(
            train_data=_rows(train),
            validation_data=_rows(validation[-1]) if validation else None,
        )
        arguments["callbacks"] = [self.hook, *callbacks]

    def forget(self) -> None:
        """The training is over: its data may go."""
        if self.hook is not None:
            self.hook.set_data(train_data=None, validation_data=None)


def _rows(dataset: Any) -> Any:
    """(rows, labels) of a Dataset that still has them."""
    rows = getattr(dataset, "data", None)
    if not hasattr(rows, "shape"):
        return None
    return rows, dataset.label


def _patch(discovery: Discovery, patches: Patches, name: str) -> None:
    original = getattr(lightgbm, name)
    signature = inspect.signature(original)

    @functools.wraps(original)
    def training(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError:
            return original(*args, **kwargs)  # says what is wrong
        try:
            discovery.join(bound.arguments)
        except Exception as error:
            smdebug_activation.report(error)
        try:
            return original(*bound.args, **bound.kwargs)
        finally:
            discovery.forget()

    for module in ("lightgbm", "lightgbm.engine", "lightgbm.sklearn"):
        found = sys.modules.get(module)
        if found is not None and getattr(found, name, None) is original:
            patches.replace(found, name, training)
