"""Values and numbers that somebody brings when their step is over: the writer waits for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from smdebug import Hook, ReductionConfig, SaveConfig, _core, create_trial
from smdebug.exceptions import SMDebugValueError

EVERY = SaveConfig(save_interval=1)


def test_numbers_arrive_at_their_own_step(out_dir: Path) -> None:
    config = ReductionConfig(["min", "max"])
    hook = Hook(out_dir, save_all=True, save_config=EVERY, reduction_config=config)
    expected = []
    for _ in range(3):
        hook.begin_step()
        tensors = [("x", "bfloat16", ["min", "max"]), ("y", "float64", ["max"])]
        expected.append(_core.expect_numbers(hook._core, tensors))
    hook.end_step()
    assert hook.committed_steps == 0  # nobody has waited
    for step, numbers in enumerate(expected):
        numbers.deliver([-1.0 - step, 1.0 + step, 1e300])
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1, 2]
    for step in range(3):
        x, y = (trial.tensor(name).reduction_values(step) for name in "xy")
        assert {key[0]: float(value) for key, value in x.items()} == {
            "min": -1 - step,
            "max": 1 + step,
        }
        assert float(y["max", False]) == 1e300


def test_a_tensor_is_saved_as_any_other_when_it_comes(out_dir: Path, messages: Any) -> None:
    config = ReductionConfig(["median"], save_raw_tensor=True, save_shape=True)
    hook = Hook(out_dir, save_all=True, save_config=EVERY, reduction_config=config)
    values = np.array([[1, 5, 2], [4, np.nan, 3]], np.float32)
    hook.begin_step()
    later = _core.expect_tensor(hook._core, "x", _core.Kind.loss, "float32", [2, 3])
    hook.begin_step()
    threading.Timer(0.05, lambda: later.deliver(values.ctypes.data)).start()
    hook.close()
    trial = create_trial(str(out_dir))
    np.testing.assert_array_equal(trial.tensor("x").value(0), values)
    assert np.isnan(trial.tensor("x").reduction_value(0, "median"))
    assert trial.tensor("x").shape(0) == (2, 3)
    assert trial.tensor_names(collection="losses") == ["x"]


def test_what_fails_on_its_way_costs_its_step_and_no_other(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "0")
    hook = Hook(out_dir, save_all=True, save_config=EVERY)
    value = np.float32([7])
    for step in range(3):
        hook.begin_step()
        later = _core.expect_tensor(hook._core, "x", _core.Kind.automatic, "float32", [1])
        if step == 1:
            later.fail("The device is gone.")
        else:
            later.deliver(value.ctypes.data)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 2]
    assert trial.tensor("x").value(2).tolist() == [7]


def test_numbers_that_do_not_fit_are_refused(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY)
    hook.begin_step()
    with pytest.raises(SMDebugValueError, match="float9"):
        _core.expect_tensor(hook._core, "x", _core.Kind.automatic, "float9", [1])
    with pytest.raises(Exception, match="biggest"):
        _core.expect_numbers(hook._core, [("x", "float32", ["biggest"])])
    hook.close()
