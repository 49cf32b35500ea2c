"""What the hooks for boosted trees have in common: collections, names, and a step for each round.

A hook of a framework tells about a round through an object like `Round`; nothing of a round is
computed unless a collection that is due wants one of its names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from smdebug import _core
from smdebug.collection import CollectionManager
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.guard import Guard
from smdebug.hook import BaseHook, InertCore
from smdebug.logger import get_logger

# Metrics that get better by growing; all others are losses.
INCREASING = frozenset({"auc", "aucpr", "map", "ndcg", "pre", "interval-regression-accuracy"})
TREES = "trees"
# A saved round that takes as long as this many others, and so much time, is worth a word.
MANY_ROUNDS = 10
LONG_SECS = 0.1

Numbers = Any  # an array


def is_loss(metric: str) -> bool:
    """Whether a metric of XGBoost gets better by shrinking: `rmse`, but not `ndcg@5-`."""
    return metric.partition("@")[0].rstrip("-") not in INCREASING


class Unavailable(Exception):
    """The framework does not tell this about the model; the text says why."""


class Round(Protocol):
    """What a framework tells about a round that is over."""

    importance_types: Sequence[str]
    tree_columns: Sequence[str]

    def metrics(self) -> Iterable[tuple[str, float, bool]]:
        """(name, value, whether it is a loss)."""

    def features(self) -> Sequence[str]:
        """Names of the features; empty: there is no model to look at."""

    def predictions(self) -> Numbers | None:
        """Of the validation data; None: there is none."""

    def labels(self) -> Numbers | None:
        """Of the validation data; None: there are none."""

    def importances(self, kind: str) -> dict[str, Any]:
        """The scores of features that are used, as the framework gives them."""

    def trees(self) -> dict[str, Any]:
        """The nodes of the trees that the round has added, by column."""

    def shap(self) -> Numbers | None:
        """Contributions to the predictions of the training data, the intercept last."""


class FeatureNames:
    """The names of tensors that depend on features. Made once for the features of a model."""

    def __init__(self, features: Sequence[str], kinds: Sequence[str]) -> None:
        self.features = list(features)
        # A feature of this name takes the place of the intercept.
        columns = [*features] if "bias" in features else [*features, "bias"]
        self.full = [f"full_shap/{name}" for name in columns]
        self.average = [f"average_shap/{name}" for name in columns]
        self.mean = [f"mean_shap/{name}" for name in columns]
        self.importance = [
            f"feature_importance/{kind}/{feature}" for kind in kinds for feature in features
        ]


class BoostingHook(BaseHook):
    """Records boosted trees: one step per round, from the callback of the framework."""

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
    shap_max_rows: int | None = None
    # Arguments of the constructor, or the path of a JSON file: what another core is made of.
    _recipe: dict[str, Any] | str | None = None
    _manager: CollectionManager | None = None  # its collections, if they are known already
    _is_copy = False

    def _configure(
        self,
        arguments: dict[str, Any],
        hyperparameters: dict[str, Any] | None,
        shap_max_rows: int | None,
    ) -> None:
        if hyperparameters is not None and not isinstance(hyperparameters, dict):
            raise SMDebugTypeError(
                f"hyperparameters must be a dict, not {type(hyperparameters).__name__}."
            )
        if shap_max_rows is not None and (type(shap_max_rows) is not int or shap_max_rows < 1):
            raise SMDebugValueError(
                f"shap_max_rows must be a whole number of at least 1, not {shap_max_rows!r}."
            )
        if arguments.get("reduction_config") is not None:
            get_logger().warning(
                f"What the hook for {self.framework} saves is not reduced; "
                "reduction_config is ignored."
            )
            arguments["reduction_config"] = None
        self.hyperparameters = hyperparameters
        self.shap_max_rows = shap_max_rows
        self._data: dict[str, Any] = {}
        self._recipe = arguments
        BaseHook.__init__(self, **arguments)

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """A hook configured by a JSON file: the given one, or what the environment names."""
        path = _core.config_file_path() if json_file_path is None else json_file_path
        self = super().create_from_json_file(path)
        self._data = {}
        self._recipe = os.path.abspath(os.path.expanduser(path))
        return self

    def _open(self) -> None:
        """Makes a core from the recipe."""
        if isinstance(self._recipe, str):
            manager = self._make_manager()
            self._adopt(_core.Hook.from_json(self._recipe, self._plumbing(manager)), manager)
        elif self._recipe is not None:
            BaseHook.__init__(self, **self._recipe)

    # A copy in the same process is the same hook: scikit-learn copies the estimators that hold it.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # One that travels to another process records there, once it is used in a training.
    def __getstate__(self) -> dict[str, Any]:
        recipe = self._recipe
        if isinstance(recipe, dict):
            recipe = {name: value for name, value in recipe.items() if name != "exporters"}
        return {
            "recipe": recipe,
            "collections": list(self._collection_manager.get_collections().values()),
            "hyperparameters": self.hyperparameters,
            "shap_max_rows": self.shap_max_rows,
            "data": {name: value for name, value in self._data.items() if type(value) is tuple},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__({})
        self._recipe = state["recipe"]
        self._manager = self.manager_class({c.name: c for c in state["collections"]})
        self.hyperparameters = state["hyperparameters"]
        self.shap_max_rows = state["shap_max_rows"]
        self._data = state["data"]
        self._is_copy = True
        self._set_up()

    def _adopt(self, core: _core.Hook, manager: CollectionManager) -> None:
        super()._adopt(core, manager)
        self._set_up()

    def _set_up(self) -> None:
        self._guard = Guard(self._core.is_strict)
        self._is_resumed = self._core.step >= 0
        self._offset = 0  # what is added to the number of a round
        self._round = -1  # the last one of this training
        self._rounds = 0  # begun by this core
        self._recorded = True  # the last one is
        self._round_began = 0.0
        self._told: set[str] = set()
        self._tagged: set[str] = set()
        self._names: FeatureNames | None = None

    def _make_manager(self) -> CollectionManager:
        return self._manager if self._manager is not None else super()._make_manager()

    def _plumbing(self, manager: CollectionManager) -> dict[str, Any]:
        # Not a method: the core must not keep the hook alive.
        return super()._plumbing(manager) | {"identify": type(self)._worker}

    @staticmethod
    def _worker() -> tuple[str, str, int]:
        rank, size = _core.process_rank() or (0, 1)
        return f"worker_{rank}", "worker_0", size

    def _tell_once(self, key: str, message: str) -> None:
        if key not in self._told:
            self._told.add(key)
            get_logger().warning(message)

    # ---- rounds

    def _guarded(self, site: str, function: Callable[..., None], *args: Any) -> None:
        if self._guard.disabled:
            return
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)

    def _begin_training(self, rounds: Callable[[], int]) -> None:
        """A training begins with a model of so many rounds, which are asked for if they matter."""
        if self._is_copy and isinstance(self._core, InertCore):
            self._open()
        elif self._rounds > 0 and self._round >= 0:
            self._begin_again()
        self._offset = rounds() if self._is_resumed else 0
        self._round = -1
        self._recorded = True

    def _begin_again(self) -> None:
        """Another training with the same hook: its steps take the place of those before."""
        if self._core.is_closed:
            self._tell_once("closed", "The hook is closed: this training is not recorded.")
            return
        told = self._told
        self._core.close(False, True)
        if self._export_thread is not None:
            self._export_thread.close()
        self._manager = self._collection_manager
        self._open()
        self._told = told
        self._tell_once(
            "again",
            "The hook is used in another training, whose steps take the place of those with the "
            "same number. Give each training a hook of its own to keep both.",
        )

    def _begin_round(self, number: int) -> None:
        if number == self._round:
            self._tell_once(
                "twice", "The hook is in the list of callbacks twice; each round is recorded once."
            )
            return
        self._round = number
        self._recorded = False
        self._rounds += 1
        step = number + self._offset
        if step <= self._core.step:
            self._recorded = True
            self._tell_once(
                "known", f"Step {step} was recorded before this training; it is not recorded again."
            )
            return
        self.begin_step(step)
        self._round_began = time.perf_counter()

    def _end_training(self) -> None:
        if not self._core.is_closed:
            self._core.end_step()
        if 0 <= self._round and not self._recorded:
            self._tell_once(
                "hidden",
                "Another callback has ended the training before the hook saw the last round. "
                "Put the hook first in the list of callbacks.",
            )
        if self._is_copy:
            self.close()  # nobody else knows it

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
        if secs > LONG_SECS and secs > MANY_ROUNDS * round_secs:
            self._tell_once(
                "cost",
                f"Saving round {self._round} took {secs:.1f} s, as long as "
                f"{secs / max(round_secs, 1e-6):.0f} rounds of training. SHAP values cost most: "
                "save them more rarely, or of fewer rows with shap_max_rows.",
            )

    # ---- what is saved of a round

    def _wants(self, collection: str, names: Iterable[str]) -> bool:
        core = self._core
        return core.is_collection_active(collection) or any(core.wants(name) for name in names)

    def _save_hyperparameters(self) -> None:
        for key, value in (self.hyperparameters or {}).items():
            name = f"hyperparameters/{key}"
            if self._core.wants(name):
                self._core.save_tensor(name, _plain(value), [])

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
        if names:
            _core.save_all(self._core, names, [values[i : i + 1] for i in range(len(names))])

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
            self._core.save("predictions", found)

    def _save_labels(self, told: Round) -> None:
        if not self._wants("labels", ["labels"]):
            return
        found = told.labels()
        if found is None:
            self._tell_missing("labels", "validation_data with labels")
        else:
            self._core.save("labels", found)

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
        _core.save_all(self._core, names, parts)

    def _save_trees(self, told: Round) -> None:
        if not self._wants(TREES, [f"trees/{column}" for column in told.tree_columns]):
            return
        try:
            columns = told.trees()
        except Unavailable as reason:
            self._tell_unavailable(reason)
            return
        for column, values in columns.items():
            if self._core.wants(f"trees/{column}"):
                self._core.save_tensor(f"trees/{column}", values, [])

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
            self._core.save_named(names.full, values)
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
