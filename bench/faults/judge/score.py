"""Scores of a detector over many verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from faults.catalogue import FAULTS, SILENT_NUMBERS
from faults.judge.verdict import Verdict

# Of healthy runs: the bar for precision.
FALSE_ALARM_BAR = 0.02
FAMILIES = tuple(dict.fromkeys(fault.family for fault in FAULTS))


def _share(flags: Iterable[bool]) -> float | None:
    found = list(flags)
    return float(np.mean(found)) if found else None


@dataclass(frozen=True)
class Score:
    """Shares are between 0 and 1; None: there was nothing to count."""

    faulty: int
    clean: int
    recall: float | None
    named: float | None
    false_alarm_rate: float | None
    alarms_per_1000_clean_steps: float | None
    f1: float | None
    diagnosis: float | None
    right_tensor: float | None
    right_rank: float | None
    right_step: float | None
    latency_median: float | None
    latency_p90: float | None
    steps_saved: float | None
    silent_in_time: float | None
    recall_by_family: dict[str, float | None]
    recall_at_bar: float | None
    rules_at_bar: list[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def score(verdicts: list[Verdict], tuning: list[Verdict]) -> Score:
    """The score of `verdicts`; which rules stay within the bar is chosen on `tuning`."""
    faulty = [v for v in verdicts if v.case.fault is not None]
    clean = [v for v in verdicts if v.case.fault is None]
    detected = [v for v in faulty if v.is_detected]
    alarmed = [v for v in clean if v.false_alarms]
    latencies = _latencies(faulty)
    silent = [v for v in faulty if v.case.fault and v.case.fault.number in SILENT_NUMBERS]
    steps = sum(v.case.settings.steps for v in clean)
    rules = rules_within_bar(tuning)
    # Without healthy runs every rule is within the bar.
    has_bar = any(v.case.fault is None for v in tuning)
    kept = [v for v in faulty if rules.intersection(v.rules)]
    positives = len(detected) + len(alarmed)
    return Score(
        faulty=len(faulty),
        clean=len(clean),
        recall=_share(v.is_detected for v in faulty),
        named=_share(v.named_at is not None for v in faulty),
        false_alarm_rate=_share(bool(v.false_alarms) for v in clean),
        alarms_per_1000_clean_steps=(
            1000 * sum(len(v.false_alarms) for v in clean) / steps if steps else None
        ),
        f1=2 * len(detected) / (positives + len(faulty)) if faulty else None,
        diagnosis=_share(v.is_diagnosed for v in detected),
        right_tensor=_share(_judged(faulty, "is_tensor_right")),
        right_rank=_share(_judged(faulty, "is_rank_right")),
        right_step=_share(_judged(faulty, "is_step_right")),
        latency_median=_quantile(latencies, 0.5),
        latency_p90=_quantile(latencies, 0.9),
        steps_saved=_mean([v.steps_saved for v in detected]),
        silent_in_time=_share(
            v.latency is not None and v.latency <= v.case.settings.raw_interval for v in silent
        ),
        recall_by_family={
            family: _share(
                v.is_detected for v in faulty if v.case.fault and v.case.fault.family == family
            )
            for family in FAMILIES
        },
        recall_at_bar=len(kept) / len(faulty) if faulty and has_bar else None,
        rules_at_bar=sorted(rules),
    )


def rules_within_bar(verdicts: list[Verdict]) -> set[str]:
    """A set of rules that together stay within the bar of false alarms and find much.

    Rules are taken one after the other, the one that adds most detections per false alarm first.
    """
    faulty = [v for v in verdicts if v.case.fault is not None]
    clean = [v for v in verdicts if v.case.fault is None]
    hits = {r: {id(v) for v in faulty if r in v.rules} for v in faulty for r in v.rules}
    noise = {r: {id(v) for v in clean if r in v.false_alarms} for r in hits}
    chosen: set[str] = set()
    found: set[int] = set()
    spent: set[int] = set()
    while True:
        affordable = [
            r
            for r in sorted(hits)
            if r not in chosen
            and hits[r] - found
            and len(spent | noise[r]) <= FALSE_ALARM_BAR * len(clean)
        ]
        if not affordable:
            return chosen
        best = max(affordable, key=lambda r: len(hits[r] - found) / (1 + len(noise[r] - spent)))
        chosen.add(best)
        found |= hits[best]
        spent |= noise[best]


def _latencies(faulty: list[Verdict]) -> list[float]:
    """Steps from the onset to the first right alarm; a fault that is never named costs the whole rest."""
    return [
        float(v.case.settings.steps - v.case.onset if v.latency is None else v.latency)
        for v in faulty
    ]


def _judged(verdicts: list[Verdict], what: str) -> list[bool]:
    return [getattr(v, what) for v in verdicts if getattr(v, what) is not None]


def _quantile(values: list[float], q: float) -> float | None:
    return float(np.quantile(values, q)) if values else None


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None
