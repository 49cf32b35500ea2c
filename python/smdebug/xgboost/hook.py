"""The hook for XGBoost: a callback that is given to `train`, `cv` or a scikit-learn class."""

from __future__ import annotations

import json
import os
from typing import Any, ClassVar

import xgboost
from xgboost.callback import TrainingCallback

from smdebug import _core
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

    def __init__(
        self,
        out_dir: str | os.PathLike[str] | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        reduction_config: _core.ReductionConfig | None = None,
        save_config: Any = None,
        include_regex: Any = None,
        include_collections: Any = None,
        save_all: bool = False,
        include_workers: str = "one",
        hyperparameters: dict[str, Any] | None = None,
        train_data: Any = None,
        validation_data: Any = None,
        *,
        shap_max_rows: int | None = None,
        **options: Any,
    ) -> None:
        train_data = xgboost_data.check(train_data, "train_data")
        validation_data = xgboost_data.check(validation_data, "validation_data")
        self._configure(
            {
                "out_dir": out_dir,
                "export_tensorboard": export_tensorboard,
                "tensorboard_dir": tensorboard_dir,
                "dry_run": dry_run,
                "reduction_config": reduction_config,
                "save_config": save_config,
                "include_regex": include_regex,
                "include_collections": include_collections,
                "save_all": save_all,
                "include_workers": include_workers,
                **options,
            },
            hyperparameters,
            shap_max_rows,
        )
        self.train_data = train_data
        self.validation_data = validation_data

    def _set_up(self) -> None:
        super()._set_up()
        self._linear: bool | None = None

    # ---- data

    @property
    def train_data(self) -> Any:
        """What SHAP values are computed of."""
        return self._data.get("train_data")

    @train_data.setter
    def train_data(self, value: Any) -> None:
        self._data["train_data"] = xgboost_data.check(value, "train_data")
        self._data.pop("shap_rows", None)

    @property
    def validation_data(self) -> Any:
        """What predictions and labels are saved of."""
        return self._data.get("validation_data")

    @validation_data.setter
    def validation_data(self, value: Any) -> None:
        self._data["validation_data"] = xgboost_data.check(value, "validation_data")

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
