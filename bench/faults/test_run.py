"""The command: choosing cases, separating seeds, telling what is missed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faults import run
from faults.case import faulty_cases, plain_case
from faults.judge import report
from faults.judge.verdict import Verdict


def test_seeds_are_ranges_and_lists() -> None:
    assert run.parse_seeds("0-2,7") == [0, 1, 2, 7]


@pytest.mark.parametrize(
    ("only", "kinds", "trainers"),
    [
        ("22/mlp", {22}, {"mlp"}),
        ("34", {34}, {"trees"}),
        ("clean/ranks", {None}, {"ranks"}),
    ],
)
def test_only_chooses_cases(only: str, kinds: set[int | None], trainers: set[str]) -> None:
    chosen = run.choose([1], only)
    assert {case.fault.number if case.fault else None for case in chosen} == kinds
    assert {case.trainer for case in chosen} == trainers


def test_halves_hold_their_own_seeds() -> None:
    cases = [*faulty_cases(0), *faulty_cases(1)]
    verdicts = {"x": [Verdict(c, detected_at=1 if c.seed else None) for c in cases]}
    assert run.scores_of(verdicts, tuning=False)["x"].recall == 1
    assert run.scores_of(verdicts, tuning=True)["x"].recall == 0


def test_what_goes_wrong_is_listed() -> None:
    missed, misnamed = faulty_cases(1)[0], faulty_cases(1)[10]
    verdicts = [
        Verdict(missed),
        Verdict(misnamed, detected_at=5, rules=["Overfit"]),
        Verdict(plain_case("mlp", 1), false_alarms=["DeadRelu"]),
        Verdict(plain_case("cnn", 1)),
    ]
    lines = report.missed_list("x", verdicts).splitlines()
    assert lines[0] == "What x gets wrong: 3"
    assert lines[1].split() == [
        "missed",
        "01",
        "high",
        "learning",
        "rate",
        "/",
        "mlp:",
        "1",
        "of",
        "1",
        "seed",
    ]
    assert lines[2].endswith("1 of 1 seed: Overfit")
    assert lines[3].endswith("clean plain / mlp: 1 of 1 seed: DeadRelu")


def test_rules_are_counted_by_what_they_did() -> None:
    case = faulty_cases(0)[0]
    verdicts = [
        Verdict(case, detected_at=5, rules=["A", "B"], right_rules=["A"]),
        Verdict(case, detected_at=5, rules=["A"], right_rules=["A"]),
        Verdict(plain_case("mlp", 0), false_alarms=["B"]),
    ]
    lines = report.rule_table("Rules", verdicts).splitlines()
    assert [line.split() for line in lines[2:]] == [["A", "2", "2", "0"], ["B", "1", "0", "1"]]


def test_bench_runs_from_end_to_end(tmp_path: Path) -> None:
    """Two faults that baselines see, two seeds, no engine; the second call records nothing."""
    bench = Path(run.__file__).parents[1]

    def call() -> dict:
        arguments = ["--seeds", "0-1", "--only", "22/mlp", "--json", "--processes", "1"]
        places = ["--runs", str(tmp_path / "runs"), "--engine", str(tmp_path / "none")]
        done = subprocess.run(
            [sys.executable, "-m", "faults.run", *arguments, *places],
            env={"PYTHONPATH": f"{bench.parent / 'python'}:{bench}", "PATH": "/usr/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    first, second = call(), call()
    assert (first["recorded"], second["recorded"]) == (2, 0)
    for half in first["scores"].values():
        assert half["NaN-only stop"]["recall"] == 1
        assert half["NaN-only stop"]["latency_median"] == 0
    assert "Rows of the rule engine are missing" in first["remarks"][0]
    assert first["scores"] == second["scores"]
