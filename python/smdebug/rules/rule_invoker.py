"""Judges a rule at one saved step after the other, as they come."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

from smdebug._core import ModeKeys
from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.logger import get_logger
from smdebug.refresh import no_refresh
from smdebug.rules.rule import Rule
from smdebug.tensor import StepState, step_argument
from smdebug.trial import Trial


class _SavedSteps:
    """Leads from one saved step to the next without asking for the numbers between them."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._settled: list[int] = []  # no step before the last of them can still appear

    def at_or_after(self, step: int) -> int:
        """The first step from `step` on that is there or may still come.

        After the end of the job it is `step` itself, which then says so when it is waited for.
        Raises NoMoreData if the trial was told to show no later step.
        """
        found = self._next(step)
        if found is not None:
            return found
        if self._trial.has_passed_step(step) is not StepState.UNAVAILABLE:
            return step
        with no_refresh(self._trial):
            known = self._trial.steps(show_incomplete_steps=True)
            last_complete = self._trial.last_complete_step
            ended = self._trial.loaded_all_steps
        self._settled = [s for s in known if s <= last_complete or ended]
        found = self._next(step)
        if found is not None:
            return found
        later = known[bisect_left(known, step) :]
        if later:
            return later[0]
        if not ended:
            raise NoMoreData(step, ModeKeys.GLOBAL, known[-1] if known else -1)
        return step

    def _next(self, step: int) -> int | None:
        place = bisect_left(self._settled, step)
        return self._settled[place] if place < len(self._settled) else None


def invoke_rule(
    rule_obj: Any, start_step: int = 0, end_step: int | None = None, raise_eval_cond: bool = False
) -> None:
    """Judges a rule at the saved steps from `start_step` on, before `end_step`, and waits for them.

    Without `end_step` it ends with NoMoreData, when the job has ended and the rule was asked for the
    last time. A step that lacks what the
    rule needs is passed over. If the condition is met, RuleEvaluationConditionMet is raised with
    `raise_eval_cond`; otherwise it is logged, and the next step follows.
    """
    logger = get_logger()
    step = step_argument(start_step)
    end = None if end_step is None else step_argument(end_step)
    trial = getattr(rule_obj, "base_trial", None)
    saved = _SavedSteps(trial) if isinstance(trial, Trial) else None
    logger.info(f"Rule {rule_obj.rule_name} is judged from step {step} on.")
    while end is None or step < end:
        try:
            if saved is not None:
                step = saved.at_or_after(step)
                if end is not None and step >= end:
                    break
            rule_obj.invoke(step)
        except NoMoreData:
            if isinstance(rule_obj, Rule):
                _judge_end(rule_obj, raise_eval_cond)
            raise
        except (TensorUnavailableForStep, StepUnavailable, TensorUnavailable) as error:
            logger.debug(f"Rule {rule_obj.rule_name} passes over step {step}. {error}")
        except RuleEvaluationConditionMet as met:
            if raise_eval_cond:
                raise
            logger.info(str(met))
            if met.end_of_rule:
                break
        except NoMoreProfilerData as error:
            logger.debug(f"Rule {rule_obj.rule_name} ends. {error}")
            break
        step += 1
    logger.info(f"Rule {rule_obj.rule_name} has ended at step {step}.")


def _judge_end(rule: Rule, raise_eval_cond: bool) -> None:
    try:
        rule.judge_end()
    except RuleEvaluationConditionMet as met:
        if raise_eval_cond:
            raise
        get_logger().info(str(met))
