"""The hook for XGBoost in real trainings: names, steps, values, and models that do not change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from conftest import Messages
from smdebug.xgboost import Hook, SaveConfig, create_trial
from xgboost_training import EVERY_ROUND, KINDS, TREE_COLUMNS, Data, closed, record, value

METRICS = ["logloss", "auc", "error@0.7", "aucpr"]
FEATURES = ["f0", "f1", "f2", "f3"]
X1 = {"eval_metric": METRICS}
HYPERPARAMETERS = {
    "max_depth": 2,
    "eta": 0.3,
    "objective": "binary:logistic",
    "eval_metric": METRICS,
}

pytestmark = pytest.mark.usefixtures("strict")


def record_all(out_dir: Path, **arguments: Any) -> tuple[Any, Any]:
    """Everything, every second round."""
    arguments = {"save_all": True, "save_config": SaveConfig(save_interval=2), **arguments}
    return record(Data(), out_dir, params=X1, hyperparameters=HYPERPARAMETERS, **arguments)


def tree_at(model: Any, data: Data, rounds: int) -> Any:
    """SHAP values and predictions of a model cut after some rounds."""
    part = model[:rounds]
    return part.predict(data.train, pred_contribs=True), part.predict(data.valid)


def test_everything_is_saved_under_the_names_of_the_original(out_dir: Path) -> None:
    trial, _ = record_all(out_dir)
    assert trial.steps() == [0, 2]
    columns = [*FEATURES, "bias"]
    expected = {
        *(f"{data}-{metric}" for data in ("train", "validation") for metric in METRICS),
        *(f"hyperparameters/{key}" for key in HYPERPARAMETERS),
        "predictions",
        "labels",
        *(f"feature_importance/{kind}/f0" for kind in KINDS),
        *(f"{family}_shap/{name}" for family in ("average", "full", "mean") for name in columns),
        *(f"trees/{column}" for column in TREE_COLUMNS),
    }
    assert set(trial.tensor_names()) == expected
    assert len(expected) == 45
    for step in (0, 2):
        assert value(trial, "predictions", step).shape == (10,)
        assert value(trial, "labels", step).shape == (10,)
        for kind in KINDS:
            score = value(trial, f"feature_importance/{kind}/f0", step)
            assert score.dtype == np.float64
            np.testing.assert_array_equal(score, [1.0])
        for name in columns:
            assert value(trial, f"full_shap/{name}", step).shape == (40, 5)


def test_values_are_those_of_the_model_after_the_round(out_dir: Path) -> None:
    trial, model = record_all(out_dir)
    data = Data()
    for step in (0, 2):
        shap, predictions = tree_at(model, data, step + 1)
        np.testing.assert_array_equal(value(trial, "predictions", step), predictions)
        np.testing.assert_array_equal(value(trial, "labels", step), data.y[:10])
        np.testing.assert_array_equal(value(trial, "full_shap/f3", step), shap)
        for i, name in enumerate([*FEATURES, "bias"]):
            total = value(trial, f"average_shap/{name}", step)
            assert total.dtype == np.float32
            assert total.shape == (1,)
            np.testing.assert_allclose(total[0], np.abs(shap).sum(0)[i], rtol=1e-6)
            mean = value(trial, f"mean_shap/{name}", step)
            np.testing.assert_allclose(mean[0], shap.mean(0)[i], rtol=1e-6)


def test_the_tree_of_a_round_is_a_table(out_dir: Path) -> None:
    trial, model = record_all(out_dir)
    tree = {column: value(trial, f"trees/{column}", 2) for column in TREE_COLUMNS}
    np.testing.assert_array_equal(tree["Tree"], [2, 2, 2])
    assert tree["Tree"].dtype == tree["Node"].dtype == np.int64
    assert list(tree["Feature"]) == ["f0", "Leaf", "Leaf"]
    assert list(tree["ID"]) == ["2-0", "2-1", "2-2"]
    assert list(tree["Yes"]) == ["2-1", "nan", "nan"]
    assert list(tree["No"]) == ["2-2", "nan", "nan"]
    assert list(tree["Category"]) == ["nan", "nan", "nan"]
    assert np.isfinite(tree["Split"][0])
    assert np.isnan(tree["Split"][1:]).all()
    assert tree["Cover"].dtype == tree["Gain"].dtype == np.float64
    from smdebug.xgboost.utils import parse_tree_model

    again = parse_tree_model(model, 2)
    assert list(again) == TREE_COLUMNS
    for column in TREE_COLUMNS:
        np.testing.assert_array_equal(again[column], tree[column])


def test_hyperparameters_are_numbers_texts_and_lists(out_dir: Path) -> None:
    given = {
        **HYPERPARAMETERS,
        "booster": None,
        "flag": True,
        "weights": [1, 2.5],
        "nested": {"a": 1},
    }
    trial, _ = record(
        Data(), out_dir, hyperparameters=given, include_collections=["hyperparameters"]
    )
    found = {
        name.split("/")[1]: value(trial, name, 0) for name in trial.tensor_names() if "/" in name
    }
    assert set(found) == set(given)
    assert (found["max_depth"].dtype, list(found["max_depth"])) == (np.int64, [2])
    assert (found["eta"].dtype, list(found["eta"])) == (np.float64, [0.3])
    assert list(found["objective"]) == ["binary:logistic"]
    assert list(found["eval_metric"]) == METRICS
    assert list(found["booster"]) == ["None"]
    assert list(found["flag"]) == [1]
    assert list(found["weights"]) == [1, 2.5]
    assert list(found["nested"]) == ["{'a': 1}"]


def test_defaults_are_metrics_at_every_tenth_round(out_dir: Path) -> None:
    data = Data()
    hook = Hook(str(out_dir))
    log: dict[str, Any] = {}
    data.fit(hook, 12, evals_result=log)
    trial = closed(hook)
    assert trial.steps() == [0, 10]
    names = ["train-logloss", "validation-logloss"]
    assert sorted(trial.tensor_names()) == sorted(trial.tensor_names(collection="metrics")) == names
    for step in (0, 10):
        found = value(trial, "validation-logloss", step)
        assert (found.dtype, found.shape) == (np.float64, (1,))
        assert found[0] == log["validation"]["logloss"][step]


def test_each_collection_has_its_own_steps(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, include_collections=["feature_importance"])
    hook.get_collection("metrics").save_config = SaveConfig(save_interval=2)
    hook.get_collection("feature_importance").save_config = SaveConfig(save_interval=3)
    data.fit(hook, 7)
    trial = closed(hook)
    assert trial.tensor("train-logloss").steps() == [0, 2, 4, 6]
    assert trial.tensor("feature_importance/gain/f0").steps() == [0, 3, 6]


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_shap_values_are_computed_once_and_stored_once(
    out_dir: Path, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Data()
    calls: list[bool] = []
    predict = xgboost.Booster.predict

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append(bool(kwargs.get("pred_contribs")))
        return predict(self, *args, **kwargs)

    monkeypatch.setattr(xgboost.Booster, "predict", counted)
    rows = np.random.RandomState(1).rand(5000, 4)
    large = xgboost.DMatrix(rows)
    hook = data.hook(
        out_dir,
        train_data=large,
        include_collections=["full_shap", "average_shap"],
        save_config=EVERY_ROUND,
        layout=layout,
    )
    data.fit(hook, 1)
    trial = closed(hook)
    assert calls == [True]
    assert len(trial.tensor_names(collection="full_shap")) == 4
    matrix = 5000 * 5 * 4
    stored = sum(path.stat().st_size for path in out_dir.rglob("*") if path.is_file())
    assert matrix < stored < 1.5 * matrix
    first = value(trial, "full_shap/f0", 0)
    assert first.shape == (5000, 5)
    for name in FEATURES[1:]:
        np.testing.assert_array_equal(value(trial, f"full_shap/{name}", 0), first)


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_record_with_several_names_is_a_sound_one(out_dir: Path, layout: str) -> None:
    trial, _ = record_all(out_dir, layout=layout)
    checked = create_trial(str(out_dir), check=True)
    for name in ("full_shap/f0", "full_shap/f3", "full_shap/bias"):
        np.testing.assert_array_equal(value(checked, name, 2), value(trial, "full_shap/f1", 2))


def test_all_classes_trees_and_features_are_there(out_dir: Path) -> None:
    names = ["radius", "alpha", "x", "kb"]
    data = Data(classes=3, names=names)
    params = {"objective": "multi:softprob", "num_class": 3}
    trial, _ = record(data, out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    for collection, families in (("average_shap", ["average", "mean"]), ("full_shap", ["full"])):
        expected = {f"{family}_shap/{name}" for family in families for name in names}
        assert set(trial.tensor_names(collection=collection)) == expected
    assert value(trial, "full_shap/kb", 3).shape == (40, 3, 5)
    assert value(trial, "predictions", 3).shape == (10, 3)
    assert sorted(set(value(trial, "trees/Tree", 3))) == [9, 10, 11]
    total = np.abs(value(trial, "full_shap/kb", 3)).sum((0, 1))
    np.testing.assert_allclose(value(trial, "average_shap/alpha", 3)[0], total[1], rtol=1e-5)


def test_parallel_trees_of_classes_are_all_saved(out_dir: Path) -> None:
    params = {"objective": "multi:softmax", "num_class": 3, "num_parallel_tree": 2}
    trial, _ = record(
        Data(classes=3), out_dir, params=params, save_all=True, save_config=EVERY_ROUND
    )
    assert value(trial, "predictions", 2).shape == (10,)
    assert sorted(set(value(trial, "trees/Tree", 2))) == list(range(12, 18))
    nodes = value(trial, "trees/ID", 2)
    assert len(nodes) == len(set(nodes))


@pytest.mark.parametrize("classes", [2, 3])
def test_linear_models_have_signed_weights_and_no_trees(out_dir: Path, classes: int) -> None:
    data = Data(classes=classes)
    params = {"booster": "gblinear", "updater": "coord_descent", "feature_selector": "cyclic"}
    if classes == 3:
        params |= {"objective": "multi:softprob", "num_class": 3}
    trial, model = record(data, out_dir, params=params, save_all=True, save_config=EVERY_ROUND)
    names = set(trial.tensor_names())
    found = {name for name in names if name.startswith("feature_importance/")}
    assert found == {f"feature_importance/weight/{name}" for name in FEATURES}
    assert not any(name.startswith("trees/") for name in names)
    assert {"predictions", "full_shap/f0"} <= names
    scores = model.get_score(importance_type="weight")
    total = sum(np.abs(score).sum() for score in scores.values())
    for name in FEATURES:
        saved = value(trial, f"feature_importance/weight/{name}", 3)
        np.testing.assert_allclose(saved, np.atleast_1d(scores[name]) / total)


def test_the_scikit_learn_classes_save_metrics(out_dir: Path) -> None:
    from sklearn.model_selection import GridSearchCV

    data = Data()
    hook = Hook(str(out_dir), save_config=EVERY_ROUND)

    def fitted(callbacks: list[Any]) -> Any:
        model = xgboost.XGBClassifier(n_estimators=4, max_depth=2, callbacks=callbacks, n_jobs=1)
        return model.fit(data.x, data.y, eval_set=[(data.x[:10], data.y[:10])], verbose=False)

    model = fitted([hook])
    raw = [one.get_booster().save_raw("json") for one in (model, fitted([]))]
    assert raw[0] == raw[1]
    search = GridSearchCV(model, {"max_depth": [1, 2]}, cv=2)
    search.fit(data.x, data.y, eval_set=[(data.x[:10], data.y[:10])], verbose=False)
    trial = closed(hook)
    assert trial.tensor_names(collection="metrics") == ["validation_0-logloss"]
    assert trial.steps() == [0, 1, 2, 3]
    # Each training takes the place of the one before; the last is that of the best parameters.
    last = search.best_estimator_.evals_result()["validation_0"]["logloss"]
    assert [value(trial, "validation_0-logloss", step)[0] for step in range(4)] == last


def test_losses_are_metrics_that_shrink(out_dir: Path) -> None:
    data = Data()
    for matrix in (data.train, data.valid):
        matrix.set_group([matrix.num_row()])
    metrics = ["rmse", "auc", "map", "aucpr", "ndcg@5", "map@3-", "mape"]

    def custom(predictions: Any, matrix: Any) -> tuple[str, float]:
        return "my-metric", 1.25

    major = int(xgboost.__version__.split(".")[0])
    hook = data.hook(out_dir, include_collections=["losses"])
    hook.get_collection("losses").save_config = EVERY_ROUND
    hook.get_collection("metrics").save_config = SaveConfig(save_interval=1, end_step=0)
    params = {"objective": "rank:pairwise", "eval_metric": metrics}
    if major < 2:
        params["objective"] = "binary:logistic"
    data.fit(hook, 2, params, custom_metric=custom)
    trial = closed(hook)
    expected = {
        f"{name}-{metric}" for name in ("train", "validation") for metric in ("rmse", "mape")
    }
    found = set(trial.tensor_names(collection="losses"))
    assert found == expected | {"train-my-metric", "validation-my-metric"}
    assert set(trial.tensor_names()) == found
    metrics_named = set(hook.get_collection("metrics").tensor_names)
    assert {"train-my-metric", "train-ndcg@5", "train-map@3-"} <= metrics_named


def test_a_continued_training_restarts_its_steps_and_saves_the_trees_that_it_adds(
    out_dir: Path,
) -> None:
    data = Data()
    first = data.fit(None, 3)
    hook = data.hook(out_dir, save_all=True, save_config=EVERY_ROUND)
    data.fit(hook, 2, xgb_model=first)
    trial = closed(hook)
    assert trial.steps() == [0, 1]
    assert [set(value(trial, "trees/Tree", step)) for step in (0, 1)] == [{3}, {4}]


def test_a_hook_that_is_used_again_overwrites_and_says_so(
    out_dir: Path, messages: Messages
) -> None:
    data = Data()
    hook = data.hook(out_dir, save_all=True, save_config=EVERY_ROUND)
    first = data.fit(hook, 3)
    data.fit(hook, 2, xgb_model=first)
    data.fit(hook, 1, xgb_model=first)
    trial = closed(hook)
    assert trial.steps() == [0, 1, 2]
    assert [set(value(trial, "trees/Tree", step)) for step in range(3)] == [{3}, {4}, {2}]
    assert len(messages.containing("another training")) == 1


def test_a_resumed_job_continues_its_steps(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = tmp_path / "checkpoints"
    checkpoints.mkdir()
    config = tmp_path / "checkpoint.json"
    config.write_text(f'{{"LocalPath": "{checkpoints}"}}')
    monkeypatch.setenv("CHECKPOINT_CONFIG_FILE_PATH", str(config))
    data = Data()
    hook = data.hook(tmp_path / "first", save_config=EVERY_ROUND)
    model = data.fit(hook, 3)
    model.save_model(checkpoints / "model.json")
    hook.close()
    hook = data.hook(out_dir, save_config=EVERY_ROUND, include_collections=["trees"])
    data.fit(hook, 2, xgb_model=checkpoints / "model.json")
    trial = closed(hook)
    assert trial.steps() == [3, 4]
    assert [set(value(trial, "trees/Tree", step)) for step in (3, 4)] == [{3}, {4}]


def test_cross_validation_saves_means_and_deviations(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, save_all=True, save_config=EVERY_ROUND)
    arguments = {"nfold": 2, "seed": 3, "as_pandas": False}
    params = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    log = xgboost.cv(params, data.train, 3, callbacks=[hook], **arguments)
    assert log == xgboost.cv(params, data.train, 3, **arguments)
    trial = closed(hook)
    assert trial.steps() == [0, 1, 2]
    names = [f"{data}-logloss" for data in ("train", "test")]
    assert set(trial.tensor_names()) == {*names, *(f"{name}-std" for name in names)}
    assert set(trial.tensor_names(collection="losses")) == set(names)
    for step in range(3):
        for name in names:
            assert value(trial, name, step)[0] == log[f"{name}-mean"][step]
            assert value(trial, f"{name}-std", step)[0] == log[f"{name}-std"][step]


@pytest.mark.parametrize("kind", ["csv", "text/csv", "libsvm", "text/x-libsvm"])
def test_files_are_as_good_as_matrices(out_dir: Path, tmp_path: Path, kind: str) -> None:
    data = Data()
    path = tmp_path / "data"
    if "csv" in kind:
        rows = [
            ",".join(map(repr, map(float, [y, *x]))) for x, y in zip(data.x, data.y, strict=True)
        ]
    else:
        rows = [
            f"{float(y)} " + " ".join(f"{i}:{float(v)!r}" for i, v in enumerate(x))
            for x, y in zip(data.x, data.y, strict=True)
        ]
    path.write_text("\n".join(rows) + "\n")
    arguments = {
        "include_collections": ["full_shap", "labels", "predictions"],
        "save_config": EVERY_ROUND,
    }
    whole, _ = record(data, out_dir, validation_data=data.train, **arguments)
    file = (str(path), kind)
    hook = Hook(str(out_dir.with_name("file")), train_data=file, validation_data=file, **arguments)
    data.fit(hook, 4)
    trial = closed(hook)
    for name in ("full_shap/f0", "labels", "predictions"):
        np.testing.assert_array_equal(value(trial, name, 3), value(whole, name, 3))


@pytest.mark.parametrize(
    "params",
    [
        {"tree_method": "hist"},
        {"tree_method": "exact"},
        {"subsample": 0.5, "colsample_bytree": 0.5},
        {"booster": "dart", "rate_drop": 0.5},
        {"booster": "gblinear"},
        {"num_parallel_tree": 3, "subsample": 0.5},
    ],
    ids=["hist", "exact", "subsample", "dart", "gblinear", "parallel"],
)
def test_the_model_is_the_same_to_the_last_bit(out_dir: Path, params: dict[str, Any]) -> None:
    params = {**params, "seed": 5}
    if params.get("booster") == "gblinear":
        params["updater"] = "coord_descent"
    trial, _ = record(
        Data(), out_dir, rounds=6, params=params, save_all=True, save_config=EVERY_ROUND
    )
    assert trial.steps() == list(range(6))


def test_the_trees_are_those_of_xgboosts_own_dump(out_dir: Path) -> None:
    data = Data()
    trial, model = record(
        data,
        out_dir,
        params={"max_depth": 4, "booster": "dart", "rate_drop": 0.3, "min_child_weight": 0},
        include_collections=["trees"],
        save_config=EVERY_ROUND,
    )
    whole = model.get_dump(dump_format="json", with_stats=True)
    from smdebug.xgboost.trees import table_of

    expected = table_of(whole, 0)
    for column in TREE_COLUMNS:
        joined = np.concatenate([value(trial, f"trees/{column}", step) for step in range(4)])
        np.testing.assert_array_equal(joined, expected[column])


def test_a_tree_without_a_split_is_one_leaf(out_dir: Path) -> None:
    trial, _ = record(
        Data(), out_dir, params={"gamma": 1e6}, save_all=True, save_config=EVERY_ROUND
    )
    assert list(value(trial, "trees/Feature", 1)) == ["Leaf"]
    assert not any("feature_importance" in name for name in trial.tensor_names())


def test_a_feature_called_bias_takes_the_place_of_the_intercept(out_dir: Path) -> None:
    data = Data(names=["bias", "a", "b", "c"])
    trial, model = record(data, out_dir, include_collections=["average_shap"], save_all=False)
    shap = model[:1].predict(data.train, pred_contribs=True)
    assert set(trial.tensor_names(collection="average_shap")) == {
        f"{family}_shap/{name}" for family in ("average", "mean") for name in data.names
    }
    np.testing.assert_allclose(
        value(trial, "average_shap/bias", 0)[0], np.abs(shap).sum(0)[0], rtol=1e-6
    )


def test_names_with_quotes_do_no_harm(out_dir: Path, messages: Messages) -> None:
    data = Data(names=['a "quoted" one', "b", "c", "d"])
    trial, _ = record(data, out_dir, save_all=True, save_config=EVERY_ROUND)
    assert 'average_shap/a "quoted" one' in trial.tensor_names(collection="average_shap")
    # Before XGBoost 2 such a dump is no JSON.
    missing = "trees/Tree" not in trial.tensor_names()
    assert len(messages.containing("XGBoost does not tell all of this model")) == int(missing)


def test_only_what_a_pattern_wants_is_computed(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("computed in vain")

    monkeypatch.setattr(xgboost.Booster, "predict", refuse)
    monkeypatch.setattr(xgboost.Booster, "get_dump", refuse)
    data = Data()
    hook = data.hook(out_dir, include_regex=["importance/gain"], save_config=EVERY_ROUND)
    data.fit(hook, 2)
    trial = closed(hook)
    assert set(trial.tensor_names()) == {
        "train-logloss",
        "validation-logloss",
        "feature_importance/gain/f0",
    }


def test_the_first_rows_are_enough_for_shap_values(out_dir: Path) -> None:
    trial, model = record(Data(), out_dir, include_collections=["full_shap"], shap_max_rows=7)
    expected = model[:1].predict(Data().train, pred_contribs=True)[:7]
    np.testing.assert_array_equal(value(trial, "full_shap/f2", 0), expected)


def test_predictions_of_evaluated_data_come_from_the_cache_of_the_model(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XGBoost has predicted the data of `evals`: what the hook asks for is that very object."""
    data = Data()
    seen: list[Any] = []
    predict = xgboost.Booster.predict

    def watched(self: Any, matrix: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(matrix)
        return predict(self, matrix, *args, **kwargs)

    monkeypatch.setattr(xgboost.Booster, "predict", watched)
    hook = data.hook(out_dir, include_collections=["predictions"], save_config=EVERY_ROUND)
    data.fit(hook, 200)
    trial = closed(hook)
    assert len(seen) == 200
    assert all(matrix is data.valid for matrix in seen)
    assert trial.tensor("predictions").steps() == list(range(200))
