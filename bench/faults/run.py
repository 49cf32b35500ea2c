"""The fault bench: records trainings with known faults and healthy ones, and scores detectors.

    make bench-faults ARGS="--seeds 0-4 --only 22/mlp --json"

Runs are kept in build/faults and recorded again only when they would differ. Even seeds are for
choosing thresholds, odd ones for the score that counts; they are never mixed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from faults.case import Case, clean_cases, faulty_cases
from faults.judge import baselines, cost, report
from faults.judge.alarm import Alarm
from faults.judge.engine import QUESTIONS, Engine
from faults.judge.score import Score, score
from faults.judge.verdict import Verdict, judge
from faults.library import Library
from faults.settings import TRAINERS

ROOT = Path(__file__).resolve().parents[2]
# Healthy runs beside each faulty one.
CLEAN_SHARE = 1.0


def parse_seeds(text: str) -> list[int]:
    """ "0-4" or "1,3"."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        seeds += range(int(first), int(last or first) + 1)
    return seeds


def is_wanted(case: Case, only: str) -> bool:
    """Whether a case matches "22/mlp", "22", "mlp", "clean" or "clean/mlp"."""
    what, _, trainer = only.partition("/")
    if what in TRAINERS:
        what, trainer = "", what
    kind = str(case.fault.number) if case.fault else "clean"
    return what in ("", kind) and trainer in ("", case.trainer)


def choose(seeds: list[int], only: str) -> list[Case]:
    """All cases of the seeds; with `only`, those that it names."""
    cases: list[Case] = []
    for seed in seeds:
        faulty = faulty_cases(seed)
        cases += [*faulty, *clean_cases(seed, round(CLEAN_SHARE * len(faulty)))]
    return [case for case in cases if is_wanted(case, only)]


def judge_all(
    cases: list[Case], library: Library, program: Path, processes: int
) -> tuple[dict[str, list[Verdict]], list[str]]:
    """Verdicts by detector, and remarks about what could not be done."""
    truths = [library.truth(case) for case in cases]
    verdicts: dict[str, list[Verdict]] = {}

    def add(name: str, alarms: Iterable[list[Alarm]], names_causes: bool) -> None:
        verdicts[name] = [
            judge(case, truth, some, names_causes)
            for case, truth, some in zip(cases, truths, alarms, strict=True)
        ]

    for name, alarms in baselines.alarms_of(cases, library).items():
        add(name, alarms, names_causes=False)
    engine = Engine(program, library.root / "answers")
    reason = engine.probe(library.run(cases[0]))
    if reason:
        return verdicts, [f"Rows of the rule engine are missing. {reason}"]
    remarks = [f"The engine knows {len(engine.rules)} rules: {', '.join(sorted(engine.rules))}."]
    if engine.lacking:
        remarks.append(f"It lacks these rules of the original: {', '.join(engine.lacking)}.")
    runs = [library.run(case) for case in cases]
    for question in QUESTIONS:
        reason = engine.refusal(question, runs[0])
        if reason:
            remarks.append(f"'{question.name}' is missing. The engine says: {reason}")
            continue
        answers = engine.ask(question, runs, processes)
        add(question.name, (answers.alarms[run] for run in runs), names_causes=True)
        if answers.asked:
            per_run = 1000 * answers.seconds / answers.asked
            remarks.append(f"'{question.name}' took {per_run:.0f} ms per run.")
        remarks += answers.problems[:10]
    return verdicts, remarks


def scores_of(verdicts: dict[str, list[Verdict]], tuning: bool) -> dict[str, Score]:
    """The scores of one half of the seeds, by detector."""
    found = {}
    for name, all_of in verdicts.items():
        chosen = [v for v in all_of if v.case.is_tuning == tuning]
        if chosen:
            found[name] = score(chosen, [v for v in all_of if v.case.is_tuning])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", default="0-4", help="0-4 or 1,3; even: tuning, odd: reporting")
    parser.add_argument("--only", default="", help="fault/trainer, fault, trainer or clean")
    parser.add_argument("--json", action="store_true", help="scores and misses for programs")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--runs", type=Path, default=ROOT / "build" / "faults")
    parser.add_argument("--engine", type=Path, default=ROOT / "build" / "dev" / "smdebug")
    parser.add_argument("--cost", action="store_true", help="also measure what recording costs")
    arguments = parser.parse_args()

    cases = choose(parse_seeds(arguments.seeds), arguments.only)
    if not cases:
        print(
            f"Nothing matches --only {arguments.only!r}; write 22/mlp, 22, mlp or clean.",
            file=sys.stderr,
        )
        return 2
    library = Library(arguments.runs)
    made = library.fill(cases, arguments.processes)
    unreal = [case for case in cases if not library.is_real(case)]
    cases = [case for case in cases if library.is_real(case)]
    verdicts, remarks = judge_all(cases, library, arguments.engine, arguments.processes)
    if unreal:
        names = ", ".join(f"{c.what} / {c.trainer} / {c.seed}" for c in unreal)
        remarks.append(
            f"{len(unreal)} runs are left out, as they do not show what they should: {names}."
        )
    halves = {
        "reporting (odd seeds)": scores_of(verdicts, tuning=False),
        "tuning (even seeds)": scores_of(verdicts, tuning=True),
    }
    costs = cost.measure_all() if arguments.cost else []
    if arguments.json:
        print(json.dumps(_document(halves, verdicts, costs, remarks, made), indent=1))
        return 0
    for title, scores in halves.items():
        if scores:
            print(report.score_table(title[0].upper() + title[1:], scores), end="\n\n")
            print(report.family_table(scores), end="\n\n")
    print(report.LEGEND, end="\n\n")
    last = list(verdicts)[-1]
    told = [v for v in verdicts[last] if not v.case.is_tuning] or verdicts[last]
    print(report.missed_list(last, told), end="\n\n")
    tuned = [v for v in verdicts[last] if v.case.is_tuning]
    if tuned:
        print(report.rule_table(f"Rules of '{last}' on the tuning seeds", tuned), end="\n\n")
    if costs:
        print(report.cost_table(costs), end="\n\n")
    print("\n".join(remarks))
    return 0


def _document(
    halves: dict[str, dict[str, Score]],
    verdicts: dict[str, list[Verdict]],
    costs: list[cost.Cost],
    remarks: list[str],
    made: int,
) -> dict[str, object]:
    return {
        "scores": {
            title: {name: one.to_json() for name, one in scores.items()}
            for title, scores in halves.items()
        },
        "verdicts": {
            name: [
                {
                    **{"case": v.case.what, "trainer": v.case.trainer, "seed": v.case.seed},
                    **{"detected_at": v.detected_at, "named_at": v.named_at, "rules": v.rules},
                    **{"false_alarms": v.false_alarms, "is_diagnosed": v.is_diagnosed},
                    **{"is_tensor_right": v.is_tensor_right, "is_step_right": v.is_step_right},
                }
                for v in all_of
            ]
            for name, all_of in verdicts.items()
        },
        "cost": [vars(one) for one in costs],
        "remarks": remarks,
        "recorded": made,
    }


if __name__ == "__main__":
    sys.exit(main())
