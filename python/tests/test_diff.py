"""What differs between two runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import writing
from smdebug import Hook, ReductionConfig, SaveConfig, _core, modes
from smdebug.diff import Diff
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.trials import create_trial

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"


def diff(a: Path, b: Path, **options: Any) -> Diff:
    return create_trial(a).diff(create_trial(b), **options)


def record(
    path: Path,
    change: Callable[[int, dict[str, Any]], None] | None = None,
    steps: int = 4,
    reductions: bool = False,
) -> Path:
    """A run of two tensors and a scalar; `change(step, tensors)` may alter what is saved."""
    config = ReductionConfig(reductions=["mean"], norms=["l2"]) if reductions else None
    hook = Hook(
        path, save_config=SaveConfig(save_interval=1), reduction_config=config, save_all=True
    )
    rng = np.random.default_rng(7)
    for step in range(steps):
        tensors: dict[str, Any] = {
            "z/weight": rng.normal(size=(50, 100)).astype(np.float32),
            "a/bias": rng.normal(size=8),
        }
        if change is not None:
            change(step, tensors)
        hook.set_mode(modes.TRAIN)
        hook.step()
        for name, value in tensors.items():
            hook.save(name, value)
        hook.save_scalar("loss", 1 / (step + 1))
    hook.close()
    return path


def plant(at: int, tensor: str, edit: Callable[[Any], Any]) -> Callable[[int, Any], None]:
    def change(step: int, tensors: dict[str, Any]) -> None:
        if step == at:
            tensors[tensor] = edit(tensors[tensor])

    return change


def element(index: tuple[int, ...], value: float) -> Callable[[Any], Any]:
    def edit(array: Any) -> Any:
        out = array.copy()
        out[index] = value
        return out

    return edit


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return record(tmp_path / "a")


def test_the_same_training_gives_equal_runs(run: Path, tmp_path: Path) -> None:
    found = diff(run, record(tmp_path / "b"))
    assert found.equal
    assert found.first is None
    assert found.table == []
    assert not found.only_in_a
    assert not found.only_in_b
    assert found.compared == {
        "steps": 4,
        "tensors": 3,
        "values": 12,
        "elements": 4 * (5000 + 8 + 1),
        "reductions": 0,
        "shapes": 0,
    }
    assert "The runs are equal." in str(found)


@pytest.mark.parametrize("name", ["types", "modes", "workers", "devices", "shapes", "hook"])
def test_golden_runs_are_equal_to_themselves(name: str) -> None:
    found = diff(GOLDEN / name, GOLDEN / name)
    assert found.equal
    assert found.compared["tensors"] > 0


def test_a_planted_change_is_named(run: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "b", plant(2, "z/weight", element((30, 7), 100.0)))
    found = diff(run, other)
    assert not found.equal
    assert found.first is not None
    assert (found.first.step, found.first.tensor) == (2, "z/weight")
    assert found.first.kind == "value"
    assert (found.first.differing, found.first.elements) == (1, 5000)
    assert found.first.first_element == found.first.worst_element == 30 * 100 + 7
    assert found.first.b == 100.0
    assert found.first.max_absolute == abs(found.first.a - 100.0)
    assert found.first.mode is modes.TRAIN
    assert [row.tensor for row in found.table] == ["z/weight"]
    assert "z/weight" in repr(found.first)


def test_the_first_difference_follows_the_order_of_writing(run: Path, tmp_path: Path) -> None:
    def change(step: int, tensors: dict[str, Any]) -> None:
        if step >= 1:
            tensors["z/weight"] = tensors["z/weight"] * np.float32(1.001)
            tensors["a/bias"] = tensors["a/bias"] * 2

    found = diff(run, record(tmp_path / "b", change))
    assert found.first is not None
    assert (found.first.step, found.first.tensor) == (1, "z/weight")
    assert [row.tensor for row in found.table] == ["a/bias", "z/weight"]
    assert [row.occurrences for row in found.table] == [3, 3]


def test_nan_is_equal_to_nan_only(tmp_path: Path) -> None:
    with_nan = plant(1, "a/bias", element((3,), math.nan))
    a = record(tmp_path / "a", with_nan)
    assert diff(a, record(tmp_path / "b", with_nan)).equal
    found = diff(a, record(tmp_path / "c"), absolute=1e9)
    assert found.first is not None
    assert (found.first.nan_only_in_a, found.first.nan_only_in_b) == (1, 0)
    assert math.isnan(found.first.a)
    assert found.first.max_relative == math.inf


def test_other_types_and_shapes_are_told(run: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "b", plant(1, "a/bias", lambda x: x.astype(np.float32)))
    found = diff(run, other).first
    assert found is not None
    assert (found.kind, found.a, found.b) == ("dtype", "float64[8]", "float32[8]")
    other = record(tmp_path / "c", plant(1, "a/bias", lambda x: x.reshape(2, 4)))
    found = diff(run, other).first
    assert found is not None
    assert (found.kind, found.a, found.b) == ("shape", "float64[8]", "float64[2, 4]")
    assert "float64[2, 4] in B" in str(diff(run, other))


def test_missing_steps_and_tensors_are_listed(run: Path, tmp_path: Path) -> None:
    def change(step: int, tensors: dict[str, Any]) -> None:
        if step == 1:
            del tensors["a/bias"]
        tensors["new"] = np.ones(2)

    found = diff(run, record(tmp_path / "b", change, steps=3))
    assert not found.equal
    assert found.first is None
    assert found.only_in_a.steps == [(3, modes.TRAIN, 3)]
    assert found.only_in_a.records == [("a/bias", 1, 1)]
    assert found.only_in_b.tensors == ["new"]
    assert found.compared["steps"] == 3
    text = str(found)
    assert "No difference in what both runs hold." in text
    assert "Only in A: 1 step (3 (TRAIN 3)); 1 tensor at some steps (a/bias" in text
    assert "Only in B: 1 tensor (new)" in text


def test_reductions_are_compared(tmp_path: Path) -> None:
    a = record(tmp_path / "a", reductions=True)
    other = record(tmp_path / "b", plant(2, "a/bias", lambda x: x + 1), reductions=True)
    found = diff(a, other)
    assert found.first is not None
    assert (found.first.kind, found.first.tensor, found.first.step) == ("reduction", "a/bias", 2)
    assert found.compared["reductions"] == 4 * 2 * 2
    assert found.table[0].reduction in ("mean", "l2")
    assert found.table[0].occurrences == 1


def test_tolerances_forgive(run: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "b", plant(0, "a/bias", lambda x: x * (1 + 1e-6)))
    assert not diff(run, other).equal
    assert not diff(run, other, relative=1e-7).equal
    assert diff(run, other, relative=1e-5).equal
    assert diff(run, other, absolute=1e-3).equal
    with pytest.raises(SMDebugValueError, match="-1"):
        diff(run, other, absolute=-1.0)


def test_patterns_modes_and_top_narrow_it(run: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "b", lambda _, t: t.update({k: v + 1 for k, v in t.items()}))
    assert diff(run, other, patterns=["^scalar/"]).equal
    assert diff(run, other, mode=modes.EVAL).compared["steps"] == 0
    found = diff(run, other, top=1)
    assert (len(found.table), found.differing_tensors) == (1, 2)
    assert "and 1 more tensors" in str(found)
    with pytest.raises(SMDebugValueError):
        diff(run, other, patterns=["("])


def workers(path: Path, **values: float) -> Path:
    for worker, value in values.items():
        file = _core.StepFile(str(path), 0, worker)
        file.tensor("x", np.full(3, value), modes.TRAIN, 0, 0.0)
        file.close()
        writing.collections(path, worker, len(values))
    return path


def test_workers_are_matched_by_name(tmp_path: Path) -> None:
    a = workers(tmp_path / "a", worker_0=1, worker_1=1)
    b = workers(tmp_path / "b", worker_0=1, worker_1=2, worker_2=3)
    found = diff(a, b)
    assert found.first is not None
    assert found.first.worker == "worker_1"
    assert found.only_in_b.workers == ["worker_2"]
    single = diff(workers(tmp_path / "c", one=1), workers(tmp_path / "d", other=1))
    assert single.equal
    assert single.compared["values"] == 1


def test_progress_may_stop_it(run: Path, tmp_path: Path) -> None:
    other = record(tmp_path / "b")
    calls = []

    def progress(done: int, total: int) -> bool:
        calls.append((done, total))
        return done < 2

    found = diff(run, other, progress=progress)
    assert calls == [(1, 4), (2, 4)]
    assert found.stopped
    assert not found.equal
    assert "stopped" in str(found)
    # Nothing returned is no wish to stop.
    assert diff(run, other, progress=lambda *_: None).equal


def test_an_error_of_the_progress_function_comes_back(run: Path, tmp_path: Path) -> None:
    def progress(done: int, total: int) -> bool:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        diff(run, record(tmp_path / "b"), progress=progress)


def test_only_trials_are_compared() -> None:
    with pytest.raises(SMDebugTypeError, match="not 1"):
        _core.diff_trials(1, 2)


def test_the_text_fits_a_screen_and_the_page_is_escaped(tmp_path: Path) -> None:
    for path, value in ((tmp_path / "a", 1.0), (tmp_path / "b", 2.0)):
        file = _core.StepFile(str(path), 0, "worker_0")
        for i in range(60):
            name = f"<b>{'layer/' * 30}{i}"
            file.tensor(name, np.array([value * (i + 1)]), modes.TRAIN, 0, 0.0)
        file.close()
        writing.collections(path)
    found = diff(tmp_path / "a", tmp_path / "b")
    lines = str(found).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines[5:])) <= 160
    assert repr(found) == str(found)
    page = found._repr_html_()
    assert page.count("<tr>") == 21
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
