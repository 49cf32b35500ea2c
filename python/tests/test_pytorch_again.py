"""Tensors that several modules give: they are read once, and recorded as if they were read each time."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial
from torch import nn

# Smaller tensors are read each time.
ROWS, WIDTH = 64, 512
EVERY_STEP = SaveConfig(save_interval=1)
SIX = ReductionConfig(reductions=["min", "max", "mean", "std"], norms=["l1", "l2"])

Change = Callable[[torch.Tensor], torch.Tensor]


class Wrapper(nn.Module):
    """Gives what its child gives, after a change."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.child = nn.Identity()
        self.change = change

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.change(self.child(x * 2))


class Outer(nn.Module):
    """The wrapper is no root, nor is what follows."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self.wrapper = Wrapper(change)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.wrapper(x)


def keep(tensor: torch.Tensor) -> torch.Tensor:
    """The same."""
    return tensor


def add_in_place(tensor: torch.Tensor) -> torch.Tensor:
    """The same object with other elements."""
    return tensor.add_(1)


def add_to_a_view(tensor: torch.Tensor) -> torch.Tensor:
    """Changed by way of another object."""
    tensor[3:].add_(1)
    return tensor


def swap_data(tensor: torch.Tensor) -> torch.Tensor:
    """Other memory, which the version does not tell."""
    tensor.data = tensor.data + 1
    return tensor


def cut_data(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory, in part."""
    tensor.data = tensor.data[: ROWS // 2]
    return tensor


CHANGES = [keep, add_in_place, add_to_a_view, swap_data, cut_data]


def record(out_dir: Path, change: Change, batches: list[torch.Tensor], **options: Any) -> Any:
    hook = Hook(
        out_dir,
        **{"save_all": True, "save_config": EVERY_STEP, "reduction_config": SIX, **options},
    )
    net = Outer(change)
    hook.register_module(net)
    for batch in batches:
        net(batch)
    hook.close()
    return create_trial(out_dir)


def expect(trial: Any, name: str, step: int, tensor: torch.Tensor) -> None:
    """Reductions are those of the tensor."""
    values = tensor.double().numpy()
    found = trial.tensor(name)
    for reduction, value in (
        ("min", values.min()),
        ("max", values.max()),
        ("mean", values.mean()),
        ("std", values.std()),
    ):
        assert found.reduction_value(step, reduction) == pytest.approx(value, rel=1e-5), name
    assert found.reduction_value(step, "l2") == pytest.approx(np.linalg.norm(values), rel=1e-5)


@pytest.mark.parametrize("change", CHANGES)
def test_each_name_has_the_values_of_its_moment(tmp_path: Path, change: Change) -> None:
    torch.manual_seed(0)
    batches = [torch.randn(ROWS, WIDTH) for _ in range(3)]
    trial = record(tmp_path / "run", change, batches)
    for step, batch in enumerate(batches):
        expect(trial, "wrapper.child_output_0", step, batch * 2)
        given = change(batch * 2)
        expect(trial, "wrapper_output_0", step, given)
        expect(trial, "Outer_output_0", step, given)


def test_what_modules_share_is_recorded_alike(tmp_path: Path) -> None:
    torch.manual_seed(0)
    trial = record(tmp_path / "run", keep, [torch.randn(ROWS, WIDTH)])
    same = ("wrapper.child_input_0", "wrapper.child_output_0", "wrapper_output_0", "Outer_output_0")
    first, *others = (trial.tensor(name).reduction_values(0) for name in same)
    assert len(first) == 6
    assert all(other == first for other in others)


def test_changes_that_pytorch_does_not_count_are_not_seen_within_a_step(tmp_path: Path) -> None:
    """The price of reading once; so this test tells, too, that it is so."""

    def change(tensor: torch.Tensor) -> torch.Tensor:
        tensor.data.add_(1)
        return tensor

    trial = record(tmp_path / "run", change, [torch.zeros(ROWS, WIDTH)])
    outputs = [f"{name}_output_0" for name in ("wrapper.child", "wrapper", "Outer")]
    assert [trial.tensor(name).reduction_value(0, "max") for name in outputs] == [0, 0, 0]


@pytest.mark.parametrize("guard", [torch.inference_mode, torch.no_grad])
def test_forwards_without_gradients_are_recorded(tmp_path: Path, guard: Any) -> None:
    """In inference mode tensors do not count their changes."""
    with guard():
        batch = torch.ones(ROWS, WIDTH)
        trial = record(tmp_path / "run", add_in_place, [batch])
        expect(trial, "wrapper.child_output_0", 0, torch.full((ROWS, WIDTH), 2.0))
        expect(trial, "wrapper_output_0", 0, torch.full((ROWS, WIDTH), 3.0))


def test_a_batch_that_numpy_refills_is_read_in_each_step(tmp_path: Path) -> None:
    memory = np.zeros((ROWS, WIDTH), np.float32)
    batch = torch.from_numpy(memory)

    def batches() -> Any:
        for i in range(3):
            memory[:] = i
            yield batch

    trial = record(tmp_path / "run", keep, batches())
    assert [trial.tensor("Outer_input_0").reduction_value(i, "max") for i in range(3)] == [0, 1, 2]


def test_names_that_want_more_get_more(tmp_path: Path) -> None:
    """Another reduction and the values, of what was reduced before without them."""
    torch.manual_seed(0)
    batch = torch.randn(ROWS, WIDTH)
    hook = Hook(
        tmp_path / "run",
        include_regex=["wrapper.child_output"],
        include_collections=["more"],
        save_config=EVERY_STEP,
        reduction_config=ReductionConfig(reductions=["min"]),
    )
    more = hook.get_collection("more")
    more.include("wrapper_output")
    more.reduction_config = ReductionConfig(reductions=["min", "variance"], save_raw_tensor=True)
    net = Outer(keep)
    hook.register_module(net)
    net(batch)
    hook.close()
    trial = create_trial(tmp_path / "run")
    child = trial.tensor("wrapper.child_output_0")
    wrapper = trial.tensor("wrapper_output_0")
    assert child.reduction_value(0, "min") == wrapper.reduction_value(0, "min")
    assert wrapper.reduction_value(0, "variance") == pytest.approx((batch * 2).numpy().var(), 1e-5)
    assert np.array_equal(wrapper.value(0), (batch * 2).numpy())


def test_the_first_bad_tensor_is_that_of_the_inner_module(tmp_path: Path) -> None:
    batch = torch.ones(ROWS, WIDTH)
    batch[1, 2] = float("nan")
    options = {"save_all": False, "include_regex": ["_output_"]}
    trial = record(tmp_path / "run", keep, [torch.ones(ROWS, WIDTH), batch], **options)
    (bad,) = trial.findings()
    assert (bad["tensor"], bad["module"], bad["step"]) == (
        "wrapper.child_output_0",
        "wrapper.child",
        1,
    )
    assert bad["nan"] == 1
    after = [later["tensor"] for later in bad["after_it"]]
    assert after == ["wrapper_output_0", "Outer_output_0"]


def test_tensors_are_not_kept_alive(tmp_path: Path) -> None:
    hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP, reduction_config=SIX)
    net = Outer(keep)
    hook.register_module(net)
    given = net(torch.ones(ROWS, WIDTH))
    gone = weakref.ref(given)
    del given
    assert gone() is None
    hook.close()
