"""One tensor of a recorded run: its values, reductions and shapes over time."""

from __future__ import annotations

import enum
from numbers import Integral
from typing import TYPE_CHECKING, Any

from smdebug._core import ModeKeys
from smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)

if TYPE_CHECKING:
    import numpy as np

    from smdebug.trial import Trial

# How long a look for a file that the index promises takes.
_MISSING_FILE_WAIT_SECS = 2.0
# Steps are whole numbers of 64 bits.
_STEPS_END = 1 << 63


class StepState(enum.Enum):
    """What is known of a step."""

    UNAVAILABLE = 0
    AVAILABLE = 1
    NOT_YET_AVAILABLE = 2


def mode_argument(mode: Any) -> ModeKeys:
    """Checks an argument that must be one of the modes."""
    if not isinstance(mode, ModeKeys):
        raise SMDebugValueError(
            f"mode must be one of modes.TRAIN, EVAL, PREDICT, GLOBAL, not {mode!r}."
        )
    return mode


def step_argument(step: Any) -> int:
    """Checks an argument that must be a step number."""
    # Plain numbers, which nearly all are, need no look at abstract classes.
    if type(step) is int or (isinstance(step, Integral) and not isinstance(step, bool)):
        number = int(step)
        if not -_STEPS_END <= number < _STEPS_END:
            raise SMDebugValueError(f"No step has the number {number}.")
        return number
    raise SMDebugTypeError(f"A step must be a whole number, not {step!r}.")


class Tensor:
    """A tensor by its name. `step_num` is a step of `mode`; with GLOBAL it is a global step."""

    def __init__(self, name: str, trial: Trial) -> None:
        self.name = name
        self.trial = trial
        self._cached: dict[tuple[Any, ...], Any] = {}

    @property
    def original_name(self) -> str | None:
        """The framework's own name, where a shape was saved with it."""
        return self.trial._core.original_name(self.name)

    def __repr__(self) -> str:
        return f"Tensor(name={self.name!r}, trial={self.trial.name!r})"

    def __str__(self) -> str:
        from smdebug.summary import tensor_text

        return tensor_text(self)

    def _repr_html_(self) -> str:
        from smdebug.summary import tensor_html

        return tensor_html(self)

    def steps(
        self, mode: ModeKeys = ModeKeys.GLOBAL, show_incomplete_steps: bool = False
    ) -> list[int]:
        """Sorted steps at which the tensor was saved."""
        self.trial._refresh()
        return self.trial._core.tensor_steps(
            self.name, mode_argument(mode), bool(show_incomplete_steps)
        )

    def prev_steps(
        self, step: int, n: int | None = None, mode: ModeKeys = ModeKeys.GLOBAL
    ) -> list[int]:
        """The last `n` steps at which it was saved, up to and including `step`."""
        steps = [s for s in self.steps(mode) if s <= step_argument(step)]
        if n is None:
            return steps
        if step_argument(n) < 0:
            raise SMDebugValueError(f"n must not be negative, but is {n}.")
        return steps[-n:] if n else []

    def workers(self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL) -> list[str]:
        """Workers that saved it at this step."""
        step, mode = step_argument(step_num), mode_argument(mode)
        found = self.trial._core.tensor_workers(self.name, step, mode)
        if not found:
            self.trial._refresh()
            found = self.trial._core.tensor_workers(self.name, step, mode)
        if not found:
            raise TensorUnavailableForStep(self.name, step, mode)
        return found

    # --- values

    def value(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> np.ndarray:
        """The whole tensor at a step, of one worker or of the first that has it."""
        step, mode = step_argument(step_num), mode_argument(mode)

        def look() -> Any:
            return self.trial._core.value(self.name, step, mode, worker)

        found = self._find(look, ("value", step, mode, worker), step, mode, worker)
        if found is None:
            raise self._without(step, mode, worker)
        return found

    def values(
        self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, np.ndarray]:
        """The values at all steps."""
        return {step: self.value(step, mode, worker) for step in self.steps(mode)}

    def reduction_value(
        self,
        step_num: int,
        reduction_name: str,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        abs: bool = False,
    ) -> Any:
        """A reduction as it was saved, or computed from the value if that was saved."""
        step, mode = step_argument(step_num), mode_argument(mode)

        def look() -> Any:
            return self.trial._core.reduction_value(
                self.name, step, reduction_name, mode, worker, bool(abs)
            )

        key = ("reduction", step, mode, worker, reduction_name, bool(abs))
        found = self._find(look, key, step, mode, worker)
        if found is None:
            raise self._without(step, mode, worker)
        return found

    def reduction_values(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[tuple[str, bool], Any]:
        """All reductions that were saved: {(name, whether of absolute values): value}."""
        step, mode = step_argument(step_num), mode_argument(mode)

        def look() -> Any:
            return self.trial._core.reduction_values(self.name, step, mode, worker)

        return self._find(look, ("reductions", step, mode, worker), step, mode, worker)

    def shape(
        self, step_num: int, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> tuple[int, ...]:
        """The shape, as it was saved or as the value has it."""
        step, mode = step_argument(step_num), mode_argument(mode)

        def look() -> Any:
            return self.trial._core.shape(self.name, step, mode, worker)

        found = self._find(look, ("shape", step, mode, worker), step, mode, worker)
        if found is None:
            raise ShapeUnavailableForStep(self.name, step, mode)
        return found

    def shapes(
        self, mode: ModeKeys = ModeKeys.GLOBAL, worker: str | None = None
    ) -> dict[int, tuple[int, ...]]:
        """The shapes at all steps."""
        return {step: self.shape(step, mode, worker) for step in self.steps(mode)}

    def series(
        self,
        reduction: str | None = None,
        mode: ModeKeys = ModeKeys.GLOBAL,
        worker: str | None = None,
        show_incomplete_steps: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        """(steps, numbers) over time as two arrays.

        `reduction` is a name such as "mean" or "abs_max"; without it the value itself, which must be
        a single number.
        """
        if worker is not None and not self.trial._core.has_worker(worker):
            self.trial._refresh()
            if not self.trial._core.has_worker(worker):
                raise InvalidWorker(worker)
        self.trial._refresh()
        found: Any = self.trial._core.series(
            self.name, reduction or "", mode_argument(mode), worker or "", show_incomplete_steps
        )
        return found

    # --- looking things up

    def _find(
        self, look: Any, key: tuple[Any, ...], step: int, mode: ModeKeys, worker: str | None
    ) -> Any:
        """What `look` finds; None if the tensor is there, but not in this form."""
        if worker is not None and not isinstance(worker, str):
            raise SMDebugTypeError(f"worker must be a worker's name or None, not {worker!r}.")
        found = self._cached.get(key) if self._cached else None
        if found is not None:
            return found
        found = self._read(look, step, mode)
        if found is None:
            self.trial._refresh()
            found = self._read(look, step, mode)
        if found is None:
            self._explain_absence(step, mode, worker)
        elif self.trial.cache:
            self._cached[key] = found
        return found

    def _without(self, step: int, mode: ModeKeys, worker: str | None) -> TensorUnavailableForStep:
        """The tensor is there, but not what was asked for: perhaps other reductions, or a shape."""
        stored = self.trial._core.reduction_values(self.name, step, mode, worker)
        return TensorUnavailableForStep(self.name, step, mode, has_reductions=bool(stored))

    def _explain_absence(self, step: int, mode: ModeKeys, worker: str | None) -> None:
        """Raises what a missing step, worker or tensor stands for; returns if only the form is missing."""
        core = self.trial._core
        saved_by = core.tensor_workers(self.name, step, mode)
        if worker is not None and not (core.has_worker(worker) or worker in core.workers):
            raise InvalidWorker(worker)
        if not saved_by:
            state = StepState(core.state(mode, step))
            if state is StepState.NOT_YET_AVAILABLE:
                raise StepNotYetAvailable(step, mode)
            if state is StepState.UNAVAILABLE:
                raise StepUnavailable(step, mode)
            raise TensorUnavailableForStep(self.name, step, mode)
        if worker is not None and worker not in saved_by:
            raise InvalidWorker(worker)

    def _read(self, look: Any, step: int, mode: ModeKeys) -> Any:
        """Waits for a file that the index promises, as long as there is hope for it."""
        tries = 0
        while True:
            try:
                return look()
            except FileNotFoundError as missing:
                tries += 1
                is_lost = self._is_lost(step, mode)
                if not is_lost:
                    self.trial._core.wait(_MISSING_FILE_WAIT_SECS)
                    self.trial._core.refresh()
                if is_lost or tries >= self.trial._missing_file_retries:
                    raise TensorUnavailableForStep(
                        self.name, step, mode, reason=str(missing)
                    ) from missing

    def _is_lost(self, step: int, mode: ModeKeys) -> bool:
        """The job has ended, or a later step is there: a file that is missing now will not come."""
        core = self.trial._core
        last = core.last_step(ModeKeys.GLOBAL)
        here = core.global_step(mode, step)
        return (
            core.has_ended
            or core.loaded_all
            or (last is not None and here is not None and last > here)
        )
