"""The rules for boosted trees on real trainings with XGBoost, healthy ones and sick ones."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xgboost
from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.rules import create_rule, diagnose, invoke_rule, rule_configs
from smdebug.xgboost import Hook, create_trial
from xgboost_training import EVERY_ROUND

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
TRAINED = 400
BINARY = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}
STUMPS = {**BINARY, "max_depth": 1, "eta": 0.05}
CLASSES = {**BINARY, "objective": "multi:softmax", "num_class": 3}
REPORTED = ["feature_importance", "labels", "predictions", "hyperparameters"]

pytestmark = pytest.mark.usefixtures("strict")


@dataclass
class Training:
    """What is learnt, how, and what is saved of it at every round."""

    labels: Any  # of 600 rows, of which the last 200 validate
    params: dict[str, Any]
    saved: list[str]
    rounds: int = 30

    def record(self, out_dir: Path) -> Path:
        """A run of it."""
        train = xgboost.DMatrix(ROWS[:TRAINED], self.labels[:TRAINED])
        valid = xgboost.DMatrix(ROWS[TRAINED:], self.labels[TRAINED:])
        with Hook(
            str(out_dir),
            include_collections=self.saved,
            save_config=EVERY_ROUND,
            validation_data=valid,
            hyperparameters=self.params,
        ) as hook:
            xgboost.train(
                self.params,
                train,
                self.rounds,
                evals=[(train, "train"), (valid, "validation")],
                callbacks=[hook],
                verbose_eval=False,
            )
        return out_dir


RANDOM = np.random.RandomState(0)
ROWS = RANDOM.rand(600, 8)
CHANCE = RANDOM.rand(600)
NOISE = RANDOM.rand(600) < 0.1
BALANCED = (ROWS.sum(1) > 4).astype(np.float32)  # every feature counts
ONE_FEATURE = ((np.sin(ROWS[:, 0] * 20) > 0) ^ NOISE).astype(np.float32)
EASY = ((ROWS[:, 0] > 0.5) ^ NOISE).astype(np.float32)
COIN = (CHANCE > 0.5).astype(np.float32)
RARE = (ROWS[:, 0] > 0.97).astype(np.float32)
THIRDS = np.floor(ROWS[:, 0] * 3).astype(np.float32)
MIXED_UP = np.where((THIRDS > 0) & COIN.astype(bool), 3 - THIRDS, THIRDS)  # the last two classes

# rule, a healthy training, a sick one, what is said of the sick one
CASES = [
    (
        "FeatureImportanceOverweight",
        Training(BALANCED, BINARY, ["feature_importance"]),
        Training(ONE_FEATURE, BINARY, ["feature_importance"]),
        "f0",
    ),
    (
        "TreeDepth",
        Training(BALANCED, BINARY, ["trees"]),
        Training(CHANCE, {"max_depth": 8, "nthread": 1}, ["trees"]),
        "levels deep; 4 are accepted.",
    ),
    (
        "LossNotDecreasing",
        Training(BALANCED, {**BINARY, "eta": 0.1}, ["losses"]),
        Training(BALANCED, {**BINARY, "eta": 1e-7}, ["losses"]),
        "has stopped falling",
    ),
    (
        "Overfit",
        Training(EASY, STUMPS, ["losses"]),
        Training(COIN, {**BINARY, "max_depth": 6}, ["losses"]),
        "'validation-logloss' is ",
    ),
    (
        "ClassImbalance",
        Training(THIRDS, CLASSES, ["labels", "predictions"]),
        Training(RARE, BINARY, ["labels", "predictions"]),
        "samples of class 0 and",
    ),
    (
        "Confusion",
        Training(THIRDS, CLASSES, ["labels", "predictions"]),
        Training(MIXED_UP, CLASSES, ["labels", "predictions"]),
        "are right; at least 90 % are expected.",
    ),
]


@pytest.mark.parametrize(("rule", "healthy", "sick", "message"), CASES, ids=[c[0] for c in CASES])
def test_a_sick_training_is_told_and_a_healthy_one_is_not(
    tmp_path: Path, rule: str, healthy: Training, sick: Training, message: str
) -> None:
    well = healthy.record(tmp_path / "well")
    assert create_trial(str(well)).steps() == list(range(healthy.rounds))
    found = diagnose(well, [rule])
    assert (found["findings"], found["steps"]) == ([], healthy.rounds)
    ill = sick.record(tmp_path / "ill")
    (finding,) = diagnose(ill, [rule])["findings"]
    assert finding["rule"] == rule
    assert message in finding["message"]

    config = getattr(rule_configs, NAMES[rule])()
    with pytest.raises(RuleEvaluationConditionMet) as met:
        invoke_rule(create_rule(config, create_trial(str(ill))), raise_eval_cond=True)
    assert met.value.step == finding["first"]["step"]
    outcome = create_rule(config, create_trial(str(well)))
    invoke_rule(outcome, end_step=healthy.rounds, raise_eval_cond=True)
    assert outcome.report["RuleTriggered"] == 0


NAMES = {
    "FeatureImportanceOverweight": "feature_importance_overweight",
    "TreeDepth": "tree_depth",
    "LossNotDecreasing": "loss_not_decreasing",
    "Overfit": "overfit",
    "ClassImbalance": "class_imbalance",
    "Confusion": "confusion",
}


def reported(training: Training, folder: Path) -> dict[str, Any]:
    """The numbers of the report about a training."""
    run = training.record(folder / "run")
    parameters = {"CreateXgboostReport": {"out_dir": str(folder / "report")}}
    found = diagnose(run, ["CreateXgboostReport"], parameters)
    assert found["findings"] == []  # it never fires
    page = (folder / "report/xgboost_report.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>") and "<svg" in page
    return json.loads((folder / "report/xgboost_report.json").read_text(encoding="utf-8"))


def test_a_report_tells_a_good_model_from_one_that_learnt_by_heart(tmp_path: Path) -> None:
    for name, labels, params, low, high, remark in (
        ("well", EASY, STUMPS, 0.8, 1.0, "Still improving, by "),
        ("ill", COIN, {**BINARY, "max_depth": 6}, 0.4, 0.6, "Overfitting: "),
    ):
        training = Training(labels, params, REPORTED)
        report = reported(training, tmp_path / name)
        assert report["task"] == "binary classification"
        assert report["hyperparameters"]["max_depth"] == params["max_depth"]
        sections = report["sections"]
        counts = {c["label"]: c["count"] for c in sections["label_distribution"]["classes"]}
        assert counts == {0: (labels[TRAINED:] == 0).sum(), 1: (labels[TRAINED:] == 1).sum()}
        assert low < sections["roc"]["auc"] < high
        assert sections["feature_importance"]["gain"]["step"] == training.rounds - 1
        (loss,) = sections["loss"]["metrics"]
        assert loss["remark"].startswith(remark)


def test_a_report_about_numbers_has_residuals_instead_of_classes(tmp_path: Path) -> None:
    params = {"objective": "reg:squarederror", "max_depth": 3, "nthread": 1}
    sections = reported(Training(ROWS.sum(1), params, REPORTED), tmp_path)["sections"]
    assert "residuals" in sections
    assert "confusion_matrix" not in sections


def program(*words: object) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    return subprocess.run(
        [PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=60, check=False
    )


def test_the_command_says_the_same(tmp_path: Path) -> None:
    saved = ["trees", "labels", "predictions"]
    well = Training(THIRDS, CLASSES, saved).record(tmp_path / "well")
    sick = Training(MIXED_UP, CLASSES, saved).record(tmp_path / "ill")
    rules = ("--rules", "TreeDepth,Confusion,ClassImbalance")
    done = program("diagnose", well, *rules)
    assert done.returncode == 0, done.stderr
    assert "30 steps, 3 rules evaluated, no issues found" in done.stdout
    done = program("diagnose", sick, *rules, "--json")
    assert done.returncode == 1, done.stderr
    run = json.loads(done.stdout)
    # A class that is mostly wrong is the other rule's concern, too.
    assert {f["rule"] for f in run["findings"]} == {"Confusion", "ClassImbalance"}
    # All rules together, as somebody asks who does not know what is wrong.
    assert "Confusion" in program("diagnose", sick).stdout
