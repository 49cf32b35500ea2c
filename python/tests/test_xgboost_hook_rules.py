"""Rules inside of a training with XGBoost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import xgboost
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
from smdebug.rules.action import StopTraining
from smdebug.xgboost import Hook, SaveConfig, create_trial
from xgboost_training import Data

TREES = {"include_collections": ["trees"], "save_config": SaveConfig(save_interval=2)}
DEEP = {"rule": "TreeDepth", "depth": 0}
LOG = '[{"name": "log", "level": "info"}]'


@pytest.fixture(autouse=True)
def lenient(clean_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a real job: a failure of ours never ends the training, a request does."""
    monkeypatch.setenv("SMDEBUG_STRICT", "0")


def steps_with_hits(out_dir: Path) -> list[int]:
    files = sorted((out_dir / "findings").glob("*.jsonl"))
    return [json.loads(line)["step"] for file in files for line in file.read_text().splitlines()]


def test_trees_are_judged_in_the_training(out_dir: Path) -> None:
    with Hook(str(out_dir), **TREES, rules=[DEEP]) as hook:
        Data().fit(hook, 5)
    assert steps_with_hits(out_dir) == [0, 2, 4]
    assert create_trial(str(out_dir)).tensor("trees/Node").steps() == [0, 2, 4]


def test_rules_judge_shap_values_under_each_of_their_names(out_dir: Path) -> None:
    rule = {"rule": "AllZero", "tensor_regex": "^full_shap/f[0-9]$", "threshold": 1}
    data = Data()
    hook = data.hook(
        out_dir,
        include_collections=["full_shap"],
        save_config=SaveConfig(save_interval=1),
        rules=[rule],
    )
    data.fit(hook, 1)
    hook.close()
    (line,) = (out_dir / "findings" / "worker_0.jsonl").read_text().splitlines()
    judged = {violation["tensor"] for violation in json.loads(line)["violations"]}
    assert judged == {f"full_shap/f{i}" for i in range(4)}


@pytest.mark.parametrize("from_json", [False, True])
def test_rules_judge_the_second_training_of_a_hook(
    out_dir: Path, tmp_path: Path, from_json: bool
) -> None:
    if from_json:
        file = tmp_path / "hook.json"
        collections: list[Any] = [
            {"CollectionName": "trees", "CollectionParameters": {"save_interval": "2"}}
        ]
        document = {
            "LocalPath": str(out_dir),
            "CollectionConfigurations": collections,
            "rules": [DEEP],
        }
        file.write_text(json.dumps(document))
        hook = Hook.create_from_json_file(str(file))
    else:
        hook = Hook(str(out_dir), **TREES, rules=[DEEP])
    data = Data()
    data.fit(hook, 3)
    first = hook._rule_watch
    data.fit(hook, 3)
    assert hook._rule_watch is not None and hook._rule_watch is not first
    hook.close()
    assert steps_with_hits(out_dir) == [0, 2, 0, 2]


def test_a_rule_stops_the_training(out_dir: Path) -> None:
    """The rule fires at the first round whose trees have a split."""
    data = Data()
    rule = {**DEEP, "actions": [StopTraining()]}
    hook = Hook(str(out_dir), **TREES, rules=[rule])
    with pytest.raises(TrainingStopRequested, match="Rule TreeDepth asked at step 0"):
        data.fit(hook, 1_000_000)
    hook.close()
    rounds = create_trial(str(out_dir)).steps()
    assert 1 <= len(rounds) < 500_000
    assert rounds == list(range(0, 2 * len(rounds), 2))  # all of them are whole
    assert steps_with_hits(out_dir)[0] == 0


def test_a_rule_stops_the_scikit_learn_classes_too(out_dir: Path) -> None:
    data = Data()
    rule = {**DEEP, "actions": [StopTraining()]}
    hook = Hook(str(out_dir), **TREES, rules=[rule])
    model = xgboost.XGBClassifier(n_estimators=1_000_000, callbacks=[hook], n_jobs=1)
    with pytest.raises(TrainingStopRequested, match="Rule TreeDepth asked at step 0"):
        model.fit(data.x, data.y)
    hook.close()
    assert create_trial(str(out_dir)).steps()[0] == 0


def test_somebody_who_watches_stops_the_training(out_dir: Path) -> None:
    """A request that comes from outside, while rounds are boosted."""
    hook = Hook(str(out_dir), **TREES, rules=[{**DEEP, "actions": LOG}])

    class Asking(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, evals_log: Any) -> bool:
            if epoch == 3:
                run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
            return False

    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        Data().fit(hook, 1_000_000, callbacks=[Asking()])
    hook.close()
    assert create_trial(str(out_dir)).steps()[:3] == [0, 2, 4]
