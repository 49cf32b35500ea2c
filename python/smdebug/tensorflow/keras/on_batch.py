"""train_on_batch, test_on_batch and predict_on_batch, which have no callbacks."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.fit import FitSteps
from smdebug.tensorflow.keras.record import Attributes

Modes = _core.ModeKeys
METHODS = {
    "train_on_batch": Modes.TRAIN,
    "test_on_batch": Modes.EVAL,
    "predict_on_batch": Modes.PREDICT,
}


class BatchMethods:
    """These methods of registered models, each call a step."""

    def __init__(self, fit: FitSteps, run: Any, is_on: Any) -> None:
        self._fit = fit
        self._run = run
        self._is_on = is_on
        self._attributes = Attributes()
        self._wrapped: list[Any] = []

    def wrap(self, model: Any) -> None:
        """Calls of this model are steps until unwrap()."""
        if any(known is model for known in self._wrapped):
            return
        self._wrapped.append(model)
        for name, mode in METHODS.items():
            if hasattr(model, name):
                self._attributes.set(model, name, self._wrapper(model, name, mode))

    def unwrap(self) -> None:
        """The models are as they were."""
        self._wrapped.clear()
        self._attributes.__exit__()

    def _wrapper(self, model: Any, name: str, mode: Modes) -> Any:
        original = getattr(model, name)

        def on_batch(*args: Any, **kwargs: Any) -> Any:
            if not self._is_on() or self._fit.is_running:
                return original(*args, **kwargs)
            self._run("Beginning a step", self._fit.begin_single, model, mode)
            result = original(*args, **kwargs)
            self._run("Saving a step", self._fit.end_single, mode, result)
            return result

        return on_batch
