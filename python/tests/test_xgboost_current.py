"""What only current versions of XGBoost have: vector leaves, categories, the order of callbacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from conftest import Messages
from smdebug.xgboost import Hook
from xgboost_training import EVERY_ROUND, PARAMS, Data, closed, record, value

pytestmark = pytest.mark.usefixtures("strict")


def two_targets(strategy: str) -> tuple[Any, dict[str, Any]]:
    data = Data()
    y = np.stack([data.x[:, 0], data.x[:, 1]], 1)
    data.train = xgboost.DMatrix(data.x, y)
    data.valid = xgboost.DMatrix(data.x[:10], y[:10])
    data.evals = [(data.train, "train")]
    params = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "multi_strategy": strategy,
        "num_target": 2,
    }
    return data, params


def test_vector_leaves_cost_trees_and_shap_values_and_one_line(
    out_dir: Path, messages: Messages
) -> None:
    data, params = two_targets("multi_output_tree")
    trial, _ = record(data, out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    names = set(trial.tensor_names())
    assert value(trial, "predictions", 3).shape == value(trial, "labels", 3).shape == (10, 2)
    assert "feature_importance/gain/f0" in names
    assert not any("shap" in name or name.startswith("trees/") for name in names)
    assert len(messages.containing("XGBoost does not tell all of this model")) == 1


def test_several_targets_have_a_tree_each(out_dir: Path) -> None:
    data, params = two_targets("one_output_per_tree")
    trial, _ = record(data, out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    assert value(trial, "labels", 1).shape == (10, 2)
    assert value(trial, "full_shap/f0", 1).shape == (40, 2, 5)
    assert sorted(set(value(trial, "trees/Tree", 1))) == [2, 3]


def test_a_split_by_categories_has_codes_instead_of_a_threshold(out_dir: Path) -> None:
    pandas = pytest.importorskip("pandas")
    codes = np.arange(40) % 4
    table = pandas.DataFrame({"c": pandas.Categorical(codes)})
    matrix = xgboost.DMatrix(table, np.isin(codes, [1, 2]), enable_categorical=True)
    hook = Hook(str(out_dir), include_collections=["trees"], save_config=EVERY_ROUND)
    params = {**PARAMS, "tree_method": "hist", "max_cat_to_onehot": 1}
    xgboost.train(params, matrix, 2, callbacks=[hook])
    trial = closed(hook)
    assert list(value(trial, "trees/Feature", 0)) == ["c", "Leaf", "Leaf"]
    assert np.isnan(value(trial, "trees/Split", 0)).all()
    assert set(value(trial, "trees/Category", 0)[0].split(",")) in ({"1", "2"}, {"0", "3"})
    assert list(value(trial, "trees/Category", 0)[1:]) == ["nan", "nan"]


def test_names_with_quotes_are_read(out_dir: Path) -> None:
    data = Data(names=['a "quoted" one', "b", "c", "d"])
    trial, _ = record(data, out_dir, save_all=True, save_config=EVERY_ROUND)
    assert value(trial, "trees/Feature", 0)[0] == 'a "quoted" one'
    assert 'average_shap/a "quoted" one' in trial.tensor_names(collection="average_shap")


def stopped(out_dir: Path, hook_first: bool) -> tuple[Any, int]:
    """The run and the number of rounds of a training that stops early."""
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND, include_collections=["trees"])
    stop = xgboost.callback.EarlyStopping(rounds=2, metric_name="error", data_name="validation")
    callbacks = [hook, stop] if hook_first else [stop, hook]
    params = {**PARAMS, "eval_metric": ["logloss", "error"]}
    model = xgboost.train(
        params, data.train, 50, evals=data.evals, callbacks=callbacks, verbose_eval=False
    )
    return closed(hook), model.num_boosted_rounds()


def test_the_last_round_before_an_early_stop_is_saved(out_dir: Path, messages: Messages) -> None:
    trial, rounds = stopped(out_dir, hook_first=True)
    assert rounds < 50
    assert trial.steps() == list(range(rounds))
    assert not messages.containing("Put the hook first")


def test_a_round_that_another_callback_hides_is_said_so(out_dir: Path, messages: Messages) -> None:
    trial, rounds = stopped(out_dir, hook_first=False)
    assert trial.steps() == list(range(rounds - 1))
    assert len(messages.containing("Put the hook first in the list of callbacks.")) == 1


def test_early_stopping_by_its_argument_shows_all_rounds(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)
    model = data.fit(hook, 50, {"eval_metric": "error"}, early_stopping_rounds=2)
    assert closed(hook).steps() == list(range(model.num_boosted_rounds()))


def test_ranking_saves_its_metrics_and_groups_do_not_matter(out_dir: Path) -> None:
    data = Data()
    for matrix in (data.train, data.valid):
        matrix.set_group([matrix.num_row() // 2] * 2)
    params = {"objective": "rank:ndcg", "eval_metric": ["ndcg@5", "map@3-"]}
    trial, _ = record(data, out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    assert {"train-ndcg@5", "train-map@3-"} <= set(trial.tensor_names(collection="metrics"))
    assert trial.tensor_names(collection="losses") == []
    assert value(trial, "predictions", 3).shape == (10,)


def test_quantiles_have_columns(out_dir: Path) -> None:
    params = {"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.5, 0.9]}
    trial, _ = record(Data(), out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    assert value(trial, "predictions", 2).shape == (10, 3)
    assert value(trial, "full_shap/f1", 2).shape == (40, 3, 5)
    assert sorted(set(value(trial, "trees/Tree", 2))) == [6, 7, 8]


def test_quantized_data_is_as_good(out_dir: Path) -> None:
    data = Data()
    quantized = xgboost.QuantileDMatrix(data.x, data.y)
    hook = data.hook(out_dir, train_data=quantized, save_all=True, save_config=EVERY_ROUND)
    data.fit(hook, 2)
    whole, _ = record(data, out_dir.with_name("whole"), save_all=True, save_config=EVERY_ROUND)
    trial = closed(hook)
    np.testing.assert_array_equal(value(trial, "full_shap/f0", 1), value(whole, "full_shap/f0", 1))
