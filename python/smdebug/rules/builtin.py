"""The built-in rules as classes: the judging is the core's, the rest is that of any rule.

The core has a table of them: names, parameters, what they say. Each class here is made of one row.
"""

from __future__ import annotations

import functools
import inspect
import json
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from smdebug import _core
from smdebug.exceptions import (
    RuleEvaluationConditionMet,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.rules.action.action import ActionArgument
from smdebug.rules.action.stop_stalled import stop_on_fire
from smdebug.rules.hit import Hit
from smdebug.rules.rule import Rule
from smdebug.tensor import StepState
from smdebug.trial import Trial


class BuiltinRule(Rule):
    """A rule that the core judges. `parameters` are those of the rule; all of them may be texts."""

    rule: ClassVar[str] = ""

    def __init__(
        self,
        base_trial: Trial,
        action_str: ActionArgument = "",
        other_trials: Trial | str | Iterable[Trial] | Iterable[str] | None = None,
        **parameters: Any,
    ) -> None:
        places = _places(other_trials)
        if places:
            parameters["other_trials"], other_trials = places, None
        others: Any = [other_trials] if isinstance(other_trials, Trial) else other_trials
        super().__init__(base_trial, action_str, others)
        self._given = parameters
        self._evaluator = self._start()
        used: Any = self._evaluator.parameters
        self._parameters: dict[str, Any] = dict(used)
        self._last_step = -1
        self._found: Mapping[str, Any] | None = None
        self.report["RuleParameters"] = json.dumps(self._parameters)
        stop = stop_on_fire(self.rule_name, self._parameters, base_trial.path)
        if stop is not None:
            self._actions.add(stop)

    def invoke(self, step: int) -> None:
        """As of Rule; a rule that watches the clock is also asked while the step does not come."""
        if self._evaluator.tick_secs is not None:
            self._watch_clock(step)
        super().invoke(step)

    def _watch_clock(self, step: int) -> None:
        trial = self.base_trial
        while trial.has_passed_step(step) is StepState.NOT_YET_AVAILABLE:
            found: Any = self._evaluator.tick(trial._core)
            self.report["Datapoints"] += 1
            if self._take(found):
                self._act(self.hit(found["step"]))
                raise RuleEvaluationConditionMet(self.rule_name, found["step"])
            trial._core.wait(self._evaluator.tick_secs or 0)
            trial._core.refresh()

    def invoke_at_step(self, step: int) -> bool:
        """Whether the rule fires; TensorUnavailableForStep if the step has nothing for it.

        A step that is not later than the one before starts the rule anew.
        """
        if step <= self._last_step:
            self._evaluator = self._start()
        self._last_step = step
        found: Any = self._evaluator.evaluate(self.base_trial._core, step)
        if found is False:
            raise TensorUnavailableForStep(f"any for {self.rule}", step)
        self.report["Datapoints"] += 1
        return self._take(found)

    def judge_end(self) -> None:
        met = None
        late: Any = self._evaluator.finish()
        for found in late:
            self._take(found)
            met = RuleEvaluationConditionMet(self.rule_name, found["step"])
            self._act(self.hit(found["step"]))
        if met is not None:
            raise met

    @property
    def missing(self) -> str | None:
        """Why nothing could be judged so far, as a sentence; None: something was."""
        return self._evaluator.missing

    def _start(self) -> _core.RuleEvaluator:
        others = [trial._core for trial in self.other_trials or []]
        return _core.RuleEvaluator(self.rule, self._given, others)

    def _take(self, found: Mapping[str, Any] | None) -> bool:
        self._found = found
        if found is None:
            return False
        self.report["RuleTriggered"] += 1
        self.report["Violations"] += found["violation_count"]
        self.report["Details"][found["step"]] = dict(found)
        return True

    def hit(self, step: int) -> Hit:
        plain = super().hit(step)
        found = self._found or {}
        fields = {
            "step": found.get("step", step),
            "mode": found.get("mode", plain.mode),
            "mode_step": found.get("mode_step", plain.mode_step),
            "message": found.get("message", plain.message),
            "severity": found.get("severity", plain.severity),
            "violations": found.get("violations", ()),
            "parameters": self._parameters,
        }
        return Hit(**{**vars(plain), **fields})


def _places(others: Any) -> list[str]:
    """Places of runs, which are a parameter of the rules that compare runs; none: trials."""
    listed = [others] if isinstance(others, str) else others if isinstance(others, list) else []
    return [str(other) for other in listed if isinstance(other, str)]


def builtin_class(name: str) -> type[BuiltinRule]:
    """The class of a built-in rule; letter case and underscores of the name do not matter."""
    known = _core.builtin_rules()
    wanted = _plain(name)
    found = next((rule for rule in known if _plain(rule) == wanted), None)
    if found is None:
        raise SMDebugValueError(
            f"There is no rule {name!r}; there are {', '.join(known)}."
            f"{_core.did_you_mean(name, known)}"
        )
    return _made(found)


@functools.cache
def rule_table() -> Mapping[str, Mapping[str, Any]]:
    """What the core knows of each rule, by name."""
    rows: Any = _core.rule_table()
    return {row["name"]: row for row in rows}


@functools.cache
def _made(name: str) -> type[BuiltinRule]:
    row = rule_table()[name]
    fields = {
        "rule": name,
        "severity": row["severity"],
        "__doc__": _documentation(row),
        "__module__": "smdebug.rules",
        "__signature__": _signature(row),
    }
    return type(name, (BuiltinRule,), fields)


def _parameters(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A rule's own go before those that all rules have."""
    shared: Any = _core.shared_rule_parameters()
    own = {parameter["name"] for parameter in row["parameters"]}
    return [*row["parameters"], *(one for one in shared if one["name"] not in own)]


def _documentation(row: Mapping[str, Any]) -> str:
    lines = [row["summary"], "", row["sees"], "", "Parameters:"]
    for parameter in _parameters(row):
        default = f", {parameter['default']}" if parameter["default"] else ""
        lines.append(f"{parameter['name']} ({parameter['type']}{default}): {parameter['help']}")
    wrapped = [
        textwrap.fill(line, 96, initial_indent="    " * (n > 4), subsequent_indent="    " * (n > 4))
        for n, line in enumerate(lines)
    ]
    return "\n".join(wrapped)


def _signature(row: Mapping[str, Any]) -> inspect.Signature:
    base = list(inspect.signature(BuiltinRule.__init__).parameters.values())[1:-1]
    own = [
        inspect.Parameter(
            parameter["name"], inspect.Parameter.KEYWORD_ONLY, default=_default(parameter)
        )
        for parameter in _parameters(row)
        if parameter["name"] not in {argument.name for argument in base}
    ]
    return inspect.Signature([*base, *own])


def _default(parameter: Mapping[str, Any]) -> Any:
    """The default as people would write it; the core reads its text, so this one is for people."""
    text = parameter["default"]
    if not text:
        return None
    if parameter["type"] == "bool":
        return text == "true"
    return {"int": int, "float": float}.get(parameter["type"], str)(text)


def create_rule(
    config: str | Mapping[str, Any],
    base_trial: Trial,
    rule_parameters: Mapping[str, Any] | None = None,
    *,
    action_str: ActionArgument = "",
    other_trials: Trial | str | Iterable[Trial] | Iterable[str] | None = None,
) -> BuiltinRule:
    """The rule of this name, or the one that a configuration of `rule_configs` describes.

    `rule_parameters` go before those of the configuration.
    """
    name, parameters = rule_of(config)
    given = {**parameters, **(rule_parameters or {})}
    given.pop("rule_to_invoke", None)
    named = given.pop("other_trials", None)
    if other_trials is None:
        other_trials = named
    return builtin_class(name)(base_trial, action_str, other_trials, **given)


def rule_of(config: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the parameters in a configuration.

    That is a name, `{"rule": name}` with the parameters beside it, or what `rule_configs` gives.
    """
    if isinstance(config, str):
        return config, {}
    if isinstance(config, type) and issubclass(config, BuiltinRule):
        return config.rule, {}
    if not isinstance(config, Mapping):
        raise SMDebugTypeError(
            f"A configuration such as rule_configs.overfit() was expected, not {config!r}."
        )
    if isinstance(config.get("rule"), str):
        rest = {key: value for key, value in config.items() if key != "rule"}
        return config["rule"], rest
    part = config.get("DebugRuleConfiguration", config)
    parameters = dict(part.get("RuleParameters") or {}) if isinstance(part, Mapping) else {}
    name = parameters.pop("rule_to_invoke", None)
    if not isinstance(name, str):
        raise SMDebugValueError(
            "A rule's configuration names the rule as rule_to_invoke, or as 'rule'."
        )
    return name, parameters


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
