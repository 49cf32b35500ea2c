"""What a detector's alarms about one run are worth."""

from __future__ import annotations

from dataclasses import dataclass, field

from faults.case import Case, Truth
from faults.catalogue import ALSO_AT_FAULT, DEVELOPS_FOR, PAUSE_RULES, PAUSE_SECS
from faults.judge import findings
from faults.judge.alarm import Alarm


@dataclass
class Verdict:
    """Of one case and one detector. Steps are steps of TRAIN; None: never."""

    case: Case
    # Alarms of a healthy run, or alarms before the fault began.
    false_alarms: list[str] = field(default_factory=list)
    # The first alarm of any rule since the onset, and of a rule that names the fault rightly.
    detected_at: int | None = None
    named_at: int | None = None
    # The rules that alarmed since the onset, and those of them that are right about the fault.
    rules: list[str] = field(default_factory=list)
    right_rules: list[str] = field(default_factory=list)
    is_diagnosed: bool = False
    # None: there is nothing of the kind to find, or no right finding to look at.
    is_tensor_right: bool | None = None
    is_rank_right: bool | None = None
    is_step_right: bool | None = None

    @property
    def is_detected(self) -> bool:
        return self.detected_at is not None

    @property
    def latency(self) -> int | None:
        return None if self.named_at is None else self.named_at - self.case.onset

    @property
    def steps_saved(self) -> float:
        """The share of the run that was still to come at the first alarm."""
        if self.detected_at is None:
            return 0.0
        return 1 - (self.detected_at + 1) / self.case.settings.steps


def judge(case: Case, truth: Truth, alarms: list[Alarm], names_causes: bool) -> Verdict:
    """Holds the alarms against what is known. `names_causes`: false for detectors that only say that
    something is wrong, all of whose alarms are right."""
    verdict = Verdict(case)
    fault, form = case.fault, case.form
    if fault is None or form is None:
        verdict.false_alarms = [
            alarm.rule
            for alarm in alarms
            if not alarm.is_report and not _is_true_pause(alarm, truth)
        ]
        return verdict
    expected = {findings.plain(rule) for rule in fault.expected}
    counted = [a for a in alarms if fault.is_report_only or not a.is_report]
    timely = []
    for alarm in counted:
        if truth.train_step(alarm.first_step) < form.onset:
            # What spoke before the fault was there says nothing about it.
            if not alarm.is_report:
                verdict.false_alarms.append(alarm.rule)
        else:
            timely.append(alarm)
    if not timely:
        return verdict
    right = [a for a in timely if not names_causes or findings.plain(a.rule) in expected]
    verdict.rules = [alarm.rule for alarm in timely]
    verdict.right_rules = [alarm.rule for alarm in right]
    verdict.detected_at = min(truth.train_step(a.first_step) for a in timely)
    verdict.is_diagnosed = names_causes and timely[0] in right
    if right:
        verdict.named_at = min(truth.train_step(a.first_step) for a in right)
        if names_causes:
            _localise(verdict, truth, right[0])
    return verdict


def _is_true_pause(alarm: Alarm, truth: Truth) -> bool:
    """Whether the machine itself stopped the run for as long as the fault does."""
    is_pause = findings.plain(alarm.rule) in map(findings.plain, PAUSE_RULES)
    return is_pause and truth.longest_pause_secs >= PAUSE_SECS


def _localise(verdict: Verdict, truth: Truth, finding: Alarm) -> None:
    """Judges the place that the best right finding names: its first tensor, its workers, its step."""
    case = verdict.case
    assert case.fault is not None and case.form is not None
    if case.form.tensor:
        wanted = (case.form.tensor, ALSO_AT_FAULT.get(case.fault.number, case.form.tensor))
        blamed = finding.tensors[0] if finding.tensors else ""
        verdict.is_tensor_right = any(name in blamed for name in wanted)
    if case.form.rank >= 0:
        named = finding.workers
        guilty = f"worker_{case.form.rank}"
        # Naming all of them is naming none; of two that differ nobody can say who is wrong.
        verdict.is_rank_right = guilty in named and (
            len(named) < case.settings.ranks or case.settings.ranks == 2
        )
    # What is wrong from the start has no step to be found.
    if case.form.onset > 0:
        late = truth.train_step(finding.first_step) - case.form.onset
        allowed = case.settings.raw_interval + DEVELOPS_FOR.get(case.fault.number, 0)
        verdict.is_step_right = 0 <= late <= allowed
