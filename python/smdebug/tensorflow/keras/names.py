"""Names of the tensors of a Keras model: the same for both generations, as far as that can be."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.engine import Engine

Kind = _core.Kind

# A variable whose name matches is a bias, any other a weight.
BIAS = re.compile("^(?!gradient).*bias")


class ModelNames:
    """Names of the variables of a model, which may get more of them. One thread at a time."""

    def __init__(self, model: Any, engine: Engine) -> None:
        self._model = model
        self._engine = engine
        self._names: dict[int, str] = {}
        self._count = -1

    @property
    def revision(self) -> int:
        """Changes when the model has got variables."""
        return len(self._weights())

    def variable(self, variable: Any) -> str:
        """The name of a variable of the model, such as `dense/kernel:0`."""
        found = self._names.get(id(variable))
        if found is None or self._count != self.revision:
            self._learn()
            found = self._names.get(id(variable))
        return found if found is not None else self.plain(variable)

    def gradient(self, variable: Any) -> str:
        """The name of the gradient of a variable."""
        return f"gradients/{_stem(self.variable(variable))}Grad"

    def weights(self) -> Iterator[tuple[str, Kind, Any]]:
        """(name, weight or bias, variable) for all layers of the model."""
        for layer in self._model.layers if self._weights() else ():
            for variable in layer.weights:
                name = self.variable(variable)
                yield f"{layer.name}/weights/{name}", kind_of(name), variable

    def layers(self) -> list[str]:
        """The names of the layers of the model."""
        return [layer.name for layer in self._model.layers]

    def gradients(self) -> Iterator[str]:
        """The names of all gradients."""
        for variable in self._model.trainable_variables if self._weights() else ():
            yield self.gradient(variable)

    def plain(self, variable: Any) -> str:
        """The name of a variable, whether or not it is one of the model."""
        name = variable_name(variable)
        prefix = f"{self._model.name}/"
        if not self._engine.is_legacy and self._is_sequential() and name.startswith(prefix):
            return name[len(prefix) :]
        return name

    def _learn(self) -> None:
        self._count = self.revision
        taken: dict[str, int] = {}
        self._names = {}
        for variable in self._weights():
            name = self.plain(variable)
            times = taken.get(name, 0)
            taken[name] = times + 1
            self._names[id(variable)] = name if times == 0 else f"{_stem(name)}_{times}:0"

    def _weights(self) -> list[Any]:
        try:
            return self._model.weights
        except ValueError:  # Keras 2 says so of a model that is not built yet
            return []

    def _is_sequential(self) -> bool:
        return isinstance(self._model, self._engine.package.Sequential)


def variable_name(variable: Any) -> str:
    """`v.name` of TensorFlow, the path of Keras 3; both end in `:0`."""
    name = str(getattr(variable, "path", None) or variable.name)
    return name if re.search(r":\d+$", name) else f"{name}:0"


def kind_of(name: str) -> Kind:
    """Weight or bias, by the name of the variable."""
    return Kind.bias if BIAS.search(name) else Kind.weight


def optimizer_variables(optimizer: Any, is_variable: Callable[[Any], bool]) -> dict[str, Any]:
    """The variables of an optimizer, by name."""
    variables = optimizer.variables
    if isinstance(variables, list | tuple):
        found = list(variables)
        rate = getattr(optimizer, "learning_rate", None)
        if is_variable(rate) and all(rate is not variable for variable in found):
            found.append(rate)
    elif hasattr(optimizer, "get_config") and hasattr(optimizer, "iterations"):
        # A legacy optimizer of Keras 2: its slots are left out.
        found = [optimizer.iterations]
        for key in optimizer.get_config():
            value = getattr(optimizer, key, None)
            if is_variable(value):
                found.append(value)
    else:
        found = list(variables())
    return {variable_name(variable): variable for variable in found}


def _stem(name: str) -> str:
    return re.sub(r":\d+$", "", name)


class LoopNames:
    """Names of variables in loops that never say which model they train."""

    def __init__(self) -> None:
        self._models: list[Any] = []
        self._sequential: dict[str, bool] = {}  # whether a Sequential has this name

    def add_model(self, model: Any) -> None:
        """The variables of this model are named as in fit."""
        self._models.append(model)

    def variable(self, variable: Any) -> str:
        """The name of a variable, without that of a Sequential around it."""
        name = variable_name(variable)
        prefix, slash, rest = name.partition("/")
        if not hasattr(variable, "path") or not slash or "/" not in rest:
            return name
        if prefix not in self._sequential:
            self._sequential[prefix] = self._is_sequential(prefix)
        return rest if self._sequential[prefix] else name

    def gradient(self, variable: Any) -> str:
        """The name of the gradient of a variable."""
        return f"gradients/{_stem(self.variable(variable))}Grad"

    def _is_sequential(self, name: str) -> bool:
        keras: Any = sys.modules.get("keras")
        for model in self._models:
            if model.name == name:
                return isinstance(model, keras.Sequential)
        # A variable does not know its model. Asked once per name.
        return any(
            issubclass(type(found), keras.Sequential) and found.name == name
            for found in gc.get_objects()
        )
