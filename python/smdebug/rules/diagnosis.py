"""Looks at a recorded run once, with many rules: what `smdebug diagnose` prints, as a dictionary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from smdebug import _core
from smdebug.exceptions import SMDebugValueError
from smdebug.open_trial import create_trial
from smdebug.rules.builtin import builtin_class, rule_of
from smdebug.trial import Trial


def diagnose(
    run: str | os.PathLike[str] | Trial,
    rules: str | Mapping[str, Any] | Iterable[str | Mapping[str, Any]] = (),
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    start_step: int | None = None,
    end_step: int | None = None,
    other_trials: Trial | Iterable[Trial] = (),
) -> dict[str, Any]:
    """Everything that built-in rules say of the steps that a run has now.

    `rules` are names or configurations; without any, all rules are asked but those that need
    parameters which nobody gave. `parameters` are those of each rule by its name, and go before
    those of a configuration. A rule is asked once.
    """
    trial = run if isinstance(run, Trial) else create_trial(run)
    given: dict[str, dict[str, Any]] = {}
    sources = [rules] if isinstance(rules, str | Mapping) else list(rules)
    for source in sources:
        name, own = rule_of(source)
        rule = builtin_class(name).rule
        if rule in given:
            raise SMDebugValueError(f"The rule {rule} is asked for twice.")
        given[rule] = own
    names = list(given)
    for name, more in (parameters or {}).items():
        rule = builtin_class(name).rule
        given[rule] = {**given.get(rule, {}), **more}
    others = [other_trials] if isinstance(other_trials, Trial) else other_trials
    if not trial.loaded_all_steps:
        trial.refresh_data()
    found: Any = _core.diagnose(
        trial._core, names, given, start_step, end_step, [other._core for other in others]
    )
    return dict(found)
