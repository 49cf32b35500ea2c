"""The built-in rules as classes: the judging is the core's, the rest is that of any rule."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from smdebug import _core
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugTypeError, SMDebugValueError
from smdebug.rules import rule_configs
from smdebug.rules.action.action import ActionArgument
from smdebug.rules.hit import Hit
from smdebug.rules.rule import Rule
from smdebug.trial import Trial

_classes: dict[str, type[BuiltinRule]] = {}


class BuiltinRule(Rule):
    """A rule that the core judges. `parameters` are those of the rule; all of them may be texts."""

    rule: ClassVar[str] = ""

    def __init__(
        self,
        base_trial: Trial,
        action_str: ActionArgument = "",
        other_trials: Trial | Iterable[Trial] | None = None,
        **parameters: Any,
    ) -> None:
        others = [other_trials] if isinstance(other_trials, Trial) else other_trials
        super().__init__(base_trial, action_str, others)
        given = {name: value for name, value in parameters.items() if not _is_absent(value)}
        others_core = [trial._core for trial in self.other_trials or []]
        self._evaluator = _core.RuleEvaluator(self.rule, given, others_core)
        self._parameters = dict(self._evaluator.parameters)
        self._found: Mapping[str, Any] | None = None
        self.report["RuleParameters"] = json.dumps(self._parameters, default=str)

    def invoke_at_step(self, step: int) -> bool:
        self._found = self._evaluator.evaluate([trial._core for trial in self.trials], step)
        self.report["Datapoints"] += 1
        if self._found is None:
            return False
        self.report["RuleTriggered"] += 1
        self.report["Violations"] += len(self._found["violations"])
        self.report["Details"][step] = dict(self._found)
        return True

    def hit(self, step: int) -> Hit:
        plain = super().hit(step)
        found = self._found or {}
        fields = {
            "message": found.get("message", plain.message),
            "violations": found.get("violations", ()),
            "severity": found.get("severity", plain.severity),
            "parameters": self._parameters,
        }
        return Hit(**{**vars(plain), **fields})


def builtin_class(name: str) -> type[BuiltinRule]:
    """The class of a built-in rule; letter case and underscores of the name do not matter."""
    known = list(rule_configs.COLLECTIONS)
    offered = _offered().builtin_rules() if _has_rules() else []
    wanted = _plain(name)
    found = next((rule for rule in [*offered, *known] if _plain(rule) == wanted), None)
    if found is None:
        raise SMDebugValueError(
            f"There is no rule {name!r}; there are {', '.join(known)}."
            f"{_core.did_you_mean(name, known)}"
        )
    if found not in offered:
        _offered()
        raise SMDebugNotImplementedError(f"This build does not have the rule {found}.")
    if found not in _classes:
        fields = {
            "rule": found,
            "__doc__": f"The built-in rule {found}.",
            "__module__": "smdebug.rules",
        }
        _classes[found] = type(found, (BuiltinRule,), fields)
    return _classes[found]


def create_rule(
    config: Mapping[str, Any],
    base_trial: Trial,
    rule_parameters: Mapping[str, Any] | None = None,
    *,
    action_str: ActionArgument = "",
    other_trials: Trial | Iterable[Trial] | None = None,
) -> BuiltinRule:
    """The rule that a configuration of `rule_configs` describes.

    `rule_parameters` go before those of the configuration.
    """
    name, parameters = rule_of(config)
    given = {**parameters, **(rule_parameters or {})}
    given.pop("rule_to_invoke", None)
    return builtin_class(name)(base_trial, action_str, other_trials, **given)


def rule_of(config: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the parameters in a configuration."""
    if not isinstance(config, Mapping):
        raise SMDebugTypeError(
            f"A configuration such as rule_configs.overfit() was expected, not {config!r}."
        )
    part = config.get("DebugRuleConfiguration", config)
    parameters = dict(part.get("RuleParameters") or {}) if isinstance(part, Mapping) else {}
    name = parameters.pop("rule_to_invoke", None)
    if not isinstance(name, str):
        raise SMDebugValueError("A rule's configuration names the rule as rule_to_invoke.")
    return name, parameters


def _has_rules() -> bool:
    return hasattr(_core, "builtin_rules") and hasattr(_core, "RuleEvaluator")


def _offered() -> Any:
    if not _has_rules():
        raise SMDebugNotImplementedError("This build has no built-in rules.")
    return _core


def _is_absent(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in ("", "None"))


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
