"""What the hooks of `smdebug plan` for TensorFlow and Keras measure; nothing is written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from smdebug import _core
from smdebug.rehearsal import Measurements


@dataclass(frozen=True)
class Rehearsed:
    """A model or a graph that is trained."""

    prefix: str
    names: Callable[[], Iterable[str]]  # of all that could be saved of it


class TensorMeasurements(Measurements):
    """Times of steps and callbacks, and the tensors that there are to record."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._models: dict[str, Rehearsed] = {}

    def add_model(self, prefix: str, names: Callable[[], Iterable[str]]) -> None:
        """Steps are those of this model, too."""
        self._models.setdefault(prefix, Rehearsed(prefix, names))

    def begin(self) -> None:
        """A step begins: the one before it is over. Ends the script if that was the last one."""
        self.begin_step(self._models.values())

    def finish(self) -> None:
        """The script has ended."""
        self.end_step()
        self.write(self._models.values())

    def measure(self, name: str, value: Any) -> None:
        """Does what saving a tensor takes, but for the writing, and notes it."""
        raw, _, reductions = _core.wanted(self._core, name)
        if not raw and not reductions:
            return
        begin = time.perf_counter()
        array = np.atleast_1d(value) if isinstance(value, int | float) else np.asarray(value)
        if reductions and array.size > 0:
            _core.reduce(value, reductions)
        if raw:
            array.copy()
        secs = time.perf_counter() - begin
        self.note(name, secs, list(array.shape), array.dtype.name, array.nbytes)

    def _all_names(self, models: Iterable[Any]) -> list[str]:
        names = set(super()._all_names([]))
        for model in models:
            names.update(model.names())
        return sorted(names)
