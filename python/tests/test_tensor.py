"""Tensors of a run: values, reductions, shapes, series, and what is said when one is absent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import smdebug
import writing
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.exceptions import (
    InvalidWorker,
    ShapeUnavailableForStep,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailableForStep,
)
from smdebug.trials import Trial, create_trial


def reductions_of(name: str, **values: float) -> dict[str, np.ndarray]:
    return {
        f"smdebug/reductions/{op}/{name}": np.array([v], np.float32) for op, v in values.items()
    }


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    """Two workers, a growing run: steps 0…4 of both, 5 of the first only."""
    for i in range(2):
        writing.collections(tmp_path, f"worker_{i}", 2)
        for step in range(5):
            raw = {"w": np.full((2, 2), step * 10 + i, np.float32)} if step < 4 else {}
            only = {f"only_{i}": np.float32(i)}
            writing.step(
                tmp_path,
                step,
                f"worker_{i}",
                shapes={"s": (step + 1, 7)},
                **raw,
                **only,
                **reductions_of("w", mean=step + 100, abs_max=step + 200),
            )
    writing.step(tmp_path, 5, "worker_0", w=np.float32(1))
    return create_trial(tmp_path)


def test_values(trial: Trial) -> None:
    w = trial.tensor("w")
    assert (w.value(3) == np.full((2, 2), 30)).all()
    assert (w.value(3, worker="worker_1") == 31).all()
    assert (w.value(3, modes.TRAIN, "worker_0") == 30).all()
    assert w.value(0).dtype == np.float32
    assert w.value(np.int64(2))[0, 0] == 20
    assert list(trial.tensor("only_0").values()) == [0, 1, 2, 3, 4]


def test_values_belong_to_the_caller(trial: Trial) -> None:
    w = trial.tensor("w")
    w.value(0)[:] = 99
    assert (w.value(0) == 0).all()


def test_a_cache_keeps_what_was_read(trial: Trial) -> None:
    cached = create_trial(trial.path, cache=True).tensor("w")
    assert cached.value(0) is cached.value(0)
    assert trial.tensor("w").value(0) is not trial.tensor("w").value(0)


def test_steps(trial: Trial) -> None:
    w = trial.tensor("w")
    assert w.steps() == [0, 1, 2, 3, 4], "step 5 lacks a worker"
    assert w.steps(show_incomplete_steps=True) == [0, 1, 2, 3, 4, 5]
    assert w.steps(modes.TRAIN) == [0, 1, 2, 3, 4]
    assert w.steps(modes.EVAL) == []
    assert w.prev_steps(3) == [0, 1, 2, 3]
    assert w.prev_steps(3, 2) == [2, 3]
    assert w.prev_steps(3, 0) == []
    assert w.prev_steps(99, n=1) == [4]
    assert w.prev_steps(0, 5, modes.EVAL) == []
    with pytest.raises(SMDebugValueError, match="-1"):
        w.prev_steps(3, -1)


def test_incomplete_steps_of_a_mode_are_told_by_their_global_step(tmp_path: Path) -> None:
    for i in range(2):
        writing.collections(tmp_path, f"worker_{i}", 2)
    for i in range(2):
        writing.step(tmp_path, 10, f"worker_{i}", mode=modes.EVAL, mode_step=0)
    writing.step(tmp_path, 11, "worker_0", mode=modes.EVAL, mode_step=1)
    tensor = create_trial(tmp_path).tensor("w")
    assert tensor.steps(modes.EVAL) == [0]
    assert tensor.steps(modes.EVAL, show_incomplete_steps=True) == [0, 1]


def test_workers(trial: Trial) -> None:
    assert trial.tensor("w").workers(0) == ["worker_0", "worker_1"]
    assert trial.tensor("only_1").workers(2, modes.TRAIN) == ["worker_1"]
    with pytest.raises(TensorUnavailableForStep, match="only_1"):
        trial.tensor("only_1").workers(5)


def test_stored_reductions_come_first(trial: Trial) -> None:
    w = trial.tensor("w")
    assert w.reduction_value(3, "mean") == 103
    assert w.reduction_value(3, "max", abs=True) == 203
    assert w.reduction_value(3, "abs_max") == 203
    assert w.reduction_value(3, "max", modes.TRAIN, "worker_1") == 31, "computed"
    assert w.reduction_value(3, "l2_norm", abs=True) == 60
    assert isinstance(w.reduction_value(3, "mean"), np.float32)
    assert w.reduction_values(3) == {("mean", False): 103, ("max", True): 203}
    assert trial.tensor("only_0").reduction_values(0) == {}


def test_reductions_without_a_value(trial: Trial) -> None:
    w = trial.tensor("w")
    assert w.reduction_value(4, "mean") == 104
    with pytest.raises(TensorUnavailableForStep, match="Reductions of it were") as raised:
        w.value(4)
    assert raised.value.has_reductions
    with pytest.raises(TensorUnavailableForStep) as raised:
        w.reduction_value(4, "min")
    assert raised.value.tname == "w", "the tensor, not the reduction"
    with pytest.raises(SMDebugValueError, match="Did you mean"):
        w.reduction_value(3, "meen")


@pytest.mark.parametrize("op", ["min", "max", "mean", "std", "variance", "sum", "prod", "median"])
@pytest.mark.parametrize("absolute", [False, True])
def test_reductions_are_computed_as_numpy_does(tmp_path: Path, op: str, absolute: bool) -> None:
    value = np.random.default_rng(1).normal(size=(5, 7))
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, w=value)
    given = np.abs(value) if absolute else value
    expected = getattr(np, {"variance": "var"}.get(op, op))(given)
    found = create_trial(tmp_path).tensor("w").reduction_value(0, op, abs=absolute)
    assert found == pytest.approx(expected, rel=1e-12)


def test_shapes(trial: Trial, tmp_path: Path) -> None:
    assert trial.tensor("s").shape(2) == (3, 7)
    assert trial.tensor("s").original_name == "original/s"
    assert trial.tensor("w").shape(2) == (2, 2), "of the value"
    assert trial.tensor("w").original_name is None
    assert trial.tensor("s").shapes() == {step: (step + 1, 7) for step in range(5)}
    with pytest.raises(ShapeUnavailableForStep):
        trial.tensor("w").shape(4)
    with pytest.raises(TensorUnavailableForStep) as raised:
        trial.tensor("s").value(2)
    assert not raised.value.has_reductions


def test_a_shape_does_not_hide_the_value(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, shapes={"w": (4, 5)}, w=np.zeros(20, np.float32))
    tensor = create_trial(tmp_path).tensor("w")
    assert tensor.shape(0) == (4, 5)
    assert tensor.value(0).shape == (20,)


def test_absent_steps(trial: Trial) -> None:
    w = trial.tensor("w")
    with pytest.raises(StepNotYetAvailable):
        w.value(6)
    with pytest.raises(StepNotYetAvailable):
        w.reduction_value(1, "mean", modes.EVAL)
    with pytest.raises(StepNotYetAvailable):
        trial.tensor("only_1").value(5)


def test_a_tensor_that_a_complete_step_lacks(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, a=1.0)
    writing.step(tmp_path, 1, b=1.0)
    with pytest.raises(TensorUnavailableForStep, match="'a' was not saved at step 1") as raised:
        create_trial(tmp_path).tensor("a").value(1)
    assert (raised.value.step, raised.value.has_reductions) == (1, False)


def test_absent_steps_of_an_ended_job(trial: Trial) -> None:
    writing.end(Path(trial.path))
    w = trial.tensor("w")
    assert w.value(5) == 1
    for action in (w.value, w.shape, w.reduction_values):
        with pytest.raises(StepUnavailable):
            action(6)
    with pytest.raises(StepUnavailable):
        w.value(0, modes.PREDICT)


def test_skipped_steps(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    writing.step(tmp_path, 10)
    with pytest.raises(StepUnavailable, match="Step 5 of mode GLOBAL"):
        create_trial(tmp_path).tensor("w").value(5)


def test_absent_workers(trial: Trial) -> None:
    with pytest.raises(InvalidWorker, match="worker_9"):
        trial.tensor("w").value(0, worker="worker_9")
    with pytest.raises(InvalidWorker, match="worker_1"):
        trial.tensor("only_0").value(0, worker="worker_1")
    with pytest.raises(InvalidWorker):
        trial.tensor("w").series("mean", worker="worker_9")
    with pytest.raises(SMDebugTypeError, match="7"):
        trial.tensor("w").value(0, worker=7)  # type: ignore[arg-type]


def test_a_value_is_found_after_a_look_for_news(trial: Trial) -> None:
    w = trial.tensor("w")
    writing.step(Path(trial.path), 5, "worker_1", w=np.float32(5))
    writing.step(Path(trial.path), 6, "worker_1", w=np.float32(6))
    assert w.value(6, worker="worker_1") == 6
    assert w.steps() == [0, 1, 2, 3, 4, 5]


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, w=1.0)
    tensor = create_trial(tmp_path).tensor("w")
    for _ in range(3):
        assert tensor.value(0) == 1
    writing.step(tmp_path, 0, w=2.0)
    tensor.trial.refresh_data()
    for _ in range(3):
        assert tensor.value(0) == 2


def test_series_are_arrays(trial: Trial) -> None:
    steps, values = trial.tensor("w").series("mean")
    assert steps.dtype == np.int64
    assert values.dtype == np.float64
    assert steps.tolist() == [0, 1, 2, 3, 4]
    assert values.tolist() == [100, 101, 102, 103, 104]
    steps, values = trial.tensor("w").series("min", worker="worker_1")
    assert (steps.tolist(), values.tolist()) == ([0, 1, 2, 3], [1, 11, 21, 31])
    steps, _ = trial.tensor("w").series("mean", show_incomplete_steps=True)
    assert steps.tolist() == [0, 1, 2, 3, 4, 5]
    steps, values = trial.tensor("only_1").series(mode=modes.TRAIN)
    assert values.tolist() == [1] * 5
    assert trial.tensor("w").series("mean", modes.EVAL)[0].tolist() == []
    with pytest.raises(SMDebugValueError, match="meen"):
        trial.tensor("w").series("meen")


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int64", "uint64", "float16"])
def test_series_of_every_type(tmp_path: Path, dtype: str) -> None:
    writing.collections(tmp_path)
    for step in range(3):
        writing.step(tmp_path, step, w=np.array(step % 2, dtype))
    assert create_trial(tmp_path).tensor("w").series()[1].tolist() == [0, 1, 0]


def test_a_series_of_something_else_than_numbers(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, text="hello", pair=np.zeros(2))
    trial = create_trial(tmp_path)
    for name in ("text", "pair"):
        with pytest.raises(smdebug.exceptions.SMDebugError, match="one number"):
            trial.tensor(name).series()


VALUES: list[Any] = [
    np.float16([1.5, -2]),
    np.float32([[1, 2], [3, 4]]),
    np.array(2.5),
    np.arange(6, dtype=np.int8).reshape(1, 2, 3) - 3,
    np.uint16([65535]),
    np.uint32([2**32 - 1]),
    np.uint64([2**64 - 1]),
    np.int16([-5]),
    np.complex64([1 + 2j]),
    np.complex128([[3 - 4j]]),
    np.array([True, False]),
    np.array(["a", "größe", ""]),
    np.arange(100_000, dtype=np.float64),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{v.dtype}{v.shape}")
def test_every_type_comes_back(tmp_path: Path, value: np.ndarray) -> None:
    hook = smdebug.Hook(tmp_path / "run", save_all=True, save_config=SaveConfig(save_interval=1))
    with hook.step():
        hook.save_tensor("x", value)
    hook.close()
    found = create_trial(tmp_path / "run", check=True).tensor("x").value(0)
    assert found.shape == value.shape
    assert found.dtype.kind == value.dtype.kind
    np.testing.assert_array_equal(found, value)


def test_the_last_of_several_values_of_a_step_counts(tmp_path: Path) -> None:
    hook = smdebug.Hook(
        tmp_path / "run",
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["max"], save_raw_tensor=True),
    )
    with hook.step():
        for i in range(3):
            hook.save_tensor("x", np.float32(i))
    hook.close()
    tensor = create_trial(tmp_path / "run", check=True).tensor("x")
    assert tensor.value(0) == 2
    assert tensor.reduction_value(0, "max") == 2
