"""Configurations of the built-in rules, and what their classes expect of the core.

The core is replaced where a build with or without built-in rules is needed: how rules judge is
tested where they are.
"""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
import smdebug.rules
import writing
from smdebug import _core
from smdebug.exceptions import (
    RuleEvaluationConditionMet,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.rules import Rule, builtin, create_rule, invoke_rule, rule_configs
from smdebug.trials import create_trial

RULES = list(rule_configs.COLLECTIONS)


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


@pytest.fixture
def trial(out_dir):
    for step in range(4):
        writing.step(out_dir, step)
    writing.collections(out_dir)
    writing.end(out_dir)
    return create_trial(out_dir)


@pytest.fixture
def without_rules(monkeypatch):
    """A core without built-in rules."""
    monkeypatch.setattr(builtin, "_core", SimpleNamespace(did_you_mean=_core.did_you_mean))


class Evaluator:
    """Fires at step 2, as the interface describes it."""

    def __init__(self, rule, parameters):
        if "nonsense" in parameters:
            raise SMDebugValueError("There is no parameter 'nonsense'.")
        self.rule, self.parameters = rule, {"threshold": 1e-7, **parameters}

    def evaluate(self, trials, step):
        assert all(isinstance(found, _core.Trial) for found in trials)
        if step == 1:
            raise TensorUnavailableForStep("w", step)
        if step != 2:
            return None
        violation = {"tensor": "w", "value": 0.0, "op": "<", "threshold": 1e-7}
        return {"message": "w vanishes.", "violations": [violation] * 2, "severity": "critical"}


@pytest.fixture
def with_rules(monkeypatch):
    """A core that offers two rules."""
    offered = SimpleNamespace(
        did_you_mean=_core.did_you_mean,
        builtin_rules=lambda: ["VanishingGradient", "Overfit"],
        RuleEvaluator=Evaluator,
    )
    monkeypatch.setattr(builtin, "_core", offered)
    monkeypatch.setattr(builtin, "_classes", {})


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


# --- classes


def test_a_build_without_rules_says_so(without_rules, trial):
    with pytest.raises(SMDebugNotImplementedError, match="This build has no built-in rules"):
        from smdebug.rules import VanishingGradient  # noqa: F401
    with pytest.raises(SMDebugNotImplementedError, match="This build has no built-in rules"):
        create_rule(rule_configs.exploding_tensor(), trial)


def test_a_rule_that_does_not_exist_is_named(without_rules, trial):
    with pytest.raises(AttributeError, match="VanishingGradients"):
        _ = smdebug.rules.VanishingGradients
    with pytest.raises(SMDebugValueError, match="Did you mean 'VanishingGradient'"):
        create_rule({"RuleParameters": {"rule_to_invoke": "VanishingGradiet"}}, trial)
    assert set(RULES) <= set(dir(smdebug.rules))


@pytest.mark.parametrize("name", ["VanishingGradient", "vanishinggradient", "vanishing_gradient"])
def test_case_and_underscores_of_a_name_do_not_matter(with_rules, trial, name):
    rule = create_rule({"RuleParameters": {"rule_to_invoke": name}}, trial)
    assert type(rule) is smdebug.rules.VanishingGradient and rule.rule_name == "VanishingGradient"


def test_a_rule_that_this_build_lacks_is_named(with_rules):
    with pytest.raises(SMDebugNotImplementedError, match="does not have the rule AllZero"):
        _ = smdebug.rules.AllZero


def test_a_class_is_a_rule_like_any_other(with_rules, trial):
    from smdebug.rules import VanishingGradient

    assert issubclass(VanishingGradient, Rule)
    rule = VanishingGradient(trial, threshold="0.001", mode="None", names=["a,b"], other=None)
    assert rule._evaluator.parameters == {"threshold": "0.001", "names": ["a,b"]}
    with pytest.raises(RuleEvaluationConditionMet, match="rule VanishingGradient at step 2"):
        invoke_rule(rule, raise_eval_cond=True)
    assert rule.report["RuleTriggered"] == 1 and rule.report["Violations"] == 2
    assert rule.report["Datapoints"] == 2  # the step that could not be judged is none
    assert rule.report["Details"][2]["message"] == "w vanishes."
    assert "0.001" in rule.report["RuleParameters"]
    hit = rule.hit(2)
    assert (hit.message, hit.severity, hit.mode) == ("w vanishes.", "critical", "TRAIN")
    assert hit.parameters["threshold"] == "0.001" and len(hit.violations) == 2


def test_parameters_of_a_configuration_can_be_replaced(with_rules, trial):
    config = rule_configs.vanishing_gradient()
    config["DebugRuleConfiguration"]["RuleParameters"]["threshold"] = "1"
    assert create_rule(config, trial)._evaluator.parameters == {"threshold": "1"}
    rule = create_rule(config, trial, rule_parameters={"threshold": 2}, other_trials=trial)
    assert rule._evaluator.parameters == {"threshold": 2} and rule.other_trials == [trial]
    with pytest.raises(SMDebugValueError, match="nonsense"):
        create_rule(config, trial, rule_parameters={"nonsense": 2})


@pytest.mark.parametrize(
    ("config", "error"),
    [("overfit", SMDebugTypeError), ({}, SMDebugValueError), (None, SMDebugTypeError)],
)
def test_what_is_no_configuration_is_refused(trial, config, error):
    with pytest.raises(error):
        create_rule(config, trial)
