"""Scripts for XGBoost and LightGBM that do not know of smdebug, recorded in real processes."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from markdown_examples import check_examples
from smdebug import zcc
from smdebug.open_trial import create_trial
from xgboost_training import KINDS, Data, value

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = Path(__file__).resolve().parent / "boosting_scripts" / "train.py"
Done = subprocess.CompletedProcess[str]


def start(*words: object, **variables: str) -> Done:
    """Runs Python with these words."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "SMDEBUG_STRICT": "1",
        "OMP_NUM_THREADS": "1",
        **variables,
    }
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@functools.cache
def unrecorded(way: str, rounds: int) -> str:
    """What a script prints without recording."""
    return start(SCRIPT, way, rounds).stdout


def recorded(out: Path, way: str, rounds: int, *options: str) -> Any:
    """The run of a script, which printed the same and learnt the same as without recording."""
    done = start("-m", "smdebug.run", "--out", out, *options, SCRIPT, way, rounds)
    assert done.stdout == unrecorded(way, rounds)
    return create_trial(str(out))


def configured(tmp_path: Path, out: Path, way: str, rounds: int, **document: Any) -> Any:
    """The same with a JSON file that names nothing but a place, unless more is given."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"LocalPath": str(out), **document}))
    done = start("-m", "smdebug.run", "--config", config, SCRIPT, way, rounds)
    assert done.stdout == unrecorded(way, rounds)
    return create_trial(str(out))


@pytest.mark.parametrize("way", ["train", "imported", "stopped"])
def test_a_plain_configuration_records_the_metrics_of_train(
    tmp_path: Path, out_dir: Path, way: str
) -> None:
    trial = configured(tmp_path, out_dir, way, 12)
    names = ["train-logloss", "validation-logloss"]
    assert sorted(trial.tensor_names()) == sorted(trial.tensor_names(collection="metrics")) == names
    assert trial.steps() == [0, 10]
    assert (out_dir / "training_job_end.ts").exists()


@pytest.mark.parametrize(("way", "steps"), [("classifier", [0, 10]), ("forest", [0])])
def test_the_scikit_learn_classes_are_recorded(
    tmp_path: Path, out_dir: Path, way: str, steps: list[int]
) -> None:
    trial = configured(tmp_path, out_dir, way, 12)
    assert trial.tensor_names(collection="metrics") == ["validation_0-logloss"]
    assert trial.steps() == steps


def test_cross_validation_is_recorded(out_dir: Path) -> None:
    trial = recorded(out_dir, "cv", 3)
    names = {"train-logloss", "test-logloss"}
    assert set(trial.tensor_names()) == names | {f"{name}-std" for name in names}
    assert trial.steps() == [0, 1, 2]


def test_without_options_metrics_are_recorded_at_every_round_and_importance_at_some(
    out_dir: Path,
) -> None:
    trial = recorded(out_dir, "train", 30)
    assert trial.tensor("validation-logloss").steps() == list(range(30))
    assert trial.tensor("feature_importance/gain/f0").steps()[0] == 0
    names = set(trial.tensor_names())
    assert {name for name in names if "/" in name} == {
        f"feature_importance/{kind}/f0" for kind in KINDS
    }
    assert not any("reductions" in name for name in names)


def test_everything_is_recorded_with_the_data_and_the_parameters_of_the_script(
    out_dir: Path,
) -> None:
    trial = recorded(out_dir, "train", 4, "--save", "all", "--interval", "1")
    data = Data()
    assert trial.steps() == [0, 1, 2, 3]
    assert list(value(trial, "hyperparameters/max_depth", 0)) == [2]
    assert value(trial, "predictions", 3).shape == (10,)
    assert list(value(trial, "labels", 3)) == list(data.y[:10])
    assert value(trial, "full_shap/f0", 3).shape == (40, 5)
    assert set(value(trial, "trees/Tree", 3)) == {3}


def test_collections_of_boosted_trees_can_be_chosen(out_dir: Path) -> None:
    trial = recorded(out_dir, "train", 5, "--save", "trees:2,predictions", "--interval", "1")
    assert trial.tensor("trees/ID").steps() == [0, 2, 4]
    assert trial.tensor("predictions").steps() == [0, 1, 2, 3, 4]
    assert not any("importance" in name for name in trial.tensor_names())


@pytest.mark.parametrize("way", ["lightgbm", "lightgbm_sklearn", "lightgbm_cv"])
def test_lightgbm_is_recorded(out_dir: Path, way: str) -> None:
    trial = recorded(out_dir, way, 3, "--save", "all", "--interval", "1")
    assert trial.steps() == [0, 1, 2]
    [loss] = trial.tensor_names(collection="losses")
    assert loss.endswith("binary_logloss")
    whole = {"predictions", "labels", "full_shap/Column_0", "trees/node_index"}
    names = set(trial.tensor_names())
    if way == "lightgbm":
        assert whole | {"hyperparameters/objective"} <= names
    else:
        assert bool(whole & names) == (way != "lightgbm_cv")


def test_a_script_that_records_by_itself_is_left_alone(tmp_path: Path, out_dir: Path) -> None:
    own = tmp_path / "own"
    done = start("-m", "smdebug.run", "--out", out_dir, SCRIPT, "own", 12, own)
    assert "nothing was recorded" in done.stderr
    assert create_trial(str(own)).steps() == [0, 10]
    assert not out_dir.exists()


@pytest.mark.parametrize("document", ['{"LocalPath": 3}', "{broken", '{"LocalPath": "/proc/x/y"}'])
def test_a_broken_configuration_costs_one_line_and_nothing_else(
    tmp_path: Path, document: str
) -> None:
    config = tmp_path / "config.json"
    config.write_text(document)
    code = "import sys; from smdebug import zcc; zcc.enable(); sys.argv[:] = sys.argv[1:]; "
    code += "exec(open(sys.argv[0]).read())"
    done = start(
        *("-c", code, SCRIPT, "train", 3), SMDEBUG_CONFIG_FILE_PATH=str(config), SMDEBUG_STRICT="0"
    )
    assert done.stdout == unrecorded("train", 3)
    assert "Traceback (most recent call last)" not in done.stderr.split("smdebug:")[0]
    assert done.stderr.strip()


def test_everything_can_be_undone(
    tmp_path: Path, out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lightgbm
    import xgboost

    before = [
        xgboost.train,
        xgboost.sklearn.train,
        xgboost.callback.CallbackContainer.__init__,
        lightgbm.train,
        lightgbm.cv,
    ]
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"LocalPath": str(out_dir)}))
    monkeypatch.setenv("SMDEBUG_CONFIG_FILE_PATH", str(config))
    try:
        assert zcc.enable()
        assert xgboost.train is not before[0]
        Data().fit(None, 1)
    finally:
        zcc.disable()
    after = [
        xgboost.train,
        xgboost.sklearn.train,
        xgboost.callback.CallbackContainer.__init__,
        lightgbm.train,
        lightgbm.cv,
    ]
    assert after == before
    assert create_trial(str(out_dir)).steps() == [0]


def test_the_guide_is_true(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/xgboost.md", tmp_path)


@pytest.mark.parametrize("section", ["XGBoost", "LightGBM"])
def test_the_quick_start_prints_what_is_shown(tmp_path: Path, section: str) -> None:
    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, section)
