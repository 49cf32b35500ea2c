"""A recorded run as the bench itself reads it: curves and tensors, by step of TRAIN."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import smdebug
from smdebug import modes

from faults.case import Case, Truth
from faults.layer import Array


class Evidence:
    """A case with its recorded run and what is known about it."""

    def __init__(self, case: Case, folder: Path) -> None:
        self.case = case
        self.truth = Truth.read(folder)
        self.trial = smdebug.create_trial(str(folder / "run"))
        # Runs of the bench are complete.
        self.trial.dynamic_refresh = False
        self.is_trees = case.trainer == "trees"
        self.mode = modes.GLOBAL if self.is_trees else modes.TRAIN

    @functools.cached_property
    def names(self) -> list[str]:
        return self.trial.tensor_names()

    def names_like(self, pattern: str) -> list[str]:
        return self.trial.tensor_names(regex=pattern)

    @functools.cached_property
    def loss_name(self) -> str:
        return "train-rmse" if self.is_trees else self.names_like("Loss_output_0$")[0]

    @functools.cached_property
    def loss(self) -> Array:
        """The loss of every training step."""
        return self.trial.tensor(self.loss_name).series(mode=self.mode)[1]

    @functools.cached_property
    def validation(self) -> tuple[Array, Array]:
        """(steps of TRAIN, mean losses): one point for each validation."""
        if self.is_trees:
            return self.trial.tensor("validation-rmse").series()
        steps, values = self.trial.tensor(self.loss_name).series(mode=modes.EVAL)
        last = [self.truth.train_step(self.trial.global_step(modes.EVAL, int(s))) for s in steps]
        points = sorted(set(last))
        means = [np.mean([v for v, p in zip(values, last, strict=True) if p == q]) for q in points]
        return np.array(points), np.array(means)

    def late_loss(self, count: int = 20) -> float:
        """The median of the last training losses; infinite if one of them is not finite."""
        late = self.loss[-count:]
        return float(np.median(late)) if np.isfinite(late).all() else float("inf")

    def loss_around(self, step: int, before: int, after: int) -> Array:
        return self.loss[max(0, step - before) : step + after]

    def series(
        self, name: str, reduction: str, worker: str | None = None, absolute: bool = False
    ) -> Array:
        """A statistic at every training step."""
        spelled = f"abs_{reduction}" if absolute else reduction
        return self.trial.matrix(spelled, tensors=[name], mode=self.mode, worker=worker).values[0]

    def raw_steps(self, name: str) -> list[int]:
        """Steps of TRAIN at which a tensor was saved whole."""
        settings = self.case.settings
        interval = settings.raw_interval
        wanted = {*range(0, settings.steps, interval), 1, 2}
        return sorted(wanted & set(self.trial.tensor(name).steps(mode=self.mode)))

    def value(self, name: str, step: int, worker: str | None = None) -> Array:
        return self.trial.tensor(name).value(step, mode=self.mode, worker=worker)

    def scalar(self, name: str) -> Array:
        return self.trial.tensor(f"scalar/{name}").series(mode=self.mode)[1]

    @functools.cached_property
    def weights(self) -> list[str]:
        return self.names_like(r"^(?!gradient|optimizer|reduced).*weight")

    def validation_classes(self) -> tuple[Array, Array]:
        """Labels and predicted classes of the last validation."""
        steps = self.trial.tensor("labels").steps(mode=modes.EVAL)[-4:]
        return tuple(  # type: ignore[return-value]
            np.concatenate([self.trial.tensor(n).value(s, mode=modes.EVAL).ravel() for s in steps])
            for n in ("labels", "predictions")
        )
