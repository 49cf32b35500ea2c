"""Rules: conditions on the tensors of a run, judged while it grows or afterwards.

Every built-in rule is a class here, such as `smdebug.rules.VanishingGradient`.
"""

from typing import Any

from smdebug import _core
from smdebug.rules import rule_configs
from smdebug.rules.builtin import BuiltinRule, builtin_class, create_rule
from smdebug.rules.diagnosis import diagnose
from smdebug.rules.evaluation import Outcome, run_rules
from smdebug.rules.hit import Hit
from smdebug.rules.req_tensors import RequiredTensors, RequiredTensorsForTrial
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = [
    "BuiltinRule",
    "Hit",
    "Outcome",
    "RequiredTensors",
    "RequiredTensorsForTrial",
    "Rule",
    "create_rule",
    "diagnose",
    "invoke_rule",
    "rule_configs",
    "run_rules",
]


def __getattr__(name: str) -> Any:
    if name in _core.builtin_rules():
        return builtin_class(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_core.builtin_rules()})
