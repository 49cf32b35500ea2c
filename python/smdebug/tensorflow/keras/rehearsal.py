"""The hook of `smdebug plan` for Keras: does the work of the first steps, and ends the script."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.automatic import AutomaticRecorder
from smdebug.tensorflow.keras.fit import FitSteps
from smdebug.tensorflow.keras.loop import CustomLoop
from smdebug.tensorflow.keras.names import ModelNames
from smdebug.tensorflow.keras.offers import Offers, as_tensor
from smdebug.tensorflow.keras.requests import Requests
from smdebug.tensorflow.keras.traced import TracedSteps
from smdebug.tensorflow.rehearsal import TensorMeasurements

Modes = _core.ModeKeys


class RehearsalOffers(Offers):
    """Hands tensors to a core without a writer, and measures what saving them takes."""

    def __init__(self, core: Any, measurements: TensorMeasurements) -> None:
        super().__init__(core)
        self._measurements = measurements

    def save(self, kind: _core.Kind, named: Iterable[tuple[str, Any]]) -> None:
        """What a hook with a writer would do, but for the writing."""
        pairs = list(named)
        super().save(kind, pairs)
        for name, value in pairs:
            self._measurements.measure(name, as_tensor(value))


class RehearsalSteps(FitSteps):
    """The batches of fit are the steps that are measured."""

    measurements: TensorMeasurements

    def begin_batch(self, mode: Modes, batch: int) -> None:
        """A batch of this mode is about to run."""
        if mode == Modes.TRAIN:
            if self.capture is not None:
                names = self.capture.names
                self.measurements.add_model(self.model.name, lambda: names_of(names))
            self.measurements.begin()
        super().begin_batch(mode, batch)


class RehearsalLoop(CustomLoop):
    """The tapes of a loop are."""

    measurements: TensorMeasurements

    def before_step(self) -> None:
        """A step is about to begin."""
        self.measurements.add_model("loop", lambda: ())
        self.measurements.begin()


class RehearsalTracedSteps(TracedSteps):
    """Steps inside of a function end the process: TensorFlow would make an error of SystemExit."""

    def _on_host(self, *args: Any) -> int:
        try:
            return super()._on_host(*args)
        except SystemExit:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


class RehearsalRecorder(AutomaticRecorder):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    _measurements: TensorMeasurements

    def _set_up(self) -> None:
        self._measurements = TensorMeasurements(self._core)
        super()._set_up()

    def _make_offers(self) -> Offers:
        return RehearsalOffers(self._core, self._measurements)

    def _make_fit(self, requests: Requests) -> FitSteps:
        steps = RehearsalSteps(self._core, self._guard, self._offers, requests)
        steps.measurements = self._measurements
        return steps

    def _make_loop(self, requests: Requests) -> CustomLoop:
        loop = RehearsalLoop(self._core, self._guard, self._offers, requests)
        loop.measurements = self._measurements
        return loop

    def _make_traced(self) -> TracedSteps:
        return RehearsalTracedSteps(self._core, self._loop, self._offers)

    def _run(self, site: str, function: Callable[..., None], *args: Any) -> None:
        self._measurements.timed(super()._run, site, function, *args)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._run("Closing", self._measurements.finish)
        super()._close(at_exit)


def names_of(names: ModelNames) -> Iterator[str]:
    """What could be saved of a model."""
    yield from ("inputs", "labels", "predictions", "loss", "batch")
    for name, _, _ in names.weights():
        yield name
    yield from names.gradients()
    for layer in names.layers():
        yield from (f"{layer}/inputs", f"{layer}/outputs")
