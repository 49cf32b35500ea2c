"""One statistic of many tensors over many steps, against what single questions answer."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import writing
from smdebug import Hook, ReductionConfig, SaveConfig, modes
from smdebug.exceptions import (
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.trial import Trial
from smdebug.trials import create_trial


def record(path: Path, layout: str) -> Trial:
    """Two modes, several element types, tensors that come and go, raw values, scalars, strings."""
    hook = Hook(
        path,
        layout=layout,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean", "max"], norms=["l2"]),
        save_all=True,
    )
    hook.get_collection("raw").include("^raw")
    hook.get_collection("raw").reduction_config = ReductionConfig(save_raw_tensor=True)
    rng = np.random.default_rng(0)
    for step in range(150):
        hook.set_mode(modes.EVAL if step % 3 == 2 else modes.TRAIN)
        hook.step()
        for i in range(5):
            hook.save(f"layer{i}/weight", rng.normal(size=(4, 3)).astype(np.float32))
        hook.save("layer/bias", rng.normal(size=3))
        hook.save("count", rng.integers(0, 100, 5))
        hook.save_scalar("loss", 1 / (step + 1))
        if step % 7 == 0:
            hook.save("raw/input", rng.normal(size=8).astype(np.float32))
        if step == 4:
            hook.save("rare", np.array([np.nan, 1.0, np.inf], np.float32))
    hook.close()
    return create_trial(path)


@pytest.fixture(params=["original", "packed"])
def trial(request: pytest.FixtureRequest, tmp_path: Path) -> Trial:
    return record(tmp_path / "run", request.param)


def slow(
    trial: Trial, reduction: str | None, tensors: list[str], mode: modes, worker: str | None = None
) -> dict[tuple[str, int], float]:
    """The same numbers, one question each."""
    found = {}
    for name in tensors:
        tensor = trial.tensor(name)
        for step in tensor.steps(mode=mode):
            if reduction is None:
                try:
                    value = np.asarray(tensor.value(step, mode=mode, worker=worker))
                except TensorUnavailableForStep:
                    continue
                if value.size != 1 or value.dtype.kind not in "biuf":
                    continue
                found[name, step] = float(value.ravel()[0])
            else:
                value = tensor.reduction_value(step, reduction, mode=mode, worker=worker)
                if value is not None:
                    found[name, step] = float(value)
    return found


def numbers(matrix) -> dict[tuple[str, int], float]:
    assert matrix.values.shape == (len(matrix.tensors), len(matrix.steps)) == matrix.present.shape
    assert np.isnan(matrix.values[~matrix.present]).all()
    return {
        (matrix.tensors[i], int(matrix.steps[j])): float(matrix.values[i, j])
        for i, j in np.argwhere(matrix.present)
    }


def same(a: dict[tuple[str, int], float], b: dict[tuple[str, int], float]) -> bool:
    return a.keys() == b.keys() and all(
        a[key] == b[key] or (math.isnan(a[key]) and math.isnan(b[key])) for key in a
    )


@pytest.mark.parametrize("mode", [modes.GLOBAL, modes.TRAIN, modes.EVAL])
@pytest.mark.parametrize("reduction", ["mean", "max", "l2", "std", None])
def test_every_number_is_what_a_single_question_answers(
    trial: Trial, reduction: str | None, mode: modes
) -> None:
    # std is not stored: it is computed where there are raw values.
    names = trial.tensor_names()
    if reduction == "std":
        names = ["raw/input", "scalar/loss"]
    expected = slow(trial, reduction, names, mode)
    assert len(expected) > 20
    matrix = trial.matrix(reduction, mode=mode)
    assert same(numbers(matrix), expected)
    assert matrix.tensors == sorted({name for name, _ in expected})
    assert matrix.steps.tolist() == sorted({step for _, step in expected})


def test_float32_is_kept_where_nothing_else_is_stored(tmp_path: Path) -> None:
    packed = record(tmp_path / "packed", "packed")
    weights = packed.matrix("mean", regex="weight")
    assert weights.values.dtype == np.float32
    assert weights.complete
    assert weights.values.flags.c_contiguous
    assert packed.matrix("mean", regex="weight|bias").values.dtype == np.float64
    assert not packed.matrix("mean", regex="rare|weight").complete
    assert record(tmp_path / "original", "original").matrix("mean").values.dtype == np.float64


def test_the_arrays_outlive_the_trial(trial: Trial) -> None:
    matrix = trial.matrix("mean", regex="layer0/weight")
    expected = matrix.values.copy()
    steps = matrix.steps
    del trial, matrix.tensors
    values = matrix.values
    del matrix
    np.testing.assert_array_equal(values, expected)
    assert steps.tolist() == list(range(150))


def test_a_recorded_nan_is_no_missing_number(trial: Trial) -> None:
    matrix = trial.matrix("max", tensors=["layer0/weight", "rare"])
    assert matrix.tensors == ["layer0/weight", "rare"]
    assert np.isnan(matrix.values[1]).all()
    assert np.flatnonzero(matrix.present[1]).tolist() == [4]


def test_tensors_keep_their_order_and_steps_are_half_open(trial: Trial) -> None:
    matrix = trial.matrix("mean", ["layer3/weight", "layer1/weight"], start_step=10, end_step=20)
    assert matrix.tensors == ["layer3/weight", "layer1/weight"]
    assert matrix.steps.tolist() == list(range(10, 20))
    expected = slow(trial, "mean", matrix.tensors, modes.GLOBAL)
    assert same(numbers(matrix), {k: v for k, v in expected.items() if 10 <= k[1] < 20})
    assert trial.matrix("mean", "layer2/weight").tensors == ["layer2/weight"]
    assert trial.matrix("mean", start_step=1000).values.shape == (0, 0)


def test_collections_choose(trial: Trial) -> None:
    assert trial.matrix("mean", collection="raw").tensors == ["raw/input"]


def test_pandas_shows_tensors_and_steps(trial: Trial) -> None:
    table = trial.matrix("mean", regex="weight").to_pandas()
    assert table.shape == (5, 150)
    assert table.loc["layer2/weight", 7] == trial.tensor("layer2/weight").reduction_value(7, "mean")
    assert "mean" in repr(trial.matrix("mean"))


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"reduction": "meen"}, SMDebugValueError, "'mean'"),
        ({"tensors": ["layer1/weigth"]}, SMDebugValueError, "'layer1/weight'"),
        ({"tensors": ["count", "count"]}, SMDebugValueError, "twice"),
        ({"worker": "worker_O"}, SMDebugValueError, "'worker_0'"),
        ({"tensors": ["a"], "regex": "b"}, SMDebugValueError, "only one"),
        ({"reduction": 3}, SMDebugTypeError, "3"),
        ({"start_step": "x"}, SMDebugError, "x"),
    ],
)
def test_wrong_choices_name_the_nearest(
    trial: Trial, options: dict, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        trial.matrix(**options)


@pytest.fixture(params=["original", "packed"])
def workers(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Trial:
    """Two workers: one lacks a tensor at first, the other the last step; a mode step is repeated."""
    monkeypatch.setenv("SMDEBUG_LAYOUT", request.param)
    path = tmp_path / "workers"
    for step in range(6):
        for w in range(2):
            if (step, w) == (5, 1):
                continue
            tensors = {"a": np.float32(10 * step + w), "b": np.float64(100 * step + w)}
            if w == 0 and step < 3:
                del tensors["a"]
            mode_step = 1 if step == 2 else step
            writing.step(path, step, f"worker_{w}", mode_step=mode_step, **tensors)
    for w in range(2):
        writing.collections(path, f"worker_{w}", 2)
    return create_trial(path)


def test_workers_are_told_apart(workers: Trial) -> None:
    first = workers.matrix(None)
    assert numbers(first)["a", 0] == 1
    assert numbers(first)["a", 4] == 40
    assert numbers(first)["b", 2] == 200
    assert same(numbers(first), slow(workers, None, ["a", "b"], modes.GLOBAL))
    second = workers.matrix(None, worker="worker_1")
    assert numbers(second)["a", 4] == 41
    assert numbers(second)["b", 0] == 1


def test_incomplete_steps_are_left_out_unless_asked_for(workers: Trial) -> None:
    seen = workers.steps()
    assert workers.matrix(None).steps.tolist() == seen == [*range(5)]
    every = workers.steps(show_incomplete_steps=True)
    assert workers.matrix(None, show_incomplete_steps=True).steps.tolist() == every == [*range(6)]


def test_of_a_repeated_mode_step_the_first_counts(workers: Trial) -> None:
    matrix = workers.matrix(None, mode=modes.TRAIN)
    assert matrix.steps.tolist() == [0, 1, 3, 4]
    assert numbers(matrix)["b", 1] == 100


def test_damaged_numbers_are_found_when_asked_to_check(tmp_path: Path) -> None:
    record(tmp_path / "run", "packed")
    [segment] = (tmp_path / "run").glob("v2/seg/*/*/00000000")
    content = bytearray(segment.read_bytes())
    at = content.rindex(b"smdebug/block")
    end = content.index(b"smdebug/footer")
    expected = create_trial(tmp_path / "run").matrix("max", regex="weight").values[-1, -1]
    place = content.index(np.float32(expected).tobytes(), at, end)
    content[place] ^= 1
    segment.write_bytes(content)
    assert create_trial(tmp_path / "run").matrix("max", regex="weight").values[-1, -1] != expected
    with pytest.raises(SMDebugError, match="checksum"):
        create_trial(tmp_path / "run", check=True).matrix("max", regex="weight")
    with pytest.raises(SMDebugError, match="checksum"):
        create_trial(tmp_path / "run", check=True).matrix("mean", regex="weight")


def test_a_shortened_segment_is_told_of(tmp_path: Path) -> None:
    trial = record(tmp_path / "run", "packed")
    [segment] = (tmp_path / "run").glob("v2/seg/*/*/00000000")
    segment.write_bytes(segment.read_bytes()[:2000])
    with pytest.raises(SMDebugError, match="v2/seg"):
        trial.matrix("max", regex="weight")
