"""The three baselines on curves that were made by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from faults.case import Case, Truth, faulty_cases
from faults.judge import baselines
from faults.judge.alarm import Alarm
from faults.judge.baselines import early_stopping, loss_deviation, nan_stop
from faults.library import Library


def run_with(loss: object, validation: object = ()) -> SimpleNamespace:
    values = np.asarray(loss, float)
    points = np.asarray(validation, float)
    return SimpleNamespace(
        loss=values,
        loss_name="loss",
        validation=(20 * np.arange(len(points)) + 19, points),
        truth=Truth([i + 100 for i in range(1000)], 0, 1, 1),
    )


def steps(alarms: list) -> list[int]:
    return [alarm.first_step - 100 for alarm in alarms]


def test_nan_stop_tells_the_first_loss_that_is_no_number() -> None:
    assert steps(nan_stop(run_with([1, 2, np.inf, np.nan]))) == [2]
    assert nan_stop(run_with([1, 2, 3])) == []


def test_early_stopping_waits_for_five_validations_without_improvement() -> None:
    falling_then_flat = [5, 4, 3, 3, 3, 3, 3, 3]
    assert steps(early_stopping(run_with([1], falling_then_flat))) == [7 * 20 + 19]
    assert early_stopping(run_with([1], falling_then_flat[:-1])) == []
    assert early_stopping(run_with([1], [5, 6, 6, 6, 6, 4, 6, 6, 6, 6])) == []


def test_early_stopping_counts_nan_as_no_improvement() -> None:
    assert steps(early_stopping(run_with([1], [5, *[np.nan] * 5]))) == [5 * 20 + 19]


def test_deviation_needs_a_loss_far_above_its_recent_mean() -> None:
    rng = np.random.default_rng(0)
    loss = 1 + 0.1 * rng.standard_normal(100)
    assert loss_deviation(run_with(loss)) == []
    loss[70] = 1.9
    assert steps(loss_deviation(run_with(loss))) == [70]
    loss[70] = np.nan
    assert steps(loss_deviation(run_with(loss))) == [70]


def test_alarms_of_recorded_runs_are_computed_once(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [c for c in faulty_cases(1) if c.fault and c.fault.number == 22 and c.trainer == "mlp"]
    library.evidence(cases[0])
    first = baselines.alarms_of(cases, library)
    assert steps_of_train(first["NaN-only stop"][0], library, cases[0]) == [100]
    monkeypatch.setattr(baselines, "BASELINES", {"NaN-only stop": None})
    assert baselines.alarms_of(cases, library) == {"NaN-only stop": first["NaN-only stop"]}


def steps_of_train(alarms: list[Alarm], library: Library, case: Case) -> list[int]:
    return [library.truth(case).train_step(alarm.first_step) for alarm in alarms]
