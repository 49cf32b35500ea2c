"""`smdebug plan` for scripts that boost trees: what would be recorded, from their first rounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from smdebug.open_trial import create_trial
from test_xgboost_run import SCRIPT, start
from xgboost_training import KINDS, TREE_COLUMNS

ENDLESS = 1_000_000


def plan(*words: object) -> dict[str, Any]:
    return json.loads(start("-m", "smdebug.cli", "plan", "--json", *words).stdout)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def when(found: dict[str, Any]) -> dict[str, str]:
    return {c["name"]: c["when"] for c in found["collections"]}


def test_a_plan_names_tensors_rounds_and_sizes_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    words = ("--out", tmp_path / "run", "--save", "all", "--interval", 10)
    found = plan(*words, SCRIPT, "train", ENDLESS)
    assert files_below(tmp_path) == []
    assert found["models"] == ["Booster"]
    assert found["steps_run"] == 3
    tensors = {t["name"]: t for t in found["tensors"]}
    expected = {"train-logloss", "validation-logloss", "predictions", "labels"}
    expected |= {f"feature_importance/{kind}/f0" for kind in KINDS}
    expected |= {f"trees/{column}" for column in TREE_COLUMNS}
    for family in ("full", "average", "mean"):
        expected |= {f"{family}_shap/{name}" for name in ("f0", "f1", "f2", "f3", "bias")}
    assert expected <= set(tensors)
    extra = set(tensors) - expected
    assert all(n.startswith(("hyperparameters/", "feature_importance/")) for n in extra)
    assert (tensors["full_shap/f0"]["shape"], tensors["full_shap/f0"]["dtype"]) == (
        [40, 5],
        "float32",
    )
    assert tensors["trees/ID"]["dtype"] == "str"
    assert "trees" in tensors["trees/ID"]["collections"]
    assert not any(t["reductions"] for t in found["tensors"])
    assert when(found)["full_shap"] == "every 10th step"
    assert 0 < found["bytes_per_full_step"] < found["bytes_per_1000_steps"]
    assert found["step_secs"] > 0 and found["hook_secs_per_full_step"] > 0
    assert found["unmatched"] == []


def test_plain_words_mean_what_they_mean_to_a_run(tmp_path: Path) -> None:
    found = plan(SCRIPT, "train", ENDLESS)
    names = {t["name"] for t in found["tensors"]}
    assert {"train-logloss", "feature_importance/gain/f0"} <= names
    assert when(found)["metrics"] == "every step"
    assert "gradients" not in when(found)
    assert found["saved_steps_per_1000"] == 1000
    config = tmp_path / "config.json"
    config.write_text("{}")
    found = plan("--config", config, SCRIPT, "train", ENDLESS)
    assert {t["name"] for t in found["tensors"]} == {"train-logloss", "validation-logloss"}
    assert when(found) == {"metrics": "every 10th step"}
    assert found["saved_steps_per_1000"] == 100


def test_what_is_asked_of_networks_means_trees(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    losses = {"CollectionName": "losses", "CollectionParameters": {"save_interval": "3"}}
    gradients = {"CollectionName": "gradients", "CollectionParameters": {"include_regex": "^grad"}}
    config.write_text(json.dumps({"CollectionConfigurations": [losses, gradients]}))
    found = plan("--config", config, SCRIPT, "train", ENDLESS)
    assert when(found) == {
        "losses": "every 3rd step",
        "metrics": "every 3rd step",
        "feature_importance": "every 10th step",
    }
    assert found["unmatched"] == []


@pytest.mark.parametrize("layout", ["packed", "original"])
@pytest.mark.parametrize("way", ["train", "lightgbm"])
def test_the_predicted_bytes_are_near_those_of_the_run(
    tmp_path: Path, way: str, layout: str
) -> None:
    words = ("--save", "all", "--interval", "1", "--layout", layout)
    found = plan(*words, SCRIPT, way, ENDLESS)
    start("-m", "smdebug.run", "--out", tmp_path / "run", *words, SCRIPT, way, 40)
    assert len(create_trial(str(tmp_path / "run")).steps()) == 40
    written = sum(path.stat().st_size for path in files_below(tmp_path / "run")) / 40
    assert written / 2 < found["bytes_per_full_step"] < written * 2


@pytest.mark.parametrize(
    ("way", "metric"),
    [
        ("classifier", "validation_0-logloss"),
        ("cv", "test-logloss"),
        ("lightgbm", "valid_0-binary_logloss"),
        ("lightgbm_sklearn", "valid_0-binary_logloss"),
        ("lightgbm_cv", "valid-binary_logloss"),
    ],
)
def test_every_way_of_training_can_be_planned(way: str, metric: str) -> None:
    found = plan("--steps", 2, "--save", "metrics,trees", SCRIPT, way, 50)
    assert found["steps_run"] == 2
    names = {t["name"] for t in found["tensors"]}
    assert metric in names
    assert any(name.startswith("trees/") for name in names) == ("cv" not in way)


def test_patterns_that_match_nothing_are_named_with_what_is_near(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    right = {"include_regex": "importance/gain", "save_steps": "7,9"}
    collections = [
        {"CollectionName": "mine", "CollectionParameters": {"include_regex": "averge_shap/f1"}},
        {"CollectionName": "right", "CollectionParameters": right},
    ]
    config.write_text(
        json.dumps(
            {
                "HookParameters": {"include_regex": "trian-logloss", "start_step": 500},
                "CollectionConfigurations": collections,
            }
        )
    )
    found = plan("--config", config, "--steps", "2", SCRIPT, "train", ENDLESS)
    unmatched = {u["collection"]: u for u in found["unmatched"]}
    assert set(unmatched) == {"default", "mine"}
    assert "train-logloss" in unmatched["default"]["near"]
    assert "average_shap/f1" in unmatched["mine"]["near"]
    assert when(found)["right"] == "every 10th step from 500; steps 7, 9"
    # Tensors are found although none of the rounds that ran would be saved.
    assert "feature_importance/gain/f0" in {t["name"] for t in found["tensors"]}


def test_a_script_that_ends_early_is_planned_from_its_rounds() -> None:
    assert plan("--steps", "5", SCRIPT, "train", "2")["steps_run"] == 2


SEARCH = """
import numpy, xgboost
x = numpy.random.RandomState(0).rand(40, 4)
for number in range(100):
    booster = "gbtree" if number else "gblinear"
    xgboost.train({"booster": booster}, xgboost.DMatrix(x, x[:, 0]), 2)
"""


def test_trainings_of_few_rounds_are_planned_together(tmp_path: Path) -> None:
    script = tmp_path / "search.py"
    script.write_text(SEARCH)
    found = plan("--save", "all", "--steps", "5", script)
    assert found["steps_run"] == 5
    assert "trees/Tree" in {t["name"] for t in found["tensors"]}  # not of the first one


def test_a_plan_for_people_keeps_what_the_script_prints_apart() -> None:
    done = start("-m", "smdebug.cli", "plan", SCRIPT, "train", ENDLESS)
    lines = done.stdout.splitlines()
    assert lines[0] == "models    Booster"
    assert any(line.startswith("overhead  about ") for line in lines)
    assert any(line.split()[:3] == ["train-logloss", "1", "float64"] for line in lines)
    assert "train-logloss:" in done.stderr  # what the script prints
