"""What the hook does with tensors on devices, as far as it can be tried without one.

Reductions on a device are the same operations on the CPU. The queue of copies runs with tensors of
the CPU here; streams, events and pinned memory need a GPU.
"""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch
from smdebug import _core
from smdebug.pytorch import Hook, ReductionConfig, batched, courier, create_trial
from smdebug.pytorch import held as held_gradients
from smdebug.pytorch.batched import ROW
from smdebug.pytorch.device import DeviceStage, can_reduce, reduce_together
from smdebug.pytorch.held import HeldGradients
from torch_training import EVERY_STEP, saved

NAMES = [name for name, _ in _core.reduction_names()]
REDUCTIONS = NAMES + [f"abs_{name}" for name in NAMES]


def values() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 5, generator=generator)
    nan = x.clone()
    nan[2, 3] = float("nan")
    inf = x.clone()
    inf[0, 0] = float("inf")
    return {
        "float32": x,
        "float64": x.double(),
        "float16": x.half(),
        "bfloat16": x.bfloat16(),
        "strided": x.T[::2],
        "even": x[:2, :2],
        "one": x[0, 0],
        "nan": nan,
        "inf": inf,
    }


def reduced_by_core(tensor: torch.Tensor, out_dir: Path) -> dict[str, float]:
    norms = [name for name in NAMES if name in ("l1", "l2")]
    others = [name for name in NAMES if name not in norms]
    config = ReductionConfig(others, others, norms, norms)
    hook = Hook(out_dir, reduction_config=config, save_all=True, save_config=EVERY_STEP)
    with hook.step():
        hook.save("x", tensor)
    hook.close()
    found = create_trial(str(out_dir)).tensor("x").reduction_values(0)
    return {f"abs_{n}" if absolute else n: float(v) for (n, absolute), v in found.items()}


@pytest.mark.parametrize("kind", values())
def test_reductions_on_a_device_are_those_of_the_core(out_dir: Path, kind: str) -> None:
    tensor = values()[kind]
    expected = reduced_by_core(tensor, out_dir)
    assert can_reduce(tensor, REDUCTIONS) and set(expected) == set(REDUCTIONS)
    found = dict(zip(REDUCTIONS, reduce_together([(tensor, REDUCTIONS)]).tolist(), strict=True))
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=1e-5, abs=1e-6, nan_ok=True), name


def test_only_floating_tensors_with_elements_are_reduced_there() -> None:
    assert not can_reduce(torch.ones(3, dtype=torch.int64), ["min"])
    assert not can_reduce(torch.ones(0), ["min"])
    assert not can_reduce(torch.ones(3, dtype=torch.complex64), ["abs_min"])
    assert not can_reduce(torch.ones(3), ["entropy"])


def test_many_tensors_become_one_vector() -> None:
    x, y = torch.arange(4.0), torch.arange(6.0)
    vector = reduce_together([(x, ["min", "max"]), (y, ["sum"])])
    assert vector.tolist() == [0.0, 3.0, 15.0] and vector.dtype == torch.float64


def test_what_cannot_be_queued_is_saved_at_once(out_dir: Path) -> None:
    """As on devices that have neither streams nor page-locked memory."""
    seen: list[Any] = []
    hook = Hook(out_dir, reduction_config=ReductionConfig(["min", "max"]), save_all=True)
    stage = DeviceStage(hook._core, lambda *args: seen.append(args))
    x = torch.arange(4.0)
    with hook.step():
        assert not stage.is_capturing()
        stage.reduce([("a", x, ["min", "max"]), ("b", x.double(), ["max"])])
        stage.copy("c", x, _core.Kind.loss)
    hook.close()
    assert [(name, tensor.tolist(), kind) for name, tensor, kind in seen] == [
        ("c", [0.0, 1.0, 2.0, 3.0], _core.Kind.loss)
    ]
    trial = create_trial(str(out_dir))
    assert float(trial.tensor("a").reduction_value(0, "max")) == 3
    assert float(trial.tensor("b").reduction_value(0, "max")) == 3


class Event:
    """Comes when the test says so; or the device fails."""

    def __init__(self, error: str = "") -> None:
        self.come = threading.Event()
        self.error = error

    def synchronize(self) -> None:
        assert self.come.wait(30)
        if self.error:
            raise RuntimeError(self.error)


def test_a_courier_waits_for_each_and_keeps_the_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(courier, "IDLE_SECS", 0.01)
    messenger = courier.Courier()
    for turn in range(3):  # its thread ends meanwhile, and begins again
        arrived: SimpleQueue[str] = SimpleQueue()
        events = [Event(), Event("The device is gone."), Event()]
        for i, event in enumerate(events):
            messenger.send(event, partial(arrived.put, f"{i}"), arrived.put)
        events[2].come.set()
        events[1].come.set()
        assert arrived.empty()
        events[0].come.set()
        found = [arrived.get(timeout=30) for _ in events]
        assert found == ["0", "The device is gone.", "2"], turn
        for thread in threading.enumerate():
            if thread.name == "smdebug-courier":
                thread.join(30)
                assert not thread.is_alive()


def test_a_hook_stores_numbers_and_shapes_that_were_computed_elsewhere(out_dir: Path) -> None:
    config = ReductionConfig(["min", "mean"], save_shape=True)
    hook = Hook(out_dir, reduction_config=config, save_all=True, save_config=EVERY_STEP)
    with hook.step():
        core = hook._core
        assert _core.wanted(core, "x") == (False, True, ["mean", "min"])
        _core.save_shape(core, "x", [3, 2])
        _core.save_reductions(core, "x", {"min": -1.5, "mean": 2.5, "max": 9.0}, "float16")
        for wrong in ("int32", "float9"):
            with pytest.raises(ValueError, match=wrong):
                _core.save_reductions(core, "x", {"min": 1.0}, wrong)
    hook.close()
    tensor = create_trial(str(out_dir)).tensor("x")
    assert tensor.shape(0) == (3, 2)
    found = tensor.reduction_values(0)
    assert {key: float(value) for key, value in found.items()} == {  # nobody wanted max
        ("min", False): -1.5,
        ("mean", False): 2.5,
    }
    assert all(np.asarray(value).dtype == np.float32 for value in found.values())


def test_a_tensor_of_another_device_goes_through_the_queue(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core refuses every tensor once, as it does with memory that it cannot read."""
    hook = Hook(
        out_dir,
        reduction_config=ReductionConfig(["max"]),
        save_all=True,
        save_config=EVERY_STEP,
    )
    with hook.step():
        recorder = hook._recorder
        reduced: list[str] = []
        reduce = recorder._device.reduce

        def noting(wanted: list[Any]) -> None:
            reduced.extend(item[0] for item in wanted)
            reduce(wanted)

        monkeypatch.setattr(recorder._device, "reduce", noting)
        kind = _core.Kind.automatic
        pairs = [("reduced", torch.arange(3.0)), ("whole", torch.arange(3))]
        recorder._queue(pairs, kind, in_backward=False)
        recorder._queue([("a_loss", torch.ones(()))], _core.Kind.loss, in_backward=False)
        assert reduced == ["reduced"]
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor("reduced").reduction_value(0, "max") == 2.0
    assert trial.tensor("whole").reduction_value(0, "max") == 2
    assert saved(trial, "a_loss") == 1.0


DTYPES = ["float32", "float64", "float16", "bfloat16", "float8_e5m2"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("together", [batched.TOGETHER, 3000], ids=["whole", "in_pieces"])
def test_tensors_of_all_sizes_are_reduced_together(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, together: int
) -> None:
    monkeypatch.setattr(batched, "TOGETHER", together)
    generator = torch.Generator().manual_seed(1)
    sizes = [1, 2, ROW - 1, ROW, ROW + 1, 5 * ROW, 7, 3 * ROW + 5, 20_001]
    tensors = [
        (torch.randn(n, generator=generator) * 3 + 5 * i).to(getattr(torch, dtype))
        for i, n in enumerate(sizes)
    ]
    names = [name for name in REDUCTIONS if not name.endswith(("prod", "median"))]
    found = iter(reduce_together([(tensor, names) for tensor in tensors]).tolist())
    for i, tensor in enumerate(tensors):
        expected = reduced_by_core(tensor, out_dir / str(i))
        for name in names:
            assert next(found) == pytest.approx(expected[name], rel=1e-6), (name, sizes[i])


def test_deviations_that_are_small_beside_the_mean_keep_their_digits(out_dir: Path) -> None:
    generator = torch.Generator().manual_seed(1)
    tensor = 1000 + torch.randn(3 * ROW + 9, generator=generator) * 1e-3
    expected = reduced_by_core(tensor, out_dir)
    names = ["std", "variance", "abs_std"]
    found = reduce_together([(tensor, names)]).tolist()
    assert found == pytest.approx([expected[name] for name in names], rel=1e-5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("at", [0, ROW, 2 * ROW + 3], ids=["first", "second_row", "rest"])
def test_what_is_not_finite_stays_with_its_tensor(out_dir: Path, bad: float, at: int) -> None:
    tensors = [torch.arange(2.0 * ROW + 5) for _ in range(3)]
    tensors[1][at] = bad
    names = [name for name in REDUCTIONS if not name.endswith(("prod", "median"))]
    found = iter(reduce_together([(tensor, names) for tensor in tensors]).tolist())
    for i, tensor in enumerate(tensors):
        expected = reduced_by_core(tensor, out_dir / str(i))
        for name in names:
            assert next(found) == pytest.approx(expected[name], rel=1e-6, nan_ok=True), (i, name)


def _change(gradient: torch.Tensor) -> None:
    gradient.mul_(0)


class Backward:
    """Two gradients that are held in a backward, whose second one a later callback may change."""

    def __init__(self, held: HeldGradients) -> None:
        self.held = held
        self.released: list[Any] = []
        self.weights = [torch.ones(3, requires_grad=True), torch.ones(4, requires_grad=True)]
        for i, weight in enumerate(self.weights):
            weight.register_hook(lambda g, i=i: self._see(i, g))

    def _see(self, number: int, gradient: torch.Tensor) -> None:
        self.released.append(self.held.hold(f"w{number}", gradient, self._ended))

    def _ended(self) -> None:
        steady, changed = self.held.release()
        self.released.append(({name: g.tolist() for name, g in steady}, changed))

    def run(self, changes: bool = False) -> list[Any]:
        self.released.clear()
        if changes:
            self.weights[1].register_hook(_change)
        ((2 * self.weights[0]).sum() + (3 * self.weights[1]).sum()).backward()
        return self.released


def test_gradients_wait_until_backward_ends() -> None:
    held = HeldGradients()
    backward = Backward(held)
    for _ in range(2):
        assert backward.run() == [True, True, ({"w0": [2.0] * 3, "w1": [3.0] * 4}, [])]
        assert not held
    assert backward.weights[0].grad is not None  # accumulation has gone on
    assert not held.hold("w", torch.ones(2), lambda: None)  # nobody says when to read it


def test_a_gradient_that_is_changed_while_it_waits_is_told_and_none_waits_again() -> None:
    backward = Backward(HeldGradients())
    assert backward.run(changes=True) == [True, True, ({"w0": [2.0] * 3}, ["w1"])]
    assert backward.run() == [False, False]


def test_gradients_do_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held_gradients, "HELD_BYTES", 12)
    seen = [item[0] for item in Backward(HeldGradients()).run() if item is not True]
    assert [gradients for gradients in seen if gradients] == [{"w1": [3.0] * 4}, {"w0": [2.0] * 3}]


def test_each_tensor_gets_what_was_asked_of_it() -> None:
    x, y = torch.arange(6.0), torch.arange(4.0).double()
    wanted = [(x, ["median", "max"]), (y, ["min", "prod"]), (x + 1, ["max", "mean"]), (y, ["max"])]
    assert reduce_together(wanted).tolist() == [2.5, 5.0, 0.0, 0.0, 6.0, 3.5, 3.0]


def test_a_list_takes_a_few_operations_whatever_its_length() -> None:
    """The names of operations that PyTorch runs, apart from those that only look at a tensor."""
    names = ["min", "max", "mean", "std", "l1", "l2"]

    def operations(count: int) -> int:
        tensors = [torch.ones(5000) for _ in range(count)]
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            reduce_together([(tensor, names) for tensor in tensors])
        views = ("reshape", "view", "slice", "detach", "as_strided", "alias", "select", "unbind")
        return sum(e.count for e in seen.key_averages() if not any(v in e.key for v in views))

    operations(2)
    assert operations(60) < 1.2 * operations(6)
