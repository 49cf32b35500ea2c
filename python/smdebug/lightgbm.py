"""Records boosting with LightGBM: `lightgbm.train(..., callbacks=[Hook("run")])`.

Collections and names are those of XGBoost; trees have the columns of LightGBM's own table.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

import lightgbm
import numpy as np

from smdebug import CollectionKeys, ReductionConfig, SaveConfig, SaveConfigMode, modes, singleton
from smdebug.boosting.hook import BoostingHook
from smdebug.boosting.rehearsal import Rehearsing
from smdebug.collection import Collection
from smdebug.exceptions import SMDebugTypeError
from smdebug.open_trial import create_trial
from smdebug.singleton import del_hook, set_hook

IMPORTANCE_TYPES = ("split", "gain")
TREE_COLUMNS = (
    *("tree_index", "node_depth", "node_index", "left_child", "right_child", "parent_index"),
    *("split_feature", "split_gain", "threshold", "decision_type", "missing_direction"),
    *("missing_type", "value", "weight", "count"),
)
WHOLE = ("tree_index", "node_depth")
REAL = ("split_gain", "value", "weight", "count")
NONE = "nan"


class Hook(BoostingHook):
    """A callback of `lightgbm.train`, `cv` and the scikit-learn classes. A round is a step.

    Predictions and labels are those of `validation_data`, SHAP values those of `train_data`: an
    array, or a pair of it and labels. `shap_max_rows` computes them for the first rows only.
    """

    framework: ClassVar[str] = "LightGBM"
    before_iteration: ClassVar[bool] = False

    def _set_up(self) -> None:
        super()._set_up()
        # Before early stopping, which has 30 and ends the calls of a round. LightGBM sets it on
        # objects that have none of their own.
        self.order = 25
        self._model: Callable[[], Any] = lambda: None  # that of this training

    @staticmethod
    def _check_data(value: Any, name: str) -> tuple[Any, Any] | None:
        """(rows, labels or None). A Dataset is refused: LightGBM does not predict it."""
        if value is None:
            return None
        rows, labels = value if isinstance(value, tuple) and len(value) == 2 else (value, None)
        if isinstance(rows, lightgbm.Dataset | str) or not hasattr(rows, "shape"):
            raise SMDebugTypeError(
                f"{name} must be an array, or a pair of an array and its labels, "
                f"not {type(rows).__name__}."
            )
        return rows, labels

    def __call__(self, env: Any) -> None:
        """Called by LightGBM after a round."""
        self._guarded("Recording a round", self._after_round, env)

    def _after_round(self, env: Any) -> None:
        if self._model() is not env.model:
            self._begin_training(lambda: env.begin_iteration)
            self._model = weakref.ref(env.model)
        self._begin_round(env.iteration - env.begin_iteration)
        self._record(lambda: LightRound(self, env))
        # Nobody tells when a training is over: each step ends with its round.
        if env.iteration + 1 >= env.end_iteration:
            self._end_training()
        elif not self._core.is_closed:
            self._core.end_step()


class Rehearsal(Rehearsing, Hook):
    """The hook of `smdebug plan`."""

    def __call__(self, env: Any) -> None:
        """Called by LightGBM after a round, so the first one is not measured."""
        super().__call__(env)
        if env.iteration + 1 < env.end_iteration:
            self.begin_measuring()


class LightRound:
    """What LightGBM tells about a round that is over."""

    importance_types: Sequence[str] = IMPORTANCE_TYPES
    tree_columns: Sequence[str] = TREE_COLUMNS

    def __init__(self, hook: Hook, env: Any) -> None:
        self._hook = hook
        self._env = env

    def metrics(self) -> Iterable[tuple[str, float, bool]]:
        """Cross-validation gives a mean and its deviation."""
        for data, metric, value, maximize, *deviation in self._env.evaluation_result_list or ():
            yield f"{data}-{metric}", value, not maximize
            if deviation and deviation[0] is not None:
                yield f"{data}-{metric}-std", deviation[0], False

    def features(self) -> Sequence[str]:
        model = self._env.model
        return model.feature_name() if isinstance(model, lightgbm.Booster) else ()

    def predictions(self) -> Any:
        data = self._hook.validation_data
        return None if data is None else self._env.model.predict(data[0])

    def labels(self) -> Any:
        data = self._hook.validation_data
        return None if data is None or data[1] is None else np.asarray(data[1])

    def importances(self, kind: str) -> dict[str, Any]:
        scores = self._env.model.feature_importance(importance_type=kind)
        return {
            name: score for name, score in zip(self.features(), scores, strict=True) if score > 0
        }

    def trees(self) -> dict[str, Any]:
        model = self._env.model
        last = model.current_iteration() - 1
        dumped = model.dump_model(num_iteration=1, start_iteration=last)
        first = last * model.num_model_per_iteration()
        names = dumped["feature_names"]
        rows = [
            row
            for number, tree in enumerate(dumped["tree_info"], first)
            for row in _nodes(tree["tree_structure"], number, names)
        ]
        columns = dict(zip(TREE_COLUMNS, zip(*rows, strict=True), strict=True))
        types: dict[str, Any] = {
            **dict.fromkeys(WHOLE, np.int64),
            **dict.fromkeys(REAL, np.float64),
        }
        return {
            name: np.array(values, types.get(name, np.str_)) for name, values in columns.items()
        }

    def shap(self) -> Any:
        if self._hook.train_data is None:
            return None
        rows = self._hook.train_data[0][: self._hook.shap_max_rows]
        # Of a copy: in the model that is being trained, a failed check would end the process.
        copy = lightgbm.Booster(model_str=self._env.model.model_to_string())
        values = np.asarray(copy.predict(rows, pred_contrib=True))
        classes = copy.num_model_per_iteration()
        return values if classes == 1 else values.reshape(len(values), classes, -1)


def _nodes(
    node: dict[str, Any],
    tree: int,
    names: Sequence[str],
    depth: int = 1,
    parent: str = NONE,
) -> Iterator[tuple[Any, ...]]:
    """A node and those below it, as rows of TREE_COLUMNS."""
    if "split_index" not in node:
        label = f"{tree}-L{node.get('leaf_index', 0)}"
        nothing = (np.nan, NONE, NONE, NONE, NONE)
        numbers = (node["leaf_value"], node.get("leaf_weight", np.nan))
        count = node.get("leaf_count", np.nan)
        yield (tree, depth, label, NONE, NONE, parent, NONE, *nothing, *numbers, count)
        return
    label = f"{tree}-S{node['split_index']}"
    below = [node["left_child"], node["right_child"]]
    children = [
        f"{tree}-S{child['split_index']}"
        if "split_index" in child
        else f"{tree}-L{child.get('leaf_index', 0)}"
        for child in below
    ]
    yield (
        *(tree, depth, label, *children, parent, names[node["split_feature"]], node["split_gain"]),
        *(str(node["threshold"]), node["decision_type"]),
        *("left" if node["default_left"] else "right", node["missing_type"]),
        *(node["internal_value"], node["internal_weight"], node["internal_count"]),
    )
    for child in below:
        yield from _nodes(child, tree, names, depth + 1, label)


def get_hook(json_config_path: str | None = None) -> Hook | None:
    """The hook for LightGBM of this process; from the job's JSON file if there is none."""
    return singleton.hook_of(Hook, Hook, json_config_path)  # type: ignore[return-value]


__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
