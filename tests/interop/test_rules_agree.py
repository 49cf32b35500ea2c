"""A rule written for the original is judged here as it is there: steps, tensors, errors, the end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import original_view
import pytest
from answers import shown
from smdebug import Hook, SaveConfig, del_hook

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

PRELUDE = """
import json, sys
from smdebug.trials import create_trial
from smdebug.rules import Rule, invoke_rule
from smdebug.rules.req_tensors import RequiredTensors
from smdebug.rules.rule_invoker import invoke_rule as same
from smdebug.rules.action import Actions
from smdebug.exceptions import *
trial = create_trial(sys.argv[1])

def show(*values):
    sys.stderr.write(json.dumps(values) + chr(10))

def ending(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except Exception as error:
        return [type(error).__name__, getattr(error, "step", None), getattr(error, "last_step", None)]

class Above(Rule):
    def __init__(self, base_trial, threshold, name="w"):
        super().__init__(base_trial, action_str="")
        self.threshold, self.name, self.judged = threshold, name, []
    def set_required_tensors(self, step):
        self.req_tensors.add(self.name, steps=[step])
    def invoke_at_step(self, step):
        self.judged.append([step, self.base_trial.dynamic_refresh, self.base_trial.mode_step(step)])
        for tensor in self.req_tensors.get():
            if float(tensor.value(step).mean()) > self.threshold:
                return True
        return False
"""
SCRIPTS = {
    "to_the_end": """
rule = Above(trial, 1e9)
show(rule.report, rule.rule_name, len(rule.trials), rule.other_trials)
show(ending(invoke_rule, rule), rule.judged, rule.report)
""",
    "a_span": """
rule = Above(trial, 1e9)
show(ending(invoke_rule, rule, start_step=2, end_step=9), rule.judged)
rule = Above(trial, 1e9)
show(ending(invoke_rule, rule, 13, 14), rule.judged)
rule = Above(trial, 1e9)
show(ending(invoke_rule, rule, 5, 100), rule.judged)
""",
    "conditions": """
rule = Above(trial, 5)
show(ending(invoke_rule, rule), rule.judged)
rule = Above(trial, 5)
show(ending(invoke_rule, rule, raise_eval_cond=True), rule.judged)
try:
    Above(trial, -1).invoke(0)
except RuleEvaluationConditionMet as met:
    show(str(met), met.rule_name, met.step, met.end_of_rule)
""",
    "an_end_of_the_rule": """
class Once(Above):
    def invoke_at_step(self, step):
        super().invoke_at_step(step)
        if step == 6:
            raise RuleEvaluationConditionMet("Once", step, end_of_rule=True)
rule = Once(trial, 0)
show(ending(invoke_rule, rule), rule.judged)
""",
    "tensors_that_are_not_always_there": """
rule = Above(trial, 1e9, "sometimes")
show(ending(invoke_rule, rule), rule.judged)
rule = Above(trial, 1e9, "never")
show(ending(invoke_rule, rule), rule.judged)
show(ending(rule.invoke, 0), ending(rule.invoke, 1), ending(rule.invoke, 10**6))
""",
    "failures": """
class Broken(Above):
    def invoke_at_step(self, step):
        raise ZeroDivisionError
show(ending(invoke_rule, Broken(trial, 0)))
""",
    "required_tensors": """
required = RequiredTensors(trial, [])
required.add("w", [0, 3])
required.add("w", [6])
required.add("some.*|^w$", [0], should_match_regex=True)
names = sorted(required.get_names())
show(names, [required.get_tensor_steps(name) for name in names])
show(sorted(tensor.name for tensor in required.get()))
show(ending(required.add, "never", [0]), ending(required.fetch))
required.add("w", [1])
show(ending(required.fetch))
required.clear()
show(list(required.get_names()), list(required.get()), ending(required.fetch))
required.add("w", [99])
show(ending(required.fetch))
""",
    "several_trials": """
class Compare(Rule):
    def __init__(self, first, second):
        super().__init__(first, "", other_trials=[second])
        self.judged = []
    def set_required_tensors(self, step):
        for each in self.trials:
            self.req_tensors.add("w", [step], trial=each)
    def invoke_at_step(self, step):
        second = self.other_trials[0]
        assert list(self.req_tensors.get_names(second)) == ["w"]
        values = [float(each.tensor("w").value(step).mean()) for each in self.trials]
        self.judged.append([step, values, [each.dynamic_refresh for each in self.trials]])
        return values[0] != values[1]
rule = Compare(trial, create_trial(sys.argv[1]))
show(ending(invoke_rule, rule), rule.judged)
""",
    "actions": """
for text in ("", "[]", '{"name": "dance"}', '{"name": "sms"}', '{"name": "email", "end": "x"}',
             '{"name": "stoptraining"}', "{", "[{}]"):
    show(text, ending(lambda: show(len(Actions(text, "R")._actions))))
""",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Steps 0, 3, 6, … of which every second also holds the tensor `sometimes`."""
    out_dir = tmp_path_factory.mktemp("rules") / "run"
    hook = Hook(out_dir, save_all=True, save_config=SaveConfig(save_interval=3))
    for step in range(16):
        hook.step()
        hook.save("w", np.full(4, step, np.float32))
        if step % 2:
            hook.save("sometimes", np.full(4, step, np.float32))
    hook.close()
    del_hook()
    return out_dir


def answers(python: Path | str, script: str, run: Path, **variables: str) -> list[Any]:
    """What the script shows of a run."""
    return shown(python, PRELUDE + script, run, TRAINING_END_DELAY_REFRESH="0", **variables)


@pytest.mark.parametrize("name", SCRIPTS)
def test_both_packages_judge_alike(name: str, run: Path) -> None:
    theirs = answers(original_view.PYTHON, SCRIPTS[name], run, PYTHONPATH="")
    ours = answers(
        sys.executable, SCRIPTS[name], run, PYTHONPATH=str(original_view.ROOT / "python")
    )
    assert ours and ours == theirs
