"""The base class of rules: a condition on the tensors of a run that is judged step by step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

from smdebug.exceptions import RuleEvaluationConditionMet
from smdebug.logger import get_logger
from smdebug.refresh import no_refresh
from smdebug.rules.action.action import ActionArgument, Actions
from smdebug.rules.hit import Hit, severity_argument
from smdebug.rules.req_tensors import RequiredTensors
from smdebug.trial import Trial


class Rule(ABC):
    """Override `invoke_at_step`, and `set_required_tensors` to have tensors waited for.

    `action_str` is what happens when the condition is met: JSON text, an action, or a list of them.
    One thread at a time.
    """

    severity: ClassVar[str] = "error"

    def __init__(
        self,
        base_trial: Trial,
        action_str: ActionArgument = "",
        other_trials: Iterable[Trial] | None = None,
    ) -> None:
        severity_argument(self.severity)
        self.base_trial = base_trial
        self.other_trials = None if other_trials is None else list(other_trials)
        self.trials = [base_trial, *(self.other_trials or [])]
        self.req_tensors = RequiredTensors(base_trial, self.other_trials)
        self.logger = get_logger()
        self.rule_name = type(self).__name__
        self._actions = Actions(action_str, self.rule_name)
        self.report: dict[str, Any] = {
            "RuleTriggered": 0,
            "Violations": 0,
            "Details": {},
            "Datapoints": 0,
            "RuleParameters": "",
        }

    def set_required_tensors(self, step: int) -> None:  # noqa: B027 - most rules need none
        """Adds to `req_tensors` what must be there before the step is judged."""

    @abstractmethod
    def invoke_at_step(self, step: int) -> bool:
        """Whether the condition is met at this global step."""

    def hit(self, step: int) -> Hit:
        """What actions are told after `invoke_at_step` said yes."""
        mode = self.base_trial.mode(step)
        return Hit(
            rule=self.rule_name,
            step=step,
            message=str(RuleEvaluationConditionMet(self.rule_name, step)) + ".",
            mode="GLOBAL" if mode is None else mode.name,
            mode_step=self.base_trial.mode_step(step),
            severity=self.severity,
            run=self.base_trial.name,
            path=self.base_trial.path,
        )

    def invoke(self, step: int) -> None:
        """Waits for the step and judges it; the trials look for no news meanwhile.

        If the condition is met, runs the actions and raises RuleEvaluationConditionMet.
        """
        self.logger.debug(f"Rule {self.rule_name} is judged at step {step}.")
        self.base_trial.wait_for_steps([step])
        hit: Hit | None = None
        with no_refresh(self.trials):
            self.req_tensors.clear()
            try:
                self.set_required_tensors(step)
                self.req_tensors.fetch()
                if self.invoke_at_step(step):
                    hit = self.hit(step)
            finally:
                self.req_tensors.release()
        if hit is not None:
            self._act(hit)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    def judge_end(self) -> None:  # noqa: B027 - most rules need none
        """Called when no further step will come: for what shows only then.

        If the condition is met, runs the actions and raises RuleEvaluationConditionMet.
        """

    def _act(self, hit: Hit) -> None:
        self._actions.invoke(hit.message, hit)
