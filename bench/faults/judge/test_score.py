"""Scores of verdicts that were made by hand."""

from __future__ import annotations

import pytest

from faults.case import Case, faulty_cases, plain_case
from faults.judge.score import rules_within_bar, score
from faults.judge.verdict import Verdict


def faulty(number: int, seed: int = 1) -> Case:
    return next(
        c for c in faulty_cases(seed) if c.fault and c.fault.number == number and c.trainer == "mlp"
    )


def clean(count: int, *rules_of_first: str) -> list[Verdict]:
    found = [Verdict(plain_case("mlp", 1)) for _ in range(count)]
    found[0].false_alarms = list(rules_of_first)
    return found


def test_rates_are_shares_of_runs() -> None:
    seen = Verdict(faulty(8), detected_at=70, named_at=70, rules=["DeadRelu"], is_diagnosed=True)
    misnamed = Verdict(faulty(3), detected_at=50, rules=["Overfit"])
    verdicts = [seen, misnamed, Verdict(faulty(13)), Verdict(faulty(14)), *clean(4, "A", "B")]
    found = score(verdicts, [])
    assert (found.faulty, found.clean) == (4, 4)
    assert found.recall == 0.5
    assert found.named == 0.25
    assert found.false_alarm_rate == 0.25
    assert found.alarms_per_1000_clean_steps == pytest.approx(2 / 0.96)
    # Three alarmed runs, two of them rightly, of four.
    assert found.f1 == pytest.approx(2 * 2 / (3 + 4))
    assert found.diagnosis == 0.5
    assert found.recall_by_family["activations"] == 1
    assert found.recall_by_family["labels"] == 0
    assert found.recall_by_family["trees"] is None


def test_latency_of_a_fault_that_is_never_named_is_the_rest_of_the_run() -> None:
    seen = Verdict(faulty(8), detected_at=64, named_at=64)
    never = Verdict(faulty(8))
    found = score([seen, never], [])
    assert found.latency_median == (4 + 180) / 2
    assert found.latency_p90 == pytest.approx(4 + 0.9 * 176)


def test_places_count_only_where_there_is_one() -> None:
    right = Verdict(faulty(8), is_tensor_right=True)
    wrong = Verdict(faulty(22), is_tensor_right=False)
    found = score([right, wrong, Verdict(faulty(13))], [])
    assert found.right_tensor == 0.5
    assert found.right_rank is None


def test_without_healthy_runs_to_tune_on_nothing_is_said_about_the_bar() -> None:
    seen = Verdict(faulty(8), detected_at=60, rules=["Good"])
    assert score([seen], []).recall_at_bar is None
    assert score([seen], [seen]).recall_at_bar is None


def test_silent_faults_must_be_named_within_one_save_interval() -> None:
    in_time = Verdict(faulty(19), detected_at=10, named_at=10)
    late = Verdict(faulty(20), detected_at=11, named_at=11)
    loud = Verdict(faulty(8), detected_at=60, named_at=60)
    assert score([in_time, late, loud], []).silent_in_time == 0.5


def test_rules_that_cry_too_often_are_left_out_at_the_bar() -> None:
    verdicts = [
        Verdict(faulty(8), detected_at=60, rules=["Good", "Noisy"]),
        Verdict(faulty(3), detected_at=60, rules=["Noisy"]),
        *clean(100),
    ]
    for verdict in verdicts[2:5]:
        verdict.false_alarms = ["Noisy"]
    assert rules_within_bar(verdicts) == {"Good"}
    verdicts[2].false_alarms = []
    # Two of a hundred are allowed.
    assert rules_within_bar(verdicts) == {"Good", "Noisy"}


def test_recall_at_the_bar_uses_rules_chosen_on_the_tuning_seeds_only() -> None:
    tuning = [Verdict(faulty(8, 0), detected_at=60, rules=["Good"]), *clean(10)]
    told = [
        Verdict(faulty(8), detected_at=60, rules=["Good"]),
        Verdict(faulty(3), detected_at=60, rules=["Unknown"]),
    ]
    found = score(told, tuning)
    assert found.rules_at_bar == ["Good"]
    assert found.recall_at_bar == 0.5
