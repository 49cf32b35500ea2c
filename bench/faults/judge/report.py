"""The tables of the bench as text."""

from __future__ import annotations

from collections.abc import Sequence

from faults.judge.cost import Cost
from faults.judge.score import FAMILIES, Score
from faults.judge.verdict import Verdict

COLUMNS = (
    *(("recall", "recall"), ("named", "named"), ("false_alarm_rate", "FAR")),
    *(("alarms_per_1000_clean_steps", "al/1k"), ("f1", "F1"), ("recall_at_bar", "rec@2%")),
    *(("diagnosis", "diag"), ("right_tensor", "tensor"), ("right_rank", "rank")),
    *(("right_step", "step"), ("latency_median", "lat50"), ("latency_p90", "lat90")),
    *(("steps_saved", "saved"), ("silent_in_time", "silent")),
)
LEGEND = """\
recall: faulty runs with an alarm since the onset; named: with one of a rule that is right about it;
FAR: healthy runs with an alarm; al/1k: alarms per 1,000 healthy steps; rec@2%: recall of those rules
that stay within 2 % of false alarms on the tuning seeds; diag: first finding is right, of detected
runs; tensor, rank, step: right place, of named runs; lat50, lat90: steps from onset to the first right
alarm (never: rest of the run); saved: share of the run still to come; silent: silent update and rank
faults named within one save interval."""


def _cell(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if value >= 2 else f"{value:.2f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [header, *rows]
    ]


def score_table(title: str, scores: dict[str, Score]) -> str:
    some = next(iter(scores.values()))
    rows = [
        [name, *(_cell(getattr(score, key)) for key, _ in COLUMNS)]
        for name, score in scores.items()
    ]
    lines = _table(["detector", *(short for _, short in COLUMNS)], rows)
    return "\n".join([f"{title}: {some.faulty} faulty and {some.clean} healthy runs", *lines])


def family_table(scores: dict[str, Score]) -> str:
    rows = [
        [family, *(_cell(score.recall_by_family[family]) for score in scores.values())]
        for family in FAMILIES
    ]
    return "\n".join(["Recall by family", *_table(["family", *scores], rows)])


def rule_table(title: str, verdicts: list[Verdict]) -> str:
    """For each rule: faulty runs in which it alarmed and was right, and healthy runs in which it alarmed."""
    faulty = [v for v in verdicts if v.case.fault is not None]
    clean = [v for v in verdicts if v.case.fault is None]
    names = {r for v in faulty for r in v.rules} | {r for v in clean for r in v.false_alarms}
    rows = [
        [
            name,
            str(sum(name in v.rules for v in faulty)),
            str(sum(name in v.right_rules for v in faulty)),
            str(sum(name in v.false_alarms for v in clean)),
        ]
        for name in sorted(names)
    ]
    header = ["rule", f"of {len(faulty)} faulty", "right", f"of {len(clean)} healthy"]
    return "\n".join([title, *_table(header, rows)])


def cost_table(costs: list[Cost]) -> str:
    rows = [
        [c.trainer, f"{c.step_micros:.0f}", f"{c.recording_micros:.0f}", f"{c.bytes_per_step:.0f}"]
        for c in costs
    ]
    header = ["trainer", "training µs/step", "recording µs/step", "bytes/step"]
    return "\n".join(["Cost of recording", *_table(header, rows)])


def _grouped(verdicts: list[Verdict]) -> dict[tuple[str, str], list[Verdict]]:
    groups: dict[tuple[str, str], list[Verdict]] = {}
    for v in verdicts:
        groups.setdefault((v.case.what, v.case.trainer), []).append(v)
    return groups


def missed_list(name: str, verdicts: list[Verdict]) -> str:
    """What a detector did not see, misnamed, or saw where nothing was."""
    lines = []
    for (what, trainer), group in sorted(_grouped(verdicts).items()):
        seeds = f"{len(group)} seeds" if len(group) > 1 else "1 seed"
        if group[0].case.fault is None:
            rules = sorted({rule for v in group for rule in v.false_alarms})
            if rules:
                count = sum(bool(v.false_alarms) for v in group)
                lines.append(
                    f"  false alarm  {what} / {trainer}: {count} of {seeds}: {', '.join(rules)}"
                )
            continue
        missed = sum(not v.is_detected for v in group)
        unnamed = [v for v in group if v.is_detected and v.named_at is None]
        if missed:
            lines.append(f"  missed       {what} / {trainer}: {missed} of {seeds}")
        if unnamed:
            rules = sorted({rule for v in unnamed for rule in v.rules})
            lines.append(
                f"  misnamed     {what} / {trainer}: {len(unnamed)} of {seeds}: {', '.join(rules)}"
            )
    return "\n".join([f"What {name} gets wrong: {len(lines) or 'nothing'}", *lines])
