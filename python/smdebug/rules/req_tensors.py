"""The tensors and steps that a rule needs before it can judge a step."""

from __future__ import annotations

from collections.abc import Iterable, KeysView
from itertools import islice
from typing import Any

from smdebug.exceptions import SMDebugValueError, TensorUnavailable, TensorUnavailableForStep
from smdebug.tensor import StepState, Tensor, step_argument
from smdebug.trial import Trial


class RequiredTensorsForTrial:
    """What is needed of one trial. One thread at a time."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self._tensors: dict[str, Tensor] = {}
        self._steps: dict[str, list[int]] = {}
        self._held: list[tuple[Tensor, tuple[Any, ...]]] = []

    def add(self, name: str, steps: Iterable[int], should_match_regex: bool = False) -> None:
        """Needs the tensor, or all whose names the pattern is found in, at these steps."""
        wanted = [step_argument(step) for step in steps]
        if not should_match_regex:
            self._add(self.trial.tensor(name), wanted)
            return
        for found in self.trial.tensor_names(regex=name):
            self._add(self.trial.tensor(found), wanted)

    def _add(self, tensor: Tensor, steps: list[int]) -> None:
        self._tensors[tensor.name] = tensor
        self._steps.setdefault(tensor.name, []).extend(steps)

    def get_tensor_steps(self, name: str) -> list[int]:
        """The steps at which the tensor is needed."""
        if name not in self._steps:
            raise KeyError(f"Tensor '{name}' is not among the required ones.")
        return list(self._steps[name])

    def get_names(self) -> KeysView[str]:
        """The names of the tensors."""
        return self._tensors.keys()

    def get(self) -> list[Tensor]:
        """The tensors."""
        return list(self._tensors.values())

    def clear(self) -> None:
        """Needs nothing any more."""
        self.release()
        self._tensors = {}
        self._steps = {}

    def fetch(self) -> None:
        """Waits for the steps and reads what was saved: values, or else reductions.

        What was read is kept until `release()`, so that the rule does not read it a second time.
        Raises what a missing step or tensor stands for.
        """
        steps = sorted({step for steps in self._steps.values() for step in steps})
        # Steps that are there need no look for news: the rule's view of the run stays as it is.
        missing = [s for s in steps if self.trial.has_passed_step(s) is not StepState.AVAILABLE]
        if missing:
            self.trial.wait_for_steps(missing)
        before = self.trial.cache
        self.trial.cache = True
        try:
            for name, tensor in self._tensors.items():
                self._read(tensor, self._steps[name], not before)
        finally:
            self.trial.cache = before

    def _read(self, tensor: Tensor, steps: list[int], forget_later: bool) -> None:
        known = len(tensor._cached)
        try:
            for step in dict.fromkeys(steps):
                try:
                    tensor.value(step)
                except TensorUnavailableForStep as error:
                    if not error.has_reductions:
                        raise
                    tensor.reduction_values(step)
        finally:
            if forget_later:
                # Keys stand in the order in which they came.
                self._held += [(tensor, key) for key in islice(tensor._cached, known, None)]

    def release(self) -> None:
        """Forgets the values that were read, unless the trial keeps everything."""
        for tensor, key in self._held:
            tensor._cached.pop(key, None)
        self._held = []


class RequiredTensors:
    """What is needed of the trials of a rule. One thread at a time."""

    def __init__(self, base_trial: Trial, other_trials: Iterable[Trial] | None = None) -> None:
        self.base_trial = base_trial
        others = [] if other_trials is None else list(other_trials)
        self._by_trial = {
            id(trial): RequiredTensorsForTrial(trial) for trial in [base_trial, *others]
        }

    def _of(self, trial: Trial | None) -> RequiredTensorsForTrial:
        chosen = self.base_trial if trial is None else trial
        found = self._by_trial.get(id(chosen))
        if found is None:  # another object for the same run
            found = next((f for f in self._by_trial.values() if f.trial == chosen), None)
        if found is None:
            raise SMDebugValueError(f"The rule does not look at this trial: {chosen!r}")
        return found

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: Trial | None = None,
        should_match_regex: bool = False,
    ) -> None:
        """Needs a tensor at these steps; of the base trial, if no other one is given.

        Raises TensorUnavailable for a name that was not saved. With `should_match_regex` the name is
        a pattern, and all tensors that are there now and match are needed.
        """
        self._of(trial).add(name, steps, should_match_regex)

    def get_tensor_steps(self, name: str, trial: Trial | None = None) -> list[int]:
        """The steps at which a tensor is needed."""
        return self._of(trial).get_tensor_steps(name)

    def get_names(self, trial: Trial | None = None) -> KeysView[str]:
        """The names of the tensors that are needed."""
        return self._of(trial).get_names()

    def get(self, trial: Trial | None = None) -> list[Tensor]:
        """The tensors that are needed."""
        return self._of(trial).get()

    def clear(self) -> None:
        """Needs nothing any more."""
        for required in self._by_trial.values():
            required.clear()

    def fetch(self) -> None:
        """Waits for everything and reads it."""
        for required in self._by_trial.values():
            required.fetch()

    def release(self) -> None:
        """Forgets the values that were read."""
        for required in self._by_trial.values():
            required.release()


__all__ = ["RequiredTensors", "RequiredTensorsForTrial", "TensorUnavailable"]
