"""What Keras is built on: its generation, its backend, and how tensors of the backend are read.

A model tells which one it needs, so models of several packages can live in one process. Only
modules that the program has imported are touched. Immutable.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np


class Engine:
    """One Keras package on its backend."""

    def __init__(self, package: Any, is_legacy: bool) -> None:
        self.package = package
        self.is_legacy = is_legacy  # Keras 2
        self.backend: str = "tensorflow" if is_legacy else package.config.backend()
        module = {"tensorflow": "tensorflow", "jax": "jax", "torch": "torch"}.get(self.backend)
        self.framework: Any = sys.modules.get(module) if module is not None else None

    @property
    def is_known(self) -> bool:
        """Whether there is a way to capture tensors on this backend."""
        return self.framework is not None

    # ---- structures

    def flatten(self, structure: Any) -> list[Any]:
        """The leaves, those of dictionaries by sorted key."""
        if self.is_legacy:
            return self.framework.nest.flatten(structure)
        return self.package.tree.flatten(structure)

    def unpack(self, data: Any) -> tuple[Any, Any, Any]:
        """(inputs, labels, sample weights) of what an iterator gives."""
        return self.package.utils.unpack_x_y_sample_weight(data)

    # ---- tensors

    def is_tensor(self, value: Any) -> bool:
        """A dense tensor or an array with values, now or when a function runs."""
        if isinstance(value, np.ndarray):
            return True
        if self.backend == "tensorflow":
            return isinstance(value, self.framework.Tensor)
        if self.backend == "jax":
            return isinstance(value, self.framework.Array)
        return self.framework.is_tensor(value)

    def is_variable(self, value: Any) -> bool:
        """A variable of the backend or of Keras."""
        if self.is_legacy:
            return isinstance(value, self.framework.Variable)
        if isinstance(value, self.package.Variable):
            return True
        return self.backend == "tensorflow" and isinstance(value, self.framework.Variable)

    def kept(self, tensor: Any) -> Any:
        """The tensor as it is now, whatever the step does to it."""
        return tensor.detach().clone() if hasattr(tensor, "detach") else tensor

    def dense(self, gradient: Any) -> Any:
        """A gradient that may be sparse as a tensor."""
        if self.backend == "tensorflow" and not isinstance(gradient, self.framework.Tensor):
            return self.framework.convert_to_tensor(gradient)
        if self.backend == "torch" and getattr(gradient, "is_sparse", False):
            return gradient.to_dense()
        return gradient

    def stack(self, tensors: list[Any]) -> Any:
        """One tensor with one more axis."""
        if self.backend == "jax":
            return self.framework.numpy.stack(tensors)
        return self.framework.stack(tensors)

    def graph(self) -> Any:
        """The graph that is being built; None: operations run at once."""
        if self.backend != "tensorflow" or self.framework.executing_eagerly():
            return None
        return self.framework.compat.v1.get_default_graph()

    def not_converted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that TensorFlow does not rewrite while it traces."""
        if self.backend != "tensorflow":
            return function
        return self.framework.autograph.experimental.do_not_convert(function)

    # ---- values for the core

    def readable(self, value: Any, replica: int = 0) -> Any:
        """A tensor or variable as the core reads it, without a copy where that is possible."""
        if hasattr(value, "value") and not self.is_legacy and not callable(value.value):
            value = value.value  # a variable of Keras 3
        if self.backend == "torch" and hasattr(value, "detach"):
            value = value.detach()
            return value if value.device.type == "cpu" else value.cpu()
        if self.backend == "tensorflow":
            if isinstance(getattr(value, "values", None), tuple):
                value = value.values[replica]  # of this process
            if hasattr(value, "read_value"):
                return value.read_value()
        return value


@functools.lru_cache(maxsize=8)
def _engine(root: str) -> Engine:
    package = sys.modules[root]
    return Engine(package, not hasattr(package, "ops"))


def engine_of(model: Any) -> Engine | None:
    """The engine of a model or a layer; None: it is none of Keras."""
    for kind in type(model).__mro__:
        root = kind.__module__.partition(".")[0]
        if root in ("keras", "tf_keras") and hasattr(sys.modules.get(root), "Model"):
            return _engine(root)
    return None


def engine_of_variable(variable: Any) -> Engine | None:
    """The engine of a variable of Keras 3 or of TensorFlow; None: it is none."""
    engine = engine_of(variable)
    if engine is not None:
        return engine
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and isinstance(variable, tensorflow.Variable):
        return _plain_tensorflow()
    return None


@functools.cache
def _plain_tensorflow() -> Engine:
    """TensorFlow without a package of Keras: variables and tapes alone."""
    engine = Engine.__new__(Engine)
    engine.package = None
    engine.is_legacy = True
    engine.backend = "tensorflow"
    engine.framework = sys.modules["tensorflow"]
    return engine
