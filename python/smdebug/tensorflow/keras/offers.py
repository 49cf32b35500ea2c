"""Hands tensors and numbers of a model to the core, in lists, and says what cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from smdebug import _core
from smdebug.device_arrays import DeviceArrays
from smdebug.logger import get_logger
from smdebug.tensorflow.keras.capture import Capture
from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.names import optimizer_variables
from smdebug.tensorflow.keras.selection import Selection, Selections

Kind = _core.Kind

KINDS = {kind.name: kind for kind in (Kind.gradient, Kind.input, Kind.output, Kind.layer)}


class Offers:
    """What happens to the tensors of one step after another. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._arrays = DeviceArrays(core)
        self.selections = Selections(core)
        self._numbers: set[str] = set()  # saved at the step of this number
        self._numbers_step = -1
        self.dropped: dict[str, int] = {}

    # ---- numbers

    def begin(self, numbers: Mapping[str, Any]) -> None:
        """A step is being saved, with these losses and metrics."""
        self._numbers.clear()
        self._numbers_step = self._core.step
        selection = self.selections.now()
        for kind in (Kind.loss, Kind.metric):
            chosen = [
                (name, _number(value))
                for name, value in numbers.items()
                if _kind_of(name) == kind and selection.wants(kind, name)
            ]
            self._numbers.update(name for name, _ in chosen)
            self.save(kind, chosen)

    def save_anyway(self, numbers: Mapping[str, Any]) -> None:
        """Numbers of an epoch, saved at the current step if that has no such number yet."""
        if self._numbers_step != self._core.step:
            self._numbers.clear()
            self._numbers_step = self._core.step
        for name, value in numbers.items():
            if name not in self._numbers:
                self._numbers.add(name)
                self._core.save_undue(name, _number(value), _kind_of(name))

    # ---- tensors

    def save_captured(self, values: Mapping[str, Any]) -> None:
        """What a captured step gave, by kind and name."""
        selection = self.selections.now()
        for label, kind in KINDS.items():
            prefix = f"{label}:"
            named = ((k[len(prefix) :], v) for k, v in values.items() if k.startswith(prefix))
            self.save(kind, [(name, v) for name, v in named if selection.wants(kind, name)])

    def save_structure(self, kind: Kind, stem: str, structure: Any, engine: Engine | None) -> None:
        """The tensors of a structure under one name, or under numbered ones."""
        if structure is None or engine is None:
            return
        leaves = engine.flatten(structure)
        names = [stem] if leaves == [structure] else [f"{stem}_{i}" for i in range(len(leaves))]
        selection = self.selections.now()
        named = zip(names, leaves, strict=True)
        self.save(kind, [(n, engine.readable(v)) for n, v in named if selection.wants(kind, n)])

    def save_model(self, capture: Capture, replica: int = 0) -> None:
        """The weights, biases and optimizer variables of a model, as they are now."""
        selection = self.selections.now()
        weights = selection.weights(capture.names)
        state = self._optimizer_state(capture, selection)
        if not weights and not state:
            return
        if hasattr(capture.model, "jax_state_sync"):
            capture.model.jax_state_sync()
        read = capture.engine.readable
        for kind in (Kind.weight, Kind.bias):
            chosen = [(name, v) for name, known, v in weights if known == kind]
            self.save(kind, [(name, read(v, replica)) for name, v in chosen])
        self.save(Kind.optimizer_state, [(name, read(v, replica)) for name, v in state])

    def _optimizer_state(self, capture: Capture, selection: Selection) -> list[tuple[str, Any]]:
        optimizer = getattr(capture.model, "optimizer", None)
        if optimizer is None or not selection.may_hold_optimizer_state():
            return []
        return self.wanted_state(optimizer, capture.engine, selection)

    def wanted_state(
        self, optimizer: Any, engine: Engine, selection: Selection
    ) -> list[tuple[str, Any]]:
        """The variables of an optimizer that are saved, by name."""
        variables = optimizer_variables(optimizer, engine.is_variable)
        wants = selection.wants
        return [(n, v) for n, v in variables.items() if wants(Kind.optimizer_state, n)]

    def save(self, kind: Kind, named: Iterable[tuple[str, Any]]) -> None:
        """Saves tensors that the core can read; others are counted, and named once."""
        pairs = self._arrays.save(list(named), kind)
        if not pairs:
            return
        names = [name for name, _ in pairs]
        values = [as_tensor(value) for _, value in pairs]
        for i, reason in _core.save_all(self._core, names, values, kind, None):
            self._drop(names[i], reason)

    def let_go(self) -> None:
        """A step begins: what devices have read is not held on to."""
        self._arrays.end_step()

    def _drop(self, name: str, reason: str) -> None:
        if name not in self.dropped:
            get_logger().warning(f"'{name}' cannot be saved: {reason.splitlines()[0]}")
        self.dropped[name] = self.dropped.get(name, 0) + 1


def _kind_of(name: str) -> Kind:
    return Kind.loss if name in ("loss", "val_loss") else Kind.metric


def as_tensor(value: Any) -> Any:
    """A tensor without axes as an array, lest it is taken for a plain number."""
    is_plain = isinstance(value, int | float) or not hasattr(value, "shape")
    return value if is_plain or len(value.shape) else np.asarray(value)


def _number(value: Any) -> Any:
    """A number of the logs as Python's own, which is a tensor of one element."""
    if isinstance(value, int | float):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return value
