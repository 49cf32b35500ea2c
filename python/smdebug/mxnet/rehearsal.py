"""The hook of `smdebug plan`: does the work of the first steps, writes nothing, and ends the script."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from smdebug import _core
from smdebug.mxnet.arrays import view_of
from smdebug.mxnet.automatic import AutomaticHook
from smdebug.mxnet.capture import Capture
from smdebug.mxnet.recorder import Callbacks
from smdebug.rehearsal import Measurements


class TimedCallbacks(Callbacks):
    """Adds up the time of callbacks."""

    def __init__(self, core: Any, measurements: Measurements) -> None:
        super().__init__(core)
        self._measurements = measurements

    def run(self, site: str, function: Any, *args: Any) -> None:
        """As for other hooks."""
        self._measurements.timed(super().run, site, function, *args)


class RehearsalCapture(Capture):
    """Does the work of saving without a writer, and notes the arrays."""

    def __init__(
        self, core: Any, lock: Any, callbacks: TimedCallbacks, measurements: Measurements
    ) -> None:
        super().__init__(core, lock, callbacks)
        self._measurements = measurements

    def begin(self) -> None:
        """A step begins: the one before it is over."""
        self._measurements.begin_step(self.roots)
        super().begin()

    def save(
        self, names: list[str], arrays: list[Any], kind: _core.Kind = _core.Kind.automatic
    ) -> None:
        """What a hook with a writer would do, but for the writing."""
        begin = time.perf_counter()
        self.recorder.wait_for(arrays)
        self._measurements.waited(time.perf_counter() - begin)
        super().save(names, arrays, kind)
        for name, array in zip(names, arrays, strict=True):
            raw, _, reductions = _core.wanted(self._core, name)
            if raw or reductions:
                self._measure(name, array, raw, reductions)

    def _measure(self, name: str, array: Any, raw: bool, reductions: list[str]) -> None:
        begin = time.perf_counter()
        if reductions and array.size > 0:
            _core.reduce(view_of(array), reductions)
        if raw:
            array.asnumpy()
        secs = time.perf_counter() - begin
        dtype = np.dtype(array.dtype)
        label = dtype.names[0] if dtype.names else dtype.name  # bfloat16 is a field
        self._measurements.note(name, secs, list(array.shape), label, array.size * dtype.itemsize)


class Rehearsal(AutomaticHook):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    _measurements: Measurements

    def _make_callbacks(self) -> Callbacks:
        self._measurements = Measurements(self._core)
        return TimedCallbacks(self._core, self._measurements)

    def _make_capture(self) -> Capture:
        callbacks: Any = self._callbacks
        return RehearsalCapture(self._core, self._lock, callbacks, self._measurements)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._measurements.end_step()
            self._callbacks.run("Closing", self._measurements.write, self._capture.roots)
        super()._close(at_exit)
