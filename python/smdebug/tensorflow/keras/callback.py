"""Makes a hook a callback of the Keras packages that the program uses."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

PACKAGES = ("keras", "tf_keras")


class CallbackMethods:
    """What both generations of Keras ask of a callback, besides the methods of a hook."""

    # Keras 2: logs may be tensors, which are read on saved steps alone.
    _supports_tf_logs = True
    params: Any = None

    def set_params(self, params: Any) -> None:
        """What Keras says about the run."""
        self.params = params

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Nothing to do."""

    def on_batch_begin(self, batch: int, logs: Any = None) -> None:
        """An old name of on_train_batch_begin, which Keras calls itself."""

    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        """An old name of on_train_batch_end, which Keras calls itself."""

    def _implements_train_batch_hooks(self) -> bool:
        return True

    _implements_test_batch_hooks = _implements_train_batch_hooks
    _implements_predict_batch_hooks = _implements_train_batch_hooks


def imported_packages() -> list[ModuleType]:
    """The Keras packages of the program, complete ones."""
    found = [sys.modules.get(name) for name in PACKAGES]
    return [package for package in found if package is not None and hasattr(package, "Model")]


def callback_classes() -> tuple[type, ...]:
    """The classes of callbacks of all Keras packages that are imported, or of the one to be."""
    packages = imported_packages() or [_wanted_package()]
    return tuple(package.callbacks.Callback for package in packages)


def _wanted_package() -> ModuleType:
    """The package that TensorFlow would take, else whatever is installed."""
    legacy = os.environ.get("TF_USE_LEGACY_KERAS", "").lower() in ("1", "true")
    names = reversed(PACKAGES) if legacy else PACKAGES
    missing: list[ModuleNotFoundError] = []
    for name in names:
        try:
            return import_module(name)
        except ModuleNotFoundError as error:
            missing.append(error)
    raise missing[0]
