"""Rules that other processes can import."""

from __future__ import annotations

from smdebug.rules import Rule
from smdebug.rules.hit import Hit


class Above(Rule):
    """The tensor w exceeds a threshold."""

    def __init__(self, base_trial, threshold=2.0):
        super().__init__(base_trial)
        self.threshold = threshold

    def set_required_tensors(self, step):
        self.req_tensors.add("w", [step])

    def invoke_at_step(self, step):
        self.report["Datapoints"] += 1
        self._value = float(self.base_trial.tensor("w").value(step).max())
        return self._value > self.threshold

    def hit(self, step):
        found = [{"tensor": "w", "value": self._value, "op": ">", "threshold": self.threshold}]
        return Hit(**{**vars(super().hit(step)), "violations": found})


class Broken(Rule):
    """Fails at step 3."""

    def invoke_at_step(self, step):
        if step == 3:
            raise ZeroDivisionError("of the rule")
        return False


def far_above(base_trial):
    """A rule made by a function."""
    return Above(base_trial, threshold=1000)


def no_rule(base_trial):
    """Makes something else."""
    return "no rule"
