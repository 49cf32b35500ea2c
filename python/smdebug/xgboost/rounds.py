"""What XGBoost tells about a round of boosting, through its public interface alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import xgboost

from smdebug.boosting.rounds import Unavailable, is_loss
from smdebug.xgboost import trees

if TYPE_CHECKING:
    from smdebug.xgboost.hook import Hook

IMPORTANCE_TYPES = ("weight", "gain", "cover", "total_gain", "total_cover")
EvalsLog = dict[str, dict[str, list[Any]]]


def metrics_of(log: EvalsLog) -> Iterator[tuple[str, float, bool]]:
    """(name, value, whether it is a loss). Cross-validation gives a mean and its deviation."""
    for data, metrics in log.items():
        for metric, values in metrics.items():
            last = values[-1]
            mean, *deviation = last if isinstance(last, tuple) else (last,)
            yield f"{data}-{metric}", mean, is_loss(metric)
            if deviation:
                yield f"{data}-{metric}-std", deviation[0], False


class FoldsRound:
    """A round of cross-validation: there are several models, and only metrics are saved."""

    importance_types: Sequence[str] = ()
    tree_columns: Sequence[str] = ()

    def __init__(self, log: EvalsLog) -> None:
        self._log = log

    def metrics(self) -> Iterable[tuple[str, float, bool]]:
        return metrics_of(self._log)

    def features(self) -> Sequence[str]:
        return ()

    def predictions(self) -> Any:
        return None

    labels = shap = predictions

    def importances(self, kind: str) -> dict[str, Any]:
        return {}

    def trees(self) -> dict[str, Any]:
        return {}


class BoosterRound(FoldsRound):
    """A round of one model."""

    tree_columns: Sequence[str] = trees.COLUMNS

    def __init__(self, hook: Hook, model: Any, log: EvalsLog) -> None:
        super().__init__(log)
        self._hook = hook
        self._model = model
        # Linear models know one kind, and have no trees.
        self.importance_types = ("weight",) if hook._is_linear(model) else IMPORTANCE_TYPES

    def features(self) -> Sequence[str]:
        names = self._model.feature_names
        return names or [f"f{i}" for i in range(self._model.num_features())]

    def predictions(self) -> Any:
        data = self._hook._validation_matrix()
        return None if data is None else self._model.predict(data)

    def labels(self) -> Any:
        data = self._hook._validation_matrix()
        labels = None if data is None else data.get_label()
        if labels is None or labels.size == 0:
            return None
        # Before XGBoost 2, several targets came as one flat list.
        rows = data.num_row()
        return labels.reshape(rows, -1) if labels.ndim == 1 and labels.size > rows else labels

    def importances(self, kind: str) -> dict[str, Any]:
        return self._model.get_score(importance_type=kind)

    def trees(self) -> dict[str, Any]:
        if self._hook._is_linear(self._model):
            return {}
        model = self._model
        rounds = model.num_boosted_rounds()
        try:
            # The trees of the last round alone: a dump of all of them grows with the model.
            dumps = model[rounds - 1 : rounds].get_dump(dump_format="json", with_stats=True)
            return trees.table_of(dumps, (rounds - 1) * len(dumps))
        except (xgboost.core.XGBoostError, json.JSONDecodeError) as error:
            raise Unavailable(_first_line(error)) from error

    def shap(self) -> Any:
        data = self._hook._training_matrix()
        if data is None:
            return None
        try:
            return self._model.predict(data, pred_contribs=True)
        except xgboost.core.XGBoostError as error:
            raise Unavailable(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
