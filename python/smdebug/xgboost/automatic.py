"""The hook of scripts that do not know of it: its data are those of the training."""

from __future__ import annotations

import os
from typing import Any

from smdebug.boosting.automatic import make_hook
from smdebug.boosting.rehearsal import Rehearsing
from smdebug.xgboost.hook import Hook
from smdebug.xgboost.rounds import EvalsLog


class AutomaticHook(Hook):
    """Knows the data of a training when its first round is over."""

    def meet(self, train_data: Any, evals: Any) -> None:
        """The matrices of a training; the last one that is not trained on validates."""
        others = [data for data, _ in evals or () if data is not train_data]
        validation_data = others[-1] if others else None
        if train_data is not self.train_data or validation_data is not self.validation_data:
            self.set_data(train_data=train_data, validation_data=validation_data)


class Rehearsal(Rehearsing, AutomaticHook):
    """The hook of `smdebug plan`."""

    def before_iteration(self, model: Any, epoch: int, evals_log: EvalsLog) -> bool:
        """Called by XGBoost."""
        self.begin_measuring()
        return super().before_iteration(model, epoch, evals_log)


def make_automatic_hook() -> AutomaticHook:
    """The hook that the job's JSON file describes."""
    return make_hook(Rehearsal if "SMDEBUG_PLAN" in os.environ else AutomaticHook)
