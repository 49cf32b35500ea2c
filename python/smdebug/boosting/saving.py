"""What of a round is saved, and under which names; the same for every framework.

Nothing of a round is computed unless a collection that is due wants one of its names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np

from smdebug import _core
from smdebug.boosting.rounds import FeatureNames, Numbers, Round, Unavailable
from smdebug.exceptions import SMDebugTypeError
from smdebug.guard import Guard
from smdebug.hook import BaseHook
from smdebug.logger import get_logger

# A saved round that takes as long as this many others, and so much time, is worth a word.
MANY_ROUNDS = 10
LONG_SECS = 0.1


class SavingHook(BaseHook):
    """Saves what a round tells."""

    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = [
        ("all", [], False),
        ("default", [], False),
        ("hyperparameters", ["^hyperparameters/.*$"], True),
        ("metrics", ["^[^-/]+-.+$"], True),
        ("losses", [], True),
        ("predictions", ["^predictions$"], True),
        ("labels", ["^labels$"], True),
        ("feature_importance", ["^feature_importance/.*"], True),
        ("average_shap", ["^(average|mean)_shap/(?!bias$).+"], True),
        ("full_shap", ["^full_shap/(?!bias$).+"], True),
        ("trees", ["^trees/.*"], True),
    ]
    default_collections: ClassVar[list[str]] = ["metrics"]
    default_save_interval: ClassVar[int] = 10
    framework: ClassVar[str]

    hyperparameters: dict[str, Any] | None = None

    def _set_up(self) -> None:
        self._guard = Guard(self._core.is_strict)
        self._round = -1  # the last one of this training
        self._recorded = True  # the last one is
        self._round_began = 0.0
        self._told: set[str] = set()
        self._tagged: set[str] = set()
        self._names: FeatureNames | None = None

    def _tell_once(self, key: str, message: str) -> None:
        if key not in self._told:
            self._told.add(key)
            get_logger().warning(message)

    def _guarded(self, site: str, function: Callable[..., None], *args: Any) -> None:
        if self._guard.disabled or os.getpid() != self._pid:  # a forked child records nothing
            return
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)

    def _record(self, made: Callable[[], Round]) -> None:
        """The round is over."""
        if self._recorded:
            return
        self._recorded = True
        core = self._core
        if not core.is_step_wanted:
            return
        began = time.perf_counter()
        core.enter_cost()
        try:
            told = made()
            self._guarded("Saving hyperparameters", self._save_hyperparameters)
            self._guarded("Saving metrics", self._save_metrics, told)
            # What is watched for NaN, or kept for a report, are metrics alone: the rest takes time.
            if core.is_step_saved:
                self._save_model(told)
        finally:
            core.leave_cost()
        self._tell_cost(time.perf_counter() - began, began - self._round_began)

    def _tell_cost(self, secs: float, round_secs: float) -> None:
        if secs <= LONG_SECS or secs <= MANY_ROUNDS * round_secs:
            return
        shap = any(self._core.is_collection_active(name) for name in ("full_shap", "average_shap"))
        advice = (
            "SHAP values cost most: save them more rarely, or of fewer rows with shap_max_rows."
            if shap
            else "Save it more rarely if that is too long."
        )
        self._tell_once(
            "cost",
            f"Saving round {self._round} took {secs:.1f} s, as long as "
            f"{secs / max(round_secs, 1e-6):.0f} rounds of training. {advice}",
        )

    # ---- what goes to the core

    def _put(self, names: list[str], values: list[Any]) -> None:
        """Saves arrays of numbers."""
        for i, reason in _core.save_all(self._core, names, values):
            raise SMDebugTypeError(f"'{names[i]}' cannot be saved. {reason}")

    def _put_any(self, name: str, value: Any) -> None:
        """Saves an array or a list, of texts or numbers."""
        self._core.save_tensor(name, value, [])

    def _put_shared(self, names: list[str], value: Any) -> None:
        """Saves one array under several names."""
        self._core.save_named(names, value)

    # ---- what is saved of a round

    def _wants(self, collection: str, names: Iterable[str]) -> bool:
        core = self._core
        return core.is_collection_active(collection) or any(core.wants(name) for name in names)

    def _save_hyperparameters(self) -> None:
        for key, value in (self.hyperparameters or {}).items():
            name = f"hyperparameters/{key}"
            if self._core.wants(name):
                self._put_any(name, _plain(value))

    def _save_metrics(self, told: Round) -> None:
        names, values = [], []
        for name, value, loss in told.metrics():
            if name not in self._tagged:
                self._tagged.add(name)
                for collection in ("metrics", "losses") if loss else ("metrics",):
                    self.get_collection(collection).add_tensor_name(name)
            names.append(name)
            values.append(value)
        self._save_numbers(names, np.array(values, np.float64))

    def _save_numbers(self, names: list[str], values: Numbers) -> None:
        self._put(names, [values[i : i + 1] for i in range(len(names))])

    def _save_model(self, told: Round) -> None:
        features = told.features()
        if not features:
            return
        if self._names is None or self._names.features != list(features):
            self._names = FeatureNames(features, told.importance_types)
            if "bias" in features:
                for family in ("average", "mean", "full"):
                    collection = "full_shap" if family == "full" else "average_shap"
                    self.get_collection(collection).add_tensor_name(f"{family}_shap/bias")
        self._guarded("Saving predictions", self._save_predictions, told)
        self._guarded("Saving labels", self._save_labels, told)
        self._guarded("Saving feature importance", self._save_importance, told)
        self._guarded("Saving trees", self._save_trees, told)
        self._guarded("Saving SHAP values", self._save_shap, told)

    def _save_predictions(self, told: Round) -> None:
        if not self._wants("predictions", ["predictions"]):
            return
        found = told.predictions()
        if found is None:
            self._tell_missing("predictions", "validation_data")
        else:
            self._put(["predictions"], [found])

    def _save_labels(self, told: Round) -> None:
        if not self._wants("labels", ["labels"]):
            return
        found = told.labels()
        if found is None:
            self._tell_missing("labels", "validation_data with labels")
        else:
            self._put(["labels"], [found])

    def _save_importance(self, told: Round) -> None:
        assert self._names is not None
        if not self._wants("feature_importance", self._names.importance):
            return
        names, parts = [], []
        for kind in told.importance_types:
            scores = told.importances(kind)
            # Linear models have signed scores, and a list of them for several classes.
            values = [np.atleast_1d(np.asarray(score, np.float64)) for score in scores.values()]
            total = sum(float(np.abs(value).sum()) for value in values)
            for feature, value in zip(scores, values, strict=True):
                names.append(f"feature_importance/{kind}/{feature}")
                parts.append(value / total if total > 0 else np.zeros_like(value))
        self._put(names, parts)

    def _save_trees(self, told: Round) -> None:
        if not self._wants("trees", [f"trees/{column}" for column in told.tree_columns]):
            return
        try:
            columns = told.trees()
        except Unavailable as reason:
            self._tell_unavailable(reason)
            return
        for column, values in columns.items():
            if self._core.wants(f"trees/{column}"):
                self._put_any(f"trees/{column}", values)

    def _save_shap(self, told: Round) -> None:
        names = self._names
        assert names is not None
        full = self._wants("full_shap", names.full)
        average = self._wants("average_shap", [*names.average, *names.mean])
        if not full and not average:
            return
        try:
            values = told.shap()
        except Unavailable as reason:
            self._tell_unavailable(reason)
            return
        if values is None:
            self._tell_missing("SHAP values", "train_data")
            return
        if full:
            self._put_shared(names.full, values)
        if average:
            rows = tuple(range(values.ndim - 1))
            # Without the intercept, if a feature has its name.
            count = len(names.average)
            self._save_numbers(names.average, np.abs(values).sum(axis=rows)[:count])
            self._save_numbers(names.mean, values.mean(axis=rows)[:count])

    def _tell_missing(self, what: str, argument: str) -> None:
        self._tell_once(what, f"There is no {argument}: {what} are not saved.")

    def _tell_unavailable(self, reason: Unavailable) -> None:
        self._tell_once(
            "unavailable",
            f"{self.framework} does not tell all of this model, such as its trees or SHAP values; "
            f"what it does not tell is not saved. {reason}",
        )


def _plain(value: Any) -> Any:
    """A hyperparameter as numbers or text."""
    if isinstance(value, bool | int | float | np.number):
        return np.array([int(value) if isinstance(value, bool) else value])
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple | np.ndarray) and len(value) > 0:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array
        if array.dtype.kind == "U":
            return [str(text) for text in array.ravel()]
    return [str(value)]
