"""What one run of a step gives: filled by wrappers while a function is traced or runs.

Wrappers are attributes of the model, its layers and its optimizer, and are there only while a
capturing function is made or called. They find the record of their step in thread-local storage:
wrappers of different installations may meet in one step, and replicas are traced in threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from smdebug.logger import get_logger
from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.names import ModelNames

# The key of captured tensors in what a step returns.
CAPTURE = "smdebug_capture"
# The key of what predict_step returned.
OUTPUT = "smdebug_output"

_current = threading.local()


@dataclass(frozen=True)
class Needs:
    """What a step has to give: the reason why a function is made."""

    inputs: bool = False
    labels: bool = False
    predictions: bool = False
    gradients: bool = False
    layers: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.inputs or self.labels or self.predictions or self.gradients or self.layers)


class Skipped:
    """Says once that tensors of a kind cannot be had."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def say(self, message: str) -> None:
        """To the log, unless it was said before."""
        if message not in self._said:
            self._said.add(message)
            get_logger().warning(message)


class Record:
    """The tensors of one step. One thread."""

    def __init__(self, engine: Engine, names: ModelNames, needs: Needs, skipped: Skipped) -> None:
        self._engine = engine
        self._names = names
        self._skipped = skipped
        self.needs = needs
        self.graph = engine.graph()
        self._values: dict[str, Any] = {}
        self._calls: dict[str, list[Any]] = {}  # stem of a layer's tensors → those of its calls
        self._given: frozenset[str] = frozenset()  # what a train_step of the user returned for us

    @property
    def is_building(self) -> bool:
        """Whether Keras only looks at shapes, in a graph of its own, to build a model."""
        graph = self._engine.graph()
        if graph is None or graph is self.graph:
            return False
        return self.graph is None or getattr(graph, "name", "").startswith("scratch")

    # ---- what wrappers see

    def add_data(self, data: Any) -> None:
        """What the iterator gave."""
        x, y, _ = self._engine.unpack(data)
        if self.needs.inputs and "smdebug_x" not in self._given:
            self._add("input", "inputs", x)
        if self.needs.labels and y is not None and "smdebug_y" not in self._given:
            self._add("output", "labels", y)

    def add_predictions(self, outputs: Any) -> None:
        """What the model gave; the last call counts."""
        if self.needs.predictions:
            self._add("output", "predictions", outputs)

    def add_layer(self, layer: str, inputs: Any, outputs: Any) -> None:
        """A call of a layer."""
        for stem, tensors in ((f"{layer}/inputs", inputs), (f"{layer}/outputs", outputs)):
            found = [t for t in self._tensors(tensors) if self._is_ours(t, stem)]
            found = [self._engine.kept(t) for t in found]
            if len(found) > 1 and isinstance(tensors, list | tuple) and _are_alike(found):
                found = [self._engine.stack(found)]
            self._calls.setdefault(stem, []).extend(found)

    def add_gradients(self, gradients: Any, variables: Any, scale: Any = None) -> None:
        """What the optimizer got, multiplied with `scale` before."""
        for gradient, variable in zip(gradients, variables, strict=False):
            if gradient is not None:
                dense = self._engine.dense(gradient)
                value = dense if scale is None else dense / self._like(scale, dense)
                self._put(f"gradient:{self._names.gradient(variable)}", value)

    def add_given(self, given: dict[str, Any], variables: Any) -> None:
        """What a train_step of the user has returned for us; it counts more than what was seen."""
        for key, kind, stem in (
            ("smdebug_x", "input", "inputs"),
            ("smdebug_y", "output", "labels"),
            ("smdebug_y_pred", "output", "predictions"),
        ):
            if key in given:
                self._add(kind, stem, given[key])
        if "smdebug_gradients" in given:
            self._forget("gradient:")
            self.add_gradients(self._engine.flatten(given["smdebug_gradients"]), variables)
        layers = given.get("smdebug_layer_outputs")
        if layers is not None and not isinstance(layers, dict):
            layers = dict(zip(self._names.layers(), layers, strict=False))
        for name, value in (layers or {}).items():
            self._calls.pop(f"{name}/outputs", None)
            self._add("layer", f"{name}/outputs", value)
        self._given = frozenset(given)

    def finish(self) -> dict[str, Any]:
        """The tensors by kind and name, as a function can return them."""
        for stem, tensors in self._calls.items():
            names = [stem] if len(tensors) == 1 else [f"{stem}_{i}" for i in range(len(tensors))]
            for name, tensor in zip(names, tensors, strict=True):
                self._put(f"layer:{name}", tensor)
        return self._values

    # ---- how they are kept

    def _add(self, kind: str, stem: str, structure: Any) -> None:
        self._forget(f"{kind}:{stem}")
        tensors = self._tensors(structure)
        is_one = self._engine.is_tensor(structure) or hasattr(structure, "shape")
        for i, tensor in enumerate(tensors):
            self._put(f"{kind}:{stem}" if is_one else f"{kind}:{stem}_{i}", tensor)

    def _put(self, key: str, tensor: Any) -> None:
        if self._is_ours(tensor, key.partition(":")[2]):
            self._values[key] = self._engine.kept(tensor)

    def _is_ours(self, tensor: Any, name: str) -> bool:
        """Whether a tensor has a value where the step returns it."""
        if self._engine.backend == "torch":
            return getattr(tensor, "device", None) != self._engine.framework.device("meta")
        graph = getattr(tensor, "graph", None) if self._engine.backend == "tensorflow" else None
        if graph is None or graph is self.graph:
            return True
        if self.graph is not None:
            self._skipped.say(
                f"'{name}' is computed inside a loop, a branch or another function: it cannot be "
                "saved."
            )
        return False

    def _forget(self, prefix: str) -> None:
        for key in [key for key in self._values if key.startswith(prefix)]:
            del self._values[key]

    def _tensors(self, structure: Any) -> list[Any]:
        return [leaf for leaf in self._engine.flatten(structure) if self._engine.is_tensor(leaf)]

    def _like(self, scale: Any, tensor: Any) -> Any:
        if self._engine.backend == "tensorflow":
            return self._engine.framework.cast(scale, tensor.dtype)
        return scale


def current_record() -> Record | None:
    """The record of the step that runs in this thread."""
    return getattr(_current, "record", None)


def set_current_record(record: Record | None) -> Record | None:
    """Makes this the record of the thread; the one before it."""
    before = current_record()
    _current.record = record
    return before


def _are_alike(tensors: list[Any]) -> bool:
    first = tensors[0]
    return all(tuple(t.shape) == tuple(first.shape) and t.dtype == first.dtype for t in tensors[1:])


class Attributes:
    """Attributes of objects, replaced until the end of a `with` block, past their __setattr__."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, value: Callable[..., Any]) -> None:
        """Replaces an attribute of this instance alone."""
        self._before.append((owner, name, vars(owner).get(name, self)))
        object.__setattr__(owner, name, value)

    def __enter__(self) -> Attributes:
        return self

    def __exit__(self, *exc: object) -> None:
        while self._before:
            owner, name, before = self._before.pop()
            if before is self:
                vars(owner).pop(name, None)
            else:
                object.__setattr__(owner, name, before)
