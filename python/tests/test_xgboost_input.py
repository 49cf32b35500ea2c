"""What a hook for XGBoost says about wrong input, and that trainings go on whatever happens."""

from __future__ import annotations

import copy
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from conftest import Messages
from smdebug import ReductionConfig
from smdebug.boosting import saving
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.xgboost import Hook, create_trial, del_hook, get_hook
from xgboost_training import EVERY_ROUND, Data, closed, value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.ones((3, 2)), "must be a DMatrix, or a path and a content type such as"),
        (("no/such.csv", "csv"), "There is no file for .*_data: no/such.csv"),
        ((__file__, "text/cvs"), "there are csv, text/csv, libsvm, .* Did you mean 'text/csv'?"),
        ((__file__, 3), "has the content type 3"),
    ],
)
def test_wrong_data_is_refused_at_once(out_dir: Path, given: Any, message: str) -> None:
    with pytest.raises((SMDebugTypeError, SMDebugValueError), match=message):
        Hook(str(out_dir), train_data=given)
    assert not out_dir.exists()
    hook = Hook(str(out_dir))
    with pytest.raises((SMDebugTypeError, SMDebugValueError), match=message):
        hook.validation_data = given


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"hyperparameters": ["a"]}, "hyperparameters must be a dict, not list."),
        ({"shap_max_rows": 0}, "shap_max_rows must be a whole number of at least 1, not 0."),
    ],
)
def test_wrong_arguments_are_refused(
    out_dir: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises((SMDebugTypeError, SMDebugValueError), match=message):
        Hook(str(out_dir), **arguments)


def test_reductions_are_ignored_with_a_word(out_dir: Path, messages: Messages) -> None:
    data = Data()
    hook = data.hook(out_dir, reduction_config=ReductionConfig(reductions=["min"]))
    data.fit(hook, 1)
    assert value(closed(hook), "train-logloss", 0).shape == (1,)
    assert len(messages.containing("reduction_config is ignored")) == 1


def test_what_is_missing_is_said_once_and_the_rest_is_saved(
    out_dir: Path, messages: Messages
) -> None:
    data = Data()
    hook = Hook(str(out_dir), save_all=True, save_config=EVERY_ROUND)
    data.fit(hook, 3)
    names = set(closed(hook).tensor_names())
    assert {"train-logloss", "trees/Tree", "feature_importance/gain/f0"} <= names
    assert not names & {"predictions", "labels", "full_shap/f0"}
    for line in (
        "There is no validation_data: predictions are not saved.",
        "There is no validation_data with labels: labels are not saved.",
        "There is no train_data: SHAP values are not saved.",
    ):
        assert messages.containing(line) == [line]


def test_a_matrix_without_labels_costs_the_labels_alone(out_dir: Path, messages: Messages) -> None:
    data = Data()
    bare = xgboost.DMatrix(data.x)
    hook = data.hook(out_dir, validation_data=bare, save_all=True, save_config=EVERY_ROUND)
    data.fit(hook, 2)
    names = set(closed(hook).tensor_names())
    assert "predictions" in names
    assert "labels" not in names
    assert len(messages.containing("labels are not saved")) == 1


def test_an_unknown_metric_is_xgboosts_error_and_leaves_nothing_half_written(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)
    with pytest.raises(xgboost.core.XGBoostError, match="Unknown metric function nonsense"):
        data.fit(hook, 2, {"eval_metric": "nonsense"})
    trial = closed(hook)
    assert trial.steps() == []
    assert not list(out_dir.rglob("*.tmp"))


def test_training_without_labels_is_xgboosts_error_and_leaves_nothing_half_written(
    out_dir: Path,
) -> None:
    data = Data()
    data.train = xgboost.DMatrix(data.x)
    data.evals = [(data.train, "train")]
    hook = data.hook(out_dir, save_all=True, save_config=EVERY_ROUND)
    with pytest.raises(xgboost.core.XGBoostError, match=r"(?i)label"):
        data.fit(hook, 2)
    assert closed(hook).steps() == []
    assert not list(out_dir.rglob("*.tmp"))


def test_a_hook_that_is_listed_twice_records_once(out_dir: Path, messages: Messages) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)
    data.fit(hook, 3, callbacks=[hook])

    class Inner(xgboost.callback.TrainingCallback):
        """A callback of the user's that calls the hook, too."""

        def before_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return hook.before_iteration(model, epoch, evals_log)

        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            return hook.after_iteration(model, epoch, evals_log)

    data.fit(hook, 3, callbacks=[Inner()])
    trial = closed(hook)
    assert trial.steps() == [0, 1, 2]
    assert len(messages.containing("twice")) == 1


@pytest.mark.parametrize(
    ("collection", "advice"),
    [("full_shap", "of fewer rows with shap_max_rows"), ("trees", "Save it more rarely")],
)
def test_a_round_that_takes_long_is_said_once(
    out_dir: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch, collection: str, advice: str
) -> None:
    monkeypatch.setattr(saving, "LONG_SECS", 0.0)
    monkeypatch.setattr(saving, "MANY_ROUNDS", 0)
    data = Data()
    hook = data.hook(out_dir, include_collections=[collection], save_config=EVERY_ROUND)
    data.fit(hook, 3)
    hook.close()
    (line,) = messages.containing("rounds of training")
    assert line.startswith("Saving round 0 took ") and advice in line


def test_a_failure_of_ours_costs_a_tensor_and_not_the_training(
    out_dir: Path, messages: Messages
) -> None:
    data = Data(names=["a", "b", "c", "d"])
    other = xgboost.DMatrix(data.x)  # whose features have other names
    hook = data.hook(out_dir, validation_data=other, save_all=True, save_config=EVERY_ROUND)
    model = data.fit(hook, 3)
    assert bytes(model.save_raw("json")) == bytes(data.fit(None, 3).save_raw("json"))
    trial = closed(hook)
    assert trial.steps() == [0, 1, 2]
    assert "predictions" not in trial.tensor_names()
    assert "full_shap/a" in trial.tensor_names()
    assert len(messages.containing("Saving predictions failed; training goes on.")) == 1


def test_strict_mode_raises_into_the_training(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    data = Data(names=["a", "b", "c", "d"])
    other = xgboost.DMatrix(data.x)
    hook = data.hook(out_dir, validation_data=other, save_all=True, save_config=EVERY_ROUND)
    with pytest.raises(ValueError, match=r"feature|fields"):
        data.fit(hook, 1)
    hook.close()


def test_a_forked_child_records_nothing(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)
    model = data.fit(hook, 2)
    child = os.fork()
    if child == 0:
        hook.before_training(model=model)
        hook.before_iteration(model, 0, {})
        hook.after_iteration(model, 0, {"train": {"logloss": [7.0]}})
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    trial = closed(hook)
    assert trial.steps() == [0, 1]
    assert value(trial, "train-logloss", 0)[0] < 1


def test_a_closed_hook_does_nothing(out_dir: Path, messages: Messages) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)
    data.fit(hook, 2)
    hook.close()
    data.fit(hook, 3)
    assert create_trial(str(out_dir)).steps() == [0, 1]
    assert len(messages.containing("this training is not recorded")) == 1
    assert not messages.containing("failed")


def test_scalars_and_tensors_of_a_round_belong_to_its_step(out_dir: Path) -> None:
    data = Data()
    hook = data.hook(out_dir, save_config=EVERY_ROUND)

    class Own(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            hook.save_scalar("rounds", epoch)
            hook.save_tensor("mine", np.full(3, epoch))
            return False

    data.fit(hook, 3, callbacks=[Own()])
    trial = closed(hook)
    for step in range(3):
        assert value(trial, "scalar/rounds", step) == step
        assert list(value(trial, "mine", step)) == [step] * 3


def test_copies_are_the_hook_and_pickles_record_in_a_training_of_their_own(out_dir: Path) -> None:
    data = Data()
    hook = Hook(str(out_dir.with_name("first")), save_config=EVERY_ROUND)
    assert copy.deepcopy([hook])[0] is copy.copy(hook) is hook
    hook.close()
    hook = Hook(str(out_dir), hyperparameters={"a": 1}, include_collections=["hyperparameters"])
    hook.get_collection("hyperparameters").save_config = EVERY_ROUND
    stored = pickle.dumps(hook)
    assert not list(out_dir.rglob("*"))
    travelled = pickle.loads(stored)
    data.fit(travelled, 2)
    trial = create_trial(str(out_dir))
    assert trial.tensor("hyperparameters/a").steps() == [0, 1]
    assert trial.tensor("train-logloss").steps() == [0]
    assert (out_dir / "training_job_end.ts").exists()


def test_a_model_that_holds_the_hook_can_be_stored(out_dir: Path) -> None:
    data = Data()
    hook = Hook(str(out_dir), save_config=EVERY_ROUND)
    model = xgboost.XGBClassifier(n_estimators=2, callbacks=[hook], n_jobs=1)
    model.fit(data.x, data.y, eval_set=[(data.x, data.y)], verbose=False)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(data.x), model.predict(data.x))
    assert closed(hook).steps() == [0, 1]


def test_the_hook_of_the_process_is_made_from_a_file(
    out_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        f'{{"LocalPath": "{out_dir}", "CollectionConfigurations":'
        ' [{"CollectionName": "trees"}, {"CollectionName": "full_shap"}]}'
    )
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    hook = get_hook()
    assert isinstance(hook, Hook)
    assert get_hook() is hook
    data = Data()
    hook.train_data = data.train
    hook.hyperparameters = {"max_depth": 2}
    data.fit(hook, 12)
    data.fit(hook, 11)
    trial = closed(hook)
    # Collections of the file, too, have the interval of the framework.
    assert trial.tensor("trees/Tree").steps() == trial.tensor("full_shap/f0").steps() == [0, 10]
    del_hook()


def test_no_configuration_is_no_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", "no/such/file.json")
    assert get_hook() is None
