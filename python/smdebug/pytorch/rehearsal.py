"""The hook of `smdebug plan`: does the work of the first steps, writes nothing, and ends the script."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from smdebug import _core
from smdebug.pytorch.automatic import AutomaticCapture, AutomaticHook
from smdebug.pytorch.callbacks import Callbacks
from smdebug.pytorch.recorder import Names
from smdebug.rehearsal import Measurements


class TimedCallbacks(Callbacks):
    """Adds up the time of callbacks."""

    def __init__(self, callbacks: Callbacks, measurements: Measurements) -> None:
        self.__dict__.update(callbacks.__dict__)
        self._measurements = measurements

    def run(self, site: str, function: Callable[..., object], *args: Any) -> None:
        """As for other hooks."""
        self._measurements.timed(super().run, site, function, *args)


class RehearsalCapture(AutomaticCapture):
    """Does the work of saving without a writer, and notes the tensors."""

    def __init__(
        self, core: Any, lock: Any, callbacks: TimedCallbacks, measurements: Measurements
    ) -> None:
        super().__init__(core, lock, callbacks)
        self._measurements = measurements
        self.sees_all = True

    def begin(self, early: list[tuple[str, torch.Tensor]]) -> None:
        """A step begins: the one before it is over."""
        self._measurements.begin_step(self.roots)
        super().begin(early)

    def save(
        self,
        names: Names,
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
        in_backward: bool = False,
    ) -> None:
        """What a hook with a writer would do, but for the writing."""
        super().save(names, tensors, kind, in_backward)
        for name, tensor in zip(names, tensors, strict=True):
            raw, _, reductions = _core.wanted(self._core, name)
            if not raw and not reductions:
                continue
            begin = time.perf_counter()
            for part, plain in self.recorder.plain(name, tensor):
                if reductions and plain.numel() > 0:
                    _core.reduce(plain.cpu(), reductions)
                if raw:
                    plain.clone()
                self._measurements.note(
                    part,
                    time.perf_counter() - begin,
                    list(plain.shape),
                    str(plain.dtype).removeprefix("torch."),
                    plain.numel() * plain.element_size(),
                )


class Rehearsal(AutomaticHook):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    def _set_up(self) -> None:
        super()._set_up()
        self._measurements = Measurements(self._core)
        callbacks = TimedCallbacks(self._callbacks, self._measurements)
        self._callbacks = callbacks
        self._use(RehearsalCapture(self._core, self._lock, callbacks, self._measurements))

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._measurements.end_step()
            self._guarded("Closing", self._measurements.write, self._capture.roots)
        super()._close(at_exit)
