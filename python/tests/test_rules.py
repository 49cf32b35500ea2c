"""Rules written in Python: what they may rely on, and how they are judged step by step."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import writing
from smdebug import Hook, ReductionConfig, SaveConfig
from smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules import RequiredTensors, Rule, invoke_rule
from smdebug.rules.action import Log
from smdebug.rules.hit import Hit
from smdebug.rules.req_tensors import RequiredTensorsForTrial
from smdebug.rules.rule import Rule as RuleByItsModule
from smdebug.rules.rule_invoker import invoke_rule as invoke_rule_by_its_module
from smdebug.trials import create_trial


class Above(Rule):
    """As rules for the original are written: the mean of a tensor exceeds a threshold."""

    def __init__(self, base_trial, name="w", threshold=2.5, other_trials=None, action_str=""):
        super().__init__(base_trial, action_str=action_str, other_trials=other_trials)
        self.name = name
        self.threshold = float(threshold)
        self.judged = []

    def set_required_tensors(self, step):
        self.req_tensors.add(self.name, steps=[step])

    def invoke_at_step(self, step):
        self.judged.append(step)
        means = [t.reduction_value(step, "mean") for t in self.req_tensors.get()]
        return max(means) > self.threshold


class Seen(Rule):
    """Never fires; notes the steps."""

    def __init__(self, base_trial, **arguments):
        super().__init__(base_trial, **arguments)
        self.judged = []

    def invoke_at_step(self, step):
        self.judged.append(step)


def write(path: Path, steps=range(5), end=True, **arguments) -> Path:
    """Each step holds w, whose value is the step's number."""
    for step in steps:
        writing.step(path, step, w=np.full(3, step, np.float32), **arguments)
    writing.collections(path)
    if end:
        writing.end(path)
    return path


def invoked_until_the_end(rule, **arguments) -> NoMoreData:
    with pytest.raises(NoMoreData) as ended:
        invoke_rule(rule, **arguments)
    return ended.value


# --- the base class


def test_the_attributes_are_those_of_the_original(out_dir):
    trial = create_trial(write(out_dir))
    rule = Above(trial)
    assert rule.base_trial is trial and rule.other_trials is None and rule.trials == [trial]
    assert rule.rule_name == "Above" and rule.logger.name == "smdebug"
    assert rule.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 0,
        "RuleParameters": "",
    }
    assert rule._actions._actions == []
    assert Rule is RuleByItsModule and invoke_rule is invoke_rule_by_its_module


def test_other_trials_are_copied(out_dir, tmp_path):
    first, second = create_trial(write(out_dir)), create_trial(write(tmp_path / "other"))
    others = [second]
    rule = Above(first, other_trials=others)
    others.clear()
    assert rule.other_trials == [second] and rule.trials == [first, second]


def test_a_rule_without_a_condition_cannot_be_made(out_dir):
    with pytest.raises(TypeError, match="invoke_at_step"):
        Rule(create_trial(write(out_dir)))


def test_invoke_raises_where_the_condition_is_met(out_dir):
    rule = Above(create_trial(write(out_dir)))
    rule.invoke(2)
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(3)
    assert (met.value.rule_name, met.value.step, met.value.end_of_rule) == ("Above", 3, False)
    assert str(met.value) == (
        "Evaluation of the rule Above at step 3 resulted in the condition being met"
    )


def test_trials_look_for_no_news_while_a_step_is_judged(out_dir, tmp_path):
    trial, other = create_trial(write(out_dir, end=False)), create_trial(write(tmp_path / "b"))
    found = []

    class Frozen(Rule):
        def set_required_tensors(self, step):
            self.req_tensors.add("w", [step])
            writing.step(out_dir, 50, w=np.zeros(3, np.float32))

        def invoke_at_step(self, step):
            writing.step(out_dir, 51, w=np.zeros(3, np.float32))
            found.append([t.dynamic_refresh for t in self.trials] + [trial.steps()[-1]])
            raise KeyError("in the rule")

    rule = Frozen(trial, other_trials=[other])
    with pytest.raises(KeyError, match="in the rule"):
        rule.invoke(1)
    assert found == [[False, False, 4]]
    assert trial.dynamic_refresh and other.dynamic_refresh
    assert trial.steps()[-1] == 51


def test_a_rule_says_what_actions_are_told(out_dir):
    class Told(Above):
        severity = "critical"

        def hit(self, step):
            plain = super().hit(step)
            return Hit(**{**vars(plain), "message": "Look here."})

    rule = Told(create_trial(write(out_dir)))
    hit = rule.hit(3)
    assert (hit.rule, hit.step, hit.mode, hit.mode_step) == ("Told", 3, "TRAIN", 3)
    assert (hit.message, hit.severity, hit.path) == ("Look here.", "critical", str(out_dir))


def test_a_severity_that_does_not_exist_is_refused(out_dir):
    class Wrong(Above):
        severity = "fatal"

    with pytest.raises(SMDebugValueError, match="fatal"):
        Wrong(create_trial(write(out_dir)))


def test_a_hit_is_json_whatever_it_holds():
    violation = {"value": np.float32("nan"), "threshold": float("-inf"), "at": np.arange(2)}
    hit = Hit("R", 1, violations=[violation], parameters={"names": ("a", None)}, time=0.0)
    record = hit.record()
    assert record["violations"] == [{"value": "nan", "threshold": "-inf", "at": [0, 1]}]
    assert record["parameters"] == {"names": ["a", None]}
    assert "NaN" not in hit.to_json()


# --- the invoker


def test_saved_steps_are_judged_and_the_end_propagates(out_dir):
    rule = Seen(create_trial(write(out_dir, [0, 7, 1000, 123456789])))
    ended = invoked_until_the_end(rule)
    assert rule.judged == [0, 7, 1000, 123456789]
    assert (ended.step, ended.last_step) == (123456790, 123456789)


def test_start_and_end_limit_the_steps(out_dir):
    rule = Seen(create_trial(write(out_dir, range(0, 50, 5))))
    invoke_rule(rule, start_step=7, end_step=20)
    assert rule.judged == [10, 15]
    invoke_rule(rule, start_step=16, end_step=20)
    invoke_rule(rule, start_step=20, end_step=20)
    assert rule.judged == [10, 15]
    invoke_rule(rule, start_step=-3, end_step=1)
    assert rule.judged == [10, 15, 0]


def test_a_met_condition_is_logged_and_the_next_step_follows(out_dir, messages):
    rule = Above(create_trial(write(out_dir)))
    invoke_rule(rule, end_step=5)
    assert rule.judged == [0, 1, 2, 3, 4]
    assert len(messages.containing("resulted in the condition being met")) == 2


def test_a_met_condition_is_raised_on_request(out_dir):
    rule = Above(create_trial(write(out_dir)))
    with pytest.raises(RuleEvaluationConditionMet, match="step 3"):
        invoke_rule(rule, raise_eval_cond=True)
    assert rule.judged == [0, 1, 2, 3]


def test_the_end_of_a_rule_ends_the_loop(out_dir):
    class Once(Seen):
        def invoke_at_step(self, step):
            super().invoke_at_step(step)
            if step == 2:
                raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=True)

    rule = Once(create_trial(write(out_dir)))
    invoke_rule(rule)
    assert rule.judged == [0, 1, 2]


@pytest.mark.parametrize(
    "error",
    [TensorUnavailable("w"), TensorUnavailableForStep("w", 1), StepUnavailable(1, None)],
    ids=lambda error: type(error).__name__,
)
def test_what_is_not_available_is_passed_over(out_dir, error, messages, monkeypatch):
    class Picky(Seen):
        def invoke_at_step(self, step):
            if step == 1:
                raise error
            super().invoke_at_step(step)

    monkeypatch.setattr(type(error), "describe", lambda self: "It is not there.")
    rule = Picky(create_trial(write(out_dir)))
    rule.logger.setLevel("DEBUG")
    try:
        invoked_until_the_end(rule)
    finally:
        rule.logger.setLevel("INFO")
    assert rule.judged == [0, 2, 3, 4]
    assert messages.containing("passes over step 1. It is not there.")


def test_other_failures_of_a_rule_are_raised(out_dir):
    class Broken(Rule):
        def invoke_at_step(self, step):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        invoke_rule(Broken(create_trial(write(out_dir))))


def test_unsaved_steps_cost_nothing(out_dir):
    """A look for news per unsaved integer would take hours here."""
    trial = create_trial(write(out_dir, [0, 10**15]))
    rule = Seen(trial)
    invoke_rule(rule, end_step=10**15 + 1)
    assert rule.judged == [0, 10**15]


def test_a_growing_run_is_followed_to_its_end(out_dir):
    trial = create_trial(write(out_dir, [0], end=False))
    turn = threading.Semaphore(0)

    class Following(Seen):
        def invoke_at_step(self, step):
            super().invoke_at_step(step)
            turn.release()

    def train():
        for step in (10, 20, 35):
            turn.acquire()
            write(out_dir, [step], end=False)
        turn.acquire()
        writing.end(out_dir)

    rule = Following(trial)
    thread = threading.Thread(target=train)
    thread.start()
    ended = invoked_until_the_end(rule)
    thread.join()
    assert rule.judged == [0, 10, 20, 35]
    assert ended.last_step == 35


def test_a_step_that_another_worker_may_still_save_is_waited_for(out_dir):
    for worker in ("worker_0", "worker_1"):
        writing.collections(out_dir, worker, num_workers=2)
        for step in (0, 10):
            writing.step(out_dir, step, worker)
    writing.step(out_dir, 20, "worker_1")
    trial = create_trial(out_dir)
    turn = threading.Event()

    class Following(Seen):
        def invoke_at_step(self, step):
            super().invoke_at_step(step)
            if step == 10:
                turn.set()

    def train():
        turn.wait()
        for step, workers in ((15, (0, 1)), (20, (0,))):
            for worker in workers:
                writing.step(out_dir, step, f"worker_{worker}")
        writing.end(out_dir)

    rule = Following(trial)
    thread = threading.Thread(target=train)
    thread.start()
    invoked_until_the_end(rule)
    thread.join()
    assert rule.judged == [0, 10, 15, 20]


def test_a_trial_with_a_range_ends_with_its_range_though_the_job_runs(out_dir):
    write(out_dir, range(20), end=False)
    rule = Seen(create_trial(out_dir, range_steps=(5, 8)))
    ended = invoked_until_the_end(rule)
    assert rule.judged == [5, 6, 7]
    assert ended.last_step == 7


def test_objects_that_only_look_like_rules_are_invoked_step_by_step():
    class Plain:
        rule_name = "plain"

        def __init__(self):
            self.steps = []

        def invoke(self, step):
            self.steps.append(step)

    rule = Plain()
    invoke_rule(rule, start_step=2, end_step=5)
    assert rule.steps == [2, 3, 4]


def test_wrong_steps_are_refused(out_dir):
    rule = Seen(create_trial(write(out_dir)))
    with pytest.raises(SMDebugTypeError, match="whole number"):
        invoke_rule(rule, start_step=1.5)
    with pytest.raises(SMDebugTypeError, match="whole number"):
        invoke_rule(rule, end_step="9")


# --- required tensors


def test_required_tensors_answer_as_those_of_the_original(out_dir):
    writing.step(out_dir, 0, a=np.ones(2, np.float32), b=np.ones(2, np.float32))
    writing.collections(out_dir)
    writing.end(out_dir)
    trial = create_trial(out_dir)
    required = RequiredTensors(trial, None)
    steps = [0]
    required.add("a", steps)
    required.add("a", steps)
    assert steps == [0]
    assert required.get_tensor_steps("a") == [0, 0]
    assert set(required.get_names()) == {"a"} and required.get() == [trial.tensor("a")]
    required.add("^[ab]$", [0], should_match_regex=True)
    assert required.get_names() == {"a", "b"}
    required.get_tensor_steps("b").append(9)
    assert required.get_tensor_steps("b") == [0]
    required.fetch()
    required.clear()
    assert required.get() == []
    with pytest.raises(TensorUnavailable, match="nope"):
        required.add("nope", [0])
    with pytest.raises(KeyError, match="nope"):
        required.get_tensor_steps("nope")
    with pytest.raises(SMDebugTypeError, match="whole number"):
        required.add("a", ["0"])


def test_each_trial_has_its_own_required_tensors(out_dir, tmp_path):
    first = create_trial(write(out_dir))
    second = create_trial(write(tmp_path / "second"))
    required = RequiredTensors(first, [second])
    required.add("w", [1], trial=second)
    assert list(required.get_names()) == [] and list(required.get_names(second)) == ["w"]
    assert required.get_tensor_steps("w", create_trial(tmp_path / "second")) == [1]
    with pytest.raises(SMDebugValueError, match="does not look at this trial"):
        required.get(create_trial(write(tmp_path / "third")))


def test_fetch_says_what_is_missing(out_dir):
    writing.step(out_dir, 0, a=np.ones(2, np.float32), b=np.ones(2, np.float32))
    writing.step(out_dir, 1, b=np.ones(2, np.float32))
    writing.step(out_dir, 3, b=np.ones(2, np.float32))
    writing.collections(out_dir)
    writing.end(out_dir)
    trial = create_trial(out_dir)
    for name, step, error in [
        ("a", 1, TensorUnavailableForStep),
        ("b", 2, StepUnavailable),
        ("b", 9, NoMoreData),
    ]:
        required = RequiredTensorsForTrial(trial)
        required.add(name, [step])
        with pytest.raises(error) as raised:
            required.fetch()
        assert isinstance(raised.value, SMDebugError) and raised.value.step == step


def test_fetch_waits_for_the_steps_of_other_trials(out_dir, tmp_path):
    first = create_trial(write(out_dir))
    growing = tmp_path / "growing"
    second = create_trial(write(growing, [0], end=False))

    class Compare(Rule):
        def set_required_tensors(self, step):
            for trial in self.trials:
                self.req_tensors.add("w", [step], trial=trial)
            if step == 1:
                write(growing, [1], end=False)

        def invoke_at_step(self, step):
            values = [t.tensor("w").value(step)[0] for t in self.trials]
            return values == [1, 1]

    rule = Compare(first, other_trials=[second])
    rule.invoke(0)
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(1)


def test_a_rule_that_needs_reductions_can_list_their_tensor(out_dir):
    hook = Hook(
        out_dir,
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean"]),
    )
    for step in range(4):
        hook.step()
        hook.save("layer/w", np.full(3, step, np.float32))
    hook.close()
    rule = Above(create_trial(out_dir), "layer/w", threshold=2.5)
    with pytest.raises(RuleEvaluationConditionMet, match="step 3"):
        invoke_rule(rule, raise_eval_cond=True)


def test_what_was_fetched_is_read_once_and_then_forgotten(out_dir, monkeypatch):
    trial = create_trial(write(out_dir))
    tensor = trial.tensor("w")
    held = []

    class Reading(Rule):
        def set_required_tensors(self, step):
            self.req_tensors.add("w", [step])

        def invoke_at_step(self, step):
            held.append(len(tensor._cached))
            assert tensor.value(step) is tensor.value(step)

    rule = Reading(trial)
    rule.invoke(0)
    rule.invoke(1)
    assert held == [1, 1] and tensor._cached == {}
    assert list(rule.req_tensors.get_names()) == ["w"]
    kept = create_trial(out_dir, cache=True)
    rule = Above(kept)
    rule.invoke(0)
    rule.invoke(1)
    assert len([key for key in kept.tensor("w")._cached if key[0] == "value"]) == 2


# --- with actions


def test_actions_run_before_the_condition_is_raised(out_dir, messages):
    rule = Above(create_trial(write(out_dir)), action_str=[Log("error")])
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(4)
    assert ("ERROR", "SMDebugRule:Above fired. " + rule.hit(4).message) in messages.lines


def test_an_invalid_action_text_is_refused(out_dir):
    with pytest.raises(ValueError, match="Expecting"):
        Above(create_trial(write(out_dir)), action_str="{")
