"""The hook for XGBoost: a callback that is given to `train`, `cv` or a scikit-learn class."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import xgboost
from xgboost.callback import TrainingCallback

from smdebug.boosting.hook import BoostingHook
from smdebug.xgboost import data as xgboost_data
from smdebug.xgboost.rounds import BoosterRound, EvalsLog, FoldsRound
from smdebug.xgboost.worker import find_worker


class Hook(BoostingHook, TrainingCallback):
    """Records boosting: `xgboost.train(..., callbacks=[Hook("run")])`. A round is a step.

    Predictions and labels are those of `validation_data`, SHAP values those of `train_data`: a
    DMatrix, or a path and a content type. `shap_max_rows` computes them for the first rows only.
    """

    framework: ClassVar[str] = "XGBoost"
    _worker = staticmethod(find_worker)
    _check_data = staticmethod(xgboost_data.check)

    def _set_up(self) -> None:
        super()._set_up()
        self._linear: bool | None = None

    # ---- data

    def _validation_matrix(self) -> Any:
        found = self._data["validation_data"] = xgboost_data.load(self.validation_data)
        return found

    def _training_matrix(self) -> Any:
        if "shap_rows" not in self._data:
            found = self._data["train_data"] = xgboost_data.load(self.train_data)
            rows = None if found is None else xgboost_data.first_rows(found, self.shap_max_rows)
            self._data["shap_rows"] = rows
        return self._data["shap_rows"]

    def _is_linear(self, model: Any) -> bool:
        if self._linear is None:
            learner = json.loads(model.save_config())["learner"]
            self._linear = learner["gradient_booster"]["name"] == "gblinear"
        return self._linear

    # ---- the callback

    def before_training(self, model: Any) -> Any:
        """Called by XGBoost."""
        self._guarded("Beginning a training", self._before_training, model)
        return model

    def _before_training(self, model: Any) -> None:
        is_one = isinstance(model, xgboost.Booster)  # cross-validation has several
        self._begin_training(model.num_boosted_rounds if is_one else lambda: 0)
        self._linear = None

    def before_iteration(self, model: Any, epoch: int, evals_log: EvalsLog) -> bool:
        """Called by XGBoost: what a round saves belongs to the step of its number."""
        self._guarded("Beginning a round", self._begin_round, epoch)
        return False

    def after_iteration(self, model: Any, epoch: int, evals_log: EvalsLog) -> bool:
        """Called by XGBoost. Never ends the training."""
        self._guarded("Recording a round", self._after_iteration, model, evals_log)
        return False

    def _after_iteration(self, model: Any, log: EvalsLog) -> None:
        if isinstance(model, xgboost.Booster):
            self._record(lambda: BoosterRound(self, model, log))
        else:
            self._record(lambda: FoldsRound(log))

    def after_training(self, model: Any) -> Any:
        """Called by XGBoost."""
        self._guarded("Ending a training", self._end_training)
        return model
