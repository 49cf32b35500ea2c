"""The built-in rules as Python sees them: configurations, classes, diagnosis.

How each of them judges is tested where it is.
"""

from __future__ import annotations

import inspect
import json
import pickle
import re
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
import recorded
import smdebug.rules
import writing
from smdebug import _core
from smdebug.exceptions import (
    InsufficientInformationForRuleInvocation,
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.rules import (
    BuiltinRule,
    ExplodingTensor,
    LossNotDecreasing,
    Rule,
    StalledTrainingRule,
    VanishingGradient,
    create_rule,
    diagnose,
    invoke_rule,
    rule_configs,
    run_rules,
)
from smdebug.rules.action import File
from smdebug.rules.action.stop_stalled import stop_on_fire
from smdebug.rules.executors import SerialExecutor
from smdebug.trials import create_trial

RULES = list(rule_configs.COLLECTIONS)
TABLE = {row["name"]: row for row in _core.rule_table()}
SMALL = np.full(4, 1e-9, np.float32)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@pytest.fixture
def run(out_dir):
    """Gradients vanish at step 2, step 1 has none, and step 3 holds an infinity."""
    good = np.ones(4, np.float32)
    writing.step(out_dir, 0, gradient__a=good, loss=np.float32(2))
    writing.step(out_dir, 1, loss=np.float32(2))
    writing.step(out_dir, 2, gradient__a=good, gradient__b=SMALL, gradient__c=SMALL)
    writing.step(out_dir, 3, gradient__a=np.array([1, np.inf], np.float32))
    writing.collections(out_dir, gradients=["gradient/a", "gradient/b", "gradient/c"])
    writing.end(out_dir)
    return out_dir


@pytest.fixture
def trial(run):
    return create_trial(run)


# --- configurations


def test_there_is_a_function_for_each_of_the_21_rules():
    assert len(RULES) == 21
    for name in RULES:
        made = getattr(rule_configs, snake(name))()
        assert made["DebugRuleConfiguration"] == {
            "RuleConfigurationName": name,
            "RuleParameters": {"rule_to_invoke": name},
        }


@pytest.mark.parametrize(
    ("rule", "collections"),
    [
        ("vanishing_gradient", [("gradients", {"save_interval": "500"})]),
        (
            "dead_relu",
            [("relu_output", {"include_regex": ".*relu_output", "save_interval": "500"})],
        ),
        ("exploding_tensor", None),
        (
            "create_xgboost_report",
            [
                ("metrics", {"save_interval": "5"}),
                ("feature_importance", {"save_interval": "5"}),
                ("hyperparameters", {"save_steps": "0"}),
                ("predictions", {"save_interval": "5"}),
                ("labels", {"save_interval": "5"}),
            ],
        ),
    ],
)
def test_a_configuration_asks_for_its_collections(rule, collections):
    made = getattr(rule_configs, rule)()
    wanted = collections and [
        {"CollectionName": name, "CollectionParameters": parameters}
        for name, parameters in collections
    ]
    assert made.get("CollectionConfigurations") == wanted


def test_each_call_gives_a_fresh_copy():
    spoiled = rule_configs.create_xgboost_report()
    spoiled["DebugRuleConfiguration"]["RuleParameters"]["x"] = "y"
    spoiled["CollectionConfigurations"][0]["CollectionParameters"]["save_interval"] = "1"
    spoiled["CollectionConfigurations"].clear()
    fresh = rule_configs.create_xgboost_report()
    assert fresh["DebugRuleConfiguration"]["RuleParameters"] == {
        "rule_to_invoke": "CreateXgboostReport"
    }
    parameters = [c["CollectionParameters"] for c in fresh["CollectionConfigurations"]]
    assert parameters[0] == parameters[1] == {"save_interval": "5"}


def test_configurations_ask_for_what_the_table_says():
    for name, row in TABLE.items():
        asked = getattr(rule_configs, row["snake_name"])().get("CollectionConfigurations", [])
        assert asked == [
            {"CollectionName": c["name"], "CollectionParameters": c["parameters"]}
            for c in row["collections"]
        ], name


# --- classes


def test_there_is_a_class_for_each_rule_of_the_table():
    assert set(TABLE) <= set(dir(smdebug.rules))
    for name, row in TABLE.items():
        rule = getattr(smdebug.rules, name)
        assert issubclass(rule, BuiltinRule) and issubclass(rule, Rule)
        assert rule.__name__ == rule.rule == name and rule.severity == row["severity"]
        assert rule.__doc__.startswith(row["summary"])
        parameters = inspect.signature(rule).parameters
        assert list(parameters)[:3] == ["base_trial", "action_str", "other_trials"]
        for parameter in row["parameters"]:
            assert parameter["name"] in parameters and f"{parameter['name']} (" in rule.__doc__
        assert len(set(parameters)) == len(parameters)
        assert pickle.loads(pickle.dumps(rule)) is rule


def test_a_signature_shows_the_defaults():
    parameters = inspect.signature(LossNotDecreasing).parameters
    shown = {name: parameters[name].default for name in ("num_steps", "diff_percent", "mode")}
    assert shown == {"num_steps": 10, "diff_percent": 0.1, "mode": None}
    assert parameters["use_losses_collection"].default is True
    assert parameters["workers"].default == "first"


def test_a_rule_that_does_not_exist_is_named(trial):
    with pytest.raises(AttributeError, match="VanishingGradients"):
        _ = smdebug.rules.VanishingGradients
    with pytest.raises(AttributeError, match="vanishing_gradients"):
        _ = rule_configs.vanishing_gradients
    with pytest.raises(SMDebugValueError, match="Did you mean 'VanishingGradient'"):
        create_rule({"RuleParameters": {"rule_to_invoke": "VanishingGradiet"}}, trial)


@pytest.mark.parametrize("name", ["VanishingGradient", "vanishinggradient", "vanishing_gradient"])
def test_case_and_underscores_of_a_name_do_not_matter(trial, name):
    rule = create_rule({"RuleParameters": {"rule_to_invoke": name}}, trial)
    assert type(rule) is VanishingGradient and rule.rule_name == "VanishingGradient"
    assert type(create_rule(name, trial)) is VanishingGradient


def test_a_class_is_a_rule_like_any_other(trial):
    rule = VanishingGradient(trial, threshold="1e-8")
    with pytest.raises(RuleEvaluationConditionMet, match="rule VanishingGradient at step 2"):
        invoke_rule(rule, raise_eval_cond=True)
    assert rule.report["RuleTriggered"] == 1 and rule.report["Violations"] == 2
    assert rule.report["Datapoints"] == 2  # the step without gradients is none
    assert rule.report["Details"][2]["violations"][0]["tensor"] == "gradient/b"
    assert "1e-08" in rule.report["RuleParameters"]
    hit = rule.hit(2)
    assert (hit.severity, hit.mode, hit.step, hit.mode_step) == ("warning", "TRAIN", 2, 2)
    assert "gradient/b" in hit.message and len(hit.violations) == 2
    assert hit.parameters["threshold"] == 1e-8 and hit.run == trial.name
    assert rule.missing is None


def test_all_violations_count_though_few_are_listed(trial):
    rule = VanishingGradient(trial, max_violations=1)
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(2)
    assert rule.report["Violations"] == 2
    assert len(rule.report["Details"][2]["violations"]) == 1


def test_a_rule_goes_on_after_a_hit_until_the_end(trial):
    rule = ExplodingTensor(trial)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert list(rule.report["Details"]) == [3] and rule.report["Datapoints"] == 4


def test_a_step_without_anything_to_judge_is_unavailable(trial):
    rule = VanishingGradient(trial)
    with pytest.raises(TensorUnavailableForStep):
        rule.invoke(1)
    assert rule.report["Datapoints"] == 0
    assert "gradients" in rule.missing


def test_an_earlier_step_starts_a_rule_anew(trial):
    rule = VanishingGradient(trial)
    for _ in range(2):
        with pytest.raises(RuleEvaluationConditionMet):
            rule.invoke(2)
        invoke_rule(rule, 3, 4)
    assert rule.report["RuleTriggered"] == 2 and rule.report["Datapoints"] == 4


def test_actions_of_a_built_in_rule_are_told_its_hit(trial, tmp_path):
    told = tmp_path / "hits.jsonl"
    invoke_rule(VanishingGradient(trial, File(str(told))), end_step=4)
    assert [line["step"] for line in map(json.loads, told.read_text().splitlines())] == [2]


def test_parameters_of_a_configuration_can_be_replaced(trial):
    config = rule_configs.vanishing_gradient()
    config["DebugRuleConfiguration"]["RuleParameters"]["threshold"] = "1"
    assert create_rule(config, trial).hit(0).parameters["threshold"] == 1
    rule = create_rule(config, trial, rule_parameters={"threshold": 2}, other_trials=trial)
    assert rule.hit(0).parameters["threshold"] == 2 and rule.other_trials == [trial]
    with pytest.raises(SMDebugValueError, match="nonsense"):
        create_rule(config, trial, rule_parameters={"nonsense": 2})
    short = create_rule({"rule": "vanishing_gradient", "threshold": "3"}, trial)
    assert short.hit(0).parameters["threshold"] == 3


@pytest.mark.parametrize("absent", [None, "", " None "])
def test_a_parameter_may_be_said_to_be_absent(trial, absent):
    rule = LossNotDecreasing(trial, mode=absent, num_steps=absent)
    assert rule.hit(0).parameters["mode"] is None and rule.hit(0).parameters["num_steps"] == 10


def test_places_of_other_runs_are_a_parameter(trial, tmp_path):
    for given in (str(tmp_path), [str(tmp_path)]):
        with pytest.raises(SMDebugValueError, match="other_trials"):  # this rule compares no runs
            VanishingGradient(trial, other_trials=given)
        with pytest.raises(SMDebugValueError, match="other_trials"):
            create_rule({"rule": "VanishingGradient", "other_trials": given}, trial)
    assert VanishingGradient(trial, other_trials=[trial]).other_trials == [trial]


def test_a_rule_without_anything_to_look_at_cannot_be_made(trial):
    with pytest.raises(InsufficientInformationForRuleInvocation, match="LossNotDecreasing"):
        LossNotDecreasing(trial, use_losses_collection=False)


@pytest.mark.parametrize(
    ("config", "error"),
    [({}, SMDebugValueError), (None, SMDebugTypeError), ({"rule": 5}, SMDebugValueError)],
)
def test_what_is_no_configuration_is_refused(trial, config, error):
    with pytest.raises(error):
        create_rule(config, trial)


# --- many runs, and one run with many rules


def test_every_executor_judges_alike(run):
    sources = ["ExplodingTensor", rule_configs.vanishing_gradient(), VanishingGradient]
    serial = run_rules(run, sources, SerialExecutor())
    assert [(o.rule, o.status, o.steps) for o in serial] == [
        ("ExplodingTensor", "IssuesFound", (3,)),
        ("VanishingGradient", "IssuesFound", (2,)),
        ("VanishingGradient", "IssuesFound", (2,)),
    ]
    with ThreadPoolExecutor(3) as threads:
        assert run_rules(run, sources, threads) == serial
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        assert run_rules(run, sources, processes) == serial


def test_a_wrong_parameter_is_an_outcome(run):
    (outcome,) = run_rules(run, {"rule": "ExplodingTensor", "only_nans": 1}, SerialExecutor())
    assert outcome.status == "Error" and "only_nan" in outcome.error
    with pytest.raises(SMDebugValueError, match="There is no rule 'Exploding'"):
        run_rules(run, "Exploding", SerialExecutor())


def test_a_diagnosis_says_what_all_rules_found(run):
    found = diagnose(run)
    assert found["steps"] == 4
    by_rule = {finding["rule"]: finding for finding in found["findings"]}
    assert by_rule["VanishingGradient"]["first"]["step"] == 2
    assert by_rule["ExplodingTensor"]["first"]["step"] == 3
    spoken = set(by_rule) | set(found["no_issues_found"])
    spoken |= {note["rule"] for note in [*found["not_evaluated"], *found["failed"]]}
    assert spoken == set(TABLE)


def test_a_diagnosis_asks_the_given_rules_with_their_parameters(trial):
    rules = ["vanishing_gradient", {"rule": "ExplodingTensor", "only_nan": "true"}]
    found = diagnose(trial, rules, {"VanishingGradient": {"threshold": 1e-12}})
    assert found["findings"] == []
    assert found["no_issues_found"] == ["VanishingGradient", "ExplodingTensor"]
    (only,) = diagnose(trial, VanishingGradient.rule, start_step=1, end_step=3)["findings"]
    assert only["first"]["step"] == 2
    assert diagnose(trial, ["VanishingGradient"], end_step=2)["findings"] == []


def test_a_diagnosis_sees_what_a_running_job_has_now(out_dir):
    writing.step(out_dir, 0, gradient__a=np.ones(2, np.float32))
    writing.collections(out_dir, gradients=["gradient/a"])
    trial = create_trial(out_dir)
    assert diagnose(trial, "VanishingGradient")["findings"] == []
    writing.step(out_dir, 1, gradient__a=SMALL)
    (finding,) = diagnose(trial, "VanishingGradient")["findings"]
    assert finding["first"]["step"] == 1


def test_wrong_questions_of_a_diagnosis_are_refused(trial):
    with pytest.raises(SMDebugValueError, match="Did you mean 'ExplodingTensor'"):
        diagnose(trial, "ExplodingTensors")
    with pytest.raises(SMDebugValueError, match="asked for twice"):
        diagnose(trial, ["ExplodingTensor", "exploding_tensor"])
    with pytest.raises(SMDebugValueError, match="not one of the chosen rules"):
        diagnose(trial, "ExplodingTensor", {"VanishingGradient": {}})
    with pytest.raises(SMDebugValueError, match="treshold"):
        diagnose(trial, ["VanishingGradient"], {"VanishingGradient": {"treshold": 1}})


# --- rules that watch the clock


def test_a_stalled_run_fires_while_it_is_waited_for(out_dir):
    writing.step(out_dir, 0, x=np.ones(2, np.float32))
    writing.collections(out_dir)
    told = []

    class Told(File):
        def perform(self, hit):
            told.append(hit)
            return super().perform(hit)

    trial = create_trial(out_dir)
    rule = StalledTrainingRule(trial, Told(str(out_dir) + ".jsonl"), threshold=1)
    with pytest.raises(RuleEvaluationConditionMet, match="StalledTrainingRule at step 0"):
        invoke_rule(rule, raise_eval_cond=True)
    assert told[0].message == "No new step for 1 s; the newest is step 0."
    assert (told[0].step, told[0].severity) == (0, "error") and rule.report["RuleTriggered"] == 1
    writing.end(out_dir)
    with pytest.raises(NoMoreData):
        invoke_rule(rule, 1)


def test_a_run_that_never_begins_is_stalled_too(out_dir):
    writing.collections(out_dir)
    rule = StalledTrainingRule(create_trial(out_dir), threshold=1)
    with pytest.raises(RuleEvaluationConditionMet, match="at step -1"):
        invoke_rule(rule, raise_eval_cond=True)


HANGING = """
import sys, time
import numpy as np
from smdebug import Hook, SaveConfig, run_control
run_control.announce(sys.argv[1])
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
hook.begin_step()
hook.save_scalar("x", 1)
hook.end_step()
time.sleep(600)
"""


def test_stop_training_on_fire_stops_the_run(out_dir):
    process = recorded.start(HANGING, out_dir)
    try:
        rule = StalledTrainingRule(create_trial(out_dir), threshold=1, stop_training_on_fire="True")
        (stop,) = rule._actions._actions
        stop.grace_s = 0.0  # nobody listens, so there is nothing to wait for
        with pytest.raises(RuleEvaluationConditionMet):
            invoke_rule(rule, raise_eval_cond=True)
        assert process.wait(timeout=recorded.TIMEOUT_SECS) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()


def test_a_run_in_an_object_store_is_stopped_as_a_job_that_must_be_named(monkeypatch):
    monkeypatch.delenv("TRAINING_JOB_NAME", raising=False)
    asked = {"stop_training_on_fire": True}
    with pytest.raises(SMDebugValueError, match="needs training_job_name_prefix"):
        stop_on_fire("StalledTrainingRule", asked, "s3://bucket/run")
    assert stop_on_fire("StalledTrainingRule", {"stop_training_on_fire": False}, "run") is None
    monkeypatch.setenv("TRAINING_JOB_NAME", "mine")
    made = stop_on_fire("StalledTrainingRule", asked, "s3://bucket/run")
    assert "'mine'" in made.intent(None)


def test_a_hit_may_be_less_severe_than_its_rule(out_dir):
    for step, rate in enumerate([0.1] * 20 + [0.0001]):
        writing.step(out_dir, step, lr=np.float32(rate))
    writing.collections(out_dir)
    writing.end(out_dir)
    rule = create_rule("LearningRate", create_trial(out_dir), {"tensor_regex": "lr"})
    assert rule.severity == "warning"
    with pytest.raises(RuleEvaluationConditionMet):
        invoke_rule(rule, raise_eval_cond=True)
    assert [hit["severity"] for hit in rule.report["Details"].values()] == ["info"]
