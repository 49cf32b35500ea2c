"""The hook for LightGBM in real trainings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pytest
from conftest import Messages
from smdebug.exceptions import SMDebugTypeError, TrainingStopRequested
from smdebug.lightgbm import IMPORTANCE_TYPES, TREE_COLUMNS, Hook, SaveConfig, create_trial
from smdebug.rules.action import StopTraining

EVERY_ROUND = SaveConfig(save_interval=1)
PARAMS = {
    "objective": "binary",
    "metric": ["binary_logloss", "auc"],
    "num_leaves": 4,
    "min_data_in_leaf": 5,
    "num_threads": 1,
    "verbose": -1,
    "deterministic": True,
}
FEATURES = [f"Column_{i}" for i in range(4)]

pytestmark = pytest.mark.usefixtures("strict")


def rows(classes: int = 2) -> tuple[Any, Any]:
    x = np.random.RandomState(0).rand(100, 4)
    return x, np.floor(x[:, 0] * classes)


def fit(hook: Hook | None, rounds: int = 4, classes: int = 2, **more: Any) -> Any:
    x, y = rows(classes)
    data = lightgbm.Dataset(x, y)
    valid = lightgbm.Dataset(x[:10], y[:10], reference=data)
    params = {**PARAMS, **more.pop("params", {})}
    callbacks = [*more.pop("callbacks", []), *([] if hook is None else [hook])]
    return lightgbm.train(
        params,
        data,
        rounds,
        valid_sets=[data, valid],
        valid_names=["training", "valid-1"],
        callbacks=callbacks,
        **more,
    )


def record(out_dir: Path, rounds: int = 4, classes: int = 2, **arguments: Any) -> tuple[Any, Any]:
    """The run and the model, which is that of a training without a hook."""
    x, y = rows(classes)
    params = arguments.pop("params", {})
    hook = Hook(
        str(out_dir),
        train_data=x,
        validation_data=(x[:10], y[:10]),
        hyperparameters=PARAMS,
        **{"save_all": True, "save_config": EVERY_ROUND, **arguments},
    )
    model = fit(hook, rounds, classes, params=params)
    assert model.model_to_string() == fit(None, rounds, classes, params=params).model_to_string()
    hook.close()
    return create_trial(str(out_dir)), model


def value(trial: Any, name: str, step: int) -> Any:
    return trial.tensor(name).value(step)


def test_names_are_those_of_xgboost(out_dir: Path) -> None:
    trial, _ = record(out_dir)
    assert trial.steps() == [0, 1, 2, 3]
    names = set(trial.tensor_names())
    metrics = {f"{d}-{m}" for d in ("training", "valid-1") for m in ("binary_logloss", "auc")}
    columns = [*FEATURES, "bias"]
    families = {f"{f}_shap/{c}" for f in ("full", "average", "mean") for c in columns}
    assert metrics | families | {"predictions", "labels"} <= names
    assert {f"trees/{column}" for column in TREE_COLUMNS} <= names
    assert {f"hyperparameters/{key}" for key in PARAMS} <= names
    assert {f"feature_importance/{kind}/Column_0" for kind in IMPORTANCE_TYPES} <= names
    assert set(trial.tensor_names(collection="metrics")) == metrics
    losses = {name for name in metrics if "logloss" in name}
    assert set(trial.tensor_names(collection="losses")) == losses


def test_values_are_those_of_the_model_after_the_round(out_dir: Path) -> None:
    trial, model = record(out_dir)
    x, y = rows()
    for step in range(4):
        part = lightgbm.Booster(model_str=model.model_to_string(num_iteration=step + 1))
        shap = part.predict(x, pred_contrib=True)
        np.testing.assert_allclose(value(trial, "full_shap/Column_2", step), shap, rtol=1e-12)
        total = value(trial, "average_shap/Column_0", step)
        np.testing.assert_allclose(total, [np.abs(shap).sum(0)[0]], rtol=1e-12)
        np.testing.assert_array_equal(value(trial, "predictions", step), part.predict(x[:10]))
        np.testing.assert_array_equal(value(trial, "labels", step), y[:10])
        gains = part.feature_importance("gain")
        saved = value(trial, "feature_importance/gain/Column_0", step)
        np.testing.assert_allclose(saved, gains[0] / gains.sum())


def test_trees_are_those_of_lightgbms_own_table(out_dir: Path) -> None:
    trial, model = record(out_dir)
    table = model.trees_to_dataframe()
    assert list(table.columns) == list(TREE_COLUMNS)
    for column in ("tree_index", "node_depth", "node_index", "left_child", "split_feature"):
        saved = np.concatenate([value(trial, f"trees/{column}", step) for step in range(4)])
        assert [str(cell) for cell in table[column].fillna("nan")] == [str(cell) for cell in saved]
    for column in ("split_gain", "value", "weight", "count"):
        saved = np.concatenate([value(trial, f"trees/{column}", step) for step in range(4)])
        np.testing.assert_allclose(saved, table[column].astype(float), rtol=1e-5)


def test_classes_have_trees_and_shap_values_of_their_own(out_dir: Path) -> None:
    params = {"objective": "multiclass", "num_class": 3, "metric": "multi_logloss"}
    trial, _ = record(out_dir, classes=3, params=params)
    assert value(trial, "predictions", 2).shape == (10, 3)
    assert value(trial, "full_shap/Column_0", 2).shape == (100, 3, 5)
    assert sorted(set(value(trial, "trees/tree_index", 2))) == [6, 7, 8]


def test_a_continued_training_restarts_its_steps_and_saves_the_trees_that_it_adds(
    out_dir: Path,
) -> None:
    hook = Hook(str(out_dir), include_collections=["trees"], save_config=EVERY_ROUND)
    model = fit(hook, 2, init_model=fit(None, 3))
    assert model.num_trees() == 5
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1]
    assert [set(value(trial, "trees/tree_index", step)) for step in (0, 1)] == [{3}, {4}]


def test_the_last_round_before_an_early_stop_is_saved(out_dir: Path) -> None:
    hook = Hook(str(out_dir), save_config=EVERY_ROUND)
    stop = lightgbm.early_stopping(2, verbose=False)
    model = fit(hook, 50, callbacks=[stop], params={"metric": "auc"})
    hook.close()
    trial = create_trial(str(out_dir))
    assert 2 <= len(trial.steps()) < 50
    assert trial.steps()[-1] == model.best_iteration + 1


def test_cross_validation_saves_means_and_deviations(out_dir: Path) -> None:
    x, y = rows()
    hook = Hook(str(out_dir), save_all=True, save_config=EVERY_ROUND)
    log = lightgbm.cv(PARAMS, lightgbm.Dataset(x, y), 3, nfold=2, callbacks=[hook])
    assert log == lightgbm.cv(PARAMS, lightgbm.Dataset(x, y), 3, nfold=2)
    hook.close()
    trial = create_trial(str(out_dir))
    names = {"valid-binary_logloss", "valid-auc"}
    assert set(trial.tensor_names()) == names | {f"{name}-std" for name in names}
    assert value(trial, "valid-auc", 2)[0] == log["valid auc-mean"][2]
    assert value(trial, "valid-auc-std", 2)[0] == log["valid auc-stdv"][2]


def test_the_scikit_learn_classes_record(out_dir: Path) -> None:
    x, y = rows()
    hook = Hook(str(out_dir), save_config=EVERY_ROUND)

    def text_of_model(callbacks: list[Any]) -> str:
        model = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
        model.fit(x, y, eval_set=[(x[:10], y[:10])], callbacks=callbacks)
        return model.booster_.model_to_string()

    assert text_of_model([hook]) == text_of_model([])
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor_names(collection="metrics") == ["valid_0-binary_logloss"]
    assert trial.steps() == [0, 1, 2]


def test_a_rule_stops_the_training(out_dir: Path) -> None:
    stop = {"rule": "ExplodingTensor", "tensor_regex": "trees/split_gain"}  # leaves have NaN
    hook = Hook(
        str(out_dir),
        include_collections=["trees"],
        save_config=EVERY_ROUND,
        rules=[{**stop, "actions": [StopTraining()]}],
    )
    with pytest.raises(TrainingStopRequested, match="Rule ExplodingTensor asked at step 0"):
        fit(hook, 1_000_000)
    hook.close()
    steps = create_trial(str(out_dir)).steps()
    assert steps == list(range(len(steps)))


def test_a_hook_that_is_used_again_overwrites_and_says_so(
    out_dir: Path, messages: Messages
) -> None:
    hook = Hook(str(out_dir), save_config=EVERY_ROUND)
    fit(hook, 3)
    fit(hook, 2, params={"learning_rate": 0.5})
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1, 2]
    assert len(messages.containing("another training")) == 1


def test_defaults_are_metrics_at_every_tenth_round(out_dir: Path) -> None:
    hook = Hook(str(out_dir))
    fit(hook, 12)
    hook.close()
    assert create_trial(str(out_dir)).steps() == [0, 10]


def test_data_that_lightgbm_does_not_predict_is_refused(out_dir: Path) -> None:
    x, y = rows()
    with pytest.raises(SMDebugTypeError, match=r"must be an array, or a pair .* not Dataset"):
        Hook(str(out_dir), train_data=lightgbm.Dataset(x, y))


def test_what_is_missing_is_said_once(out_dir: Path, messages: Messages) -> None:
    hook = Hook(str(out_dir), save_all=True, save_config=EVERY_ROUND)
    fit(hook, 3)
    hook.close()
    assert len(messages.containing("There is no train_data: SHAP values are not saved.")) == 1
    assert len(messages.containing("There is no validation_data: predictions")) == 1
