"""Tensors that go from callbacks to the core without running Python code."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from smdebug import _core
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial, modes
from smdebug.pytorch import tensors as torch_tensors
from torch import nn

EVERY_STEP = SaveConfig(save_interval=1)


class Pair(nn.Module):
    """Gives two tensors."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x.t()


class Named(nn.Module):
    """Takes a number and gives a dictionary: nothing that goes the short way."""

    def forward(self, x: torch.Tensor, scale: float) -> dict[str, torch.Tensor]:
        return {"once": x * scale, "twice": 2 * x}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.relu = nn.ReLU(inplace=True)
        self.pair = Pair()
        self.named = Named()
        self.embedding = nn.Embedding(4, 3, sparse=True)
        self.small = nn.Linear(3, 3).to(torch.bfloat16)

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.fc(x)) + self.embedding(index)
        one, other = self.pair(self.relu(x))
        found = self.named(one, 0.5)
        # Again, and by keyword: the indices go on.
        found = self.named(found["once"] + other, scale=found["twice"].mean().item())
        return self.small(found["once"].to(torch.bfloat16)).float()


def run(out_dir: Path, exchange: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(torch_tensors, "EXCHANGE_API", exchange)
    torch.manual_seed(0)
    net = Net()
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    hook.register_module(net)
    for _ in range(3):
        net(torch.randn(3, 3), torch.tensor([0, 2, 2])).sum().backward()
        net.zero_grad()
    hook.close()
    return create_trial(out_dir)


def test_both_ways_record_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = torch_tensors.EXCHANGE_API
    assert exchange is not None
    short = run(tmp_path / "short", exchange, monkeypatch)
    long = run(tmp_path / "long", None, monkeypatch)
    assert short.tensor_names() == long.tensor_names()
    for name in ("relu_input_1", "pair_output_1", "named_output_3", "gradient/Net_small.weight"):
        assert name in short.tensor_names()
    for name in short.tensor_names():
        assert short.tensor(name).steps() == long.tensor(name).steps() == [0, 1, 2]
        for step in range(3):
            a, b = short.tensor(name).value(step), long.tensor(name).value(step)
            assert a.dtype == b.dtype and np.array_equal(a, b), name


def test_few_tensors_need_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way is taken, not only allowed."""
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP)
    hook.register_module(net)
    offered: list[str] = []
    save = hook._recorder.save
    monkeypatch.setattr(
        hook._recorder, "save", lambda names, *rest: (offered.extend(names), save(names, *rest))
    )
    net(torch.ones(1, 3)).backward()
    hook.close()
    assert offered == [f"Sequential_{i}.{kind}" for i in (0, 2) for kind in ("weight", "bias")]
    assert len(create_trial(tmp_path / "run").tensor_names()) == 4 + 4 + 6 + 2


class Chain(nn.Module):
    """Its middle layer is called again and again."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.middle = nn.Linear(3, 3)
        self.calls = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        for _ in range(self.calls):
            x = self.middle(x)
        return x


def run_with_changes(out_dir: Path, exchange: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two hooks on a model, while everything changes that decides what is saved."""
    monkeypatch.setattr(torch_tensors, "EXCHANGE_API", exchange)
    torch.manual_seed(0)
    net = Chain()
    few = ReductionConfig(reductions=["min", "max"])
    hook = Hook(out_dir / "one", save_all=True, save_config=EVERY_STEP, reduction_config=few)
    other = Hook(
        out_dir / "other", include_regex=["middle"], save_config=SaveConfig(save_interval=2)
    )
    for one in (hook, other):
        one.register_module(net)

    def exclude_within_the_step(*_: Any) -> None:
        if step == 3:
            for name in ("all", "gradients"):
                hook.get_collection(name).exclude("gradient/.*first.weight")

    net.middle.register_full_backward_hook(exclude_within_the_step)
    size, dtype = 3, torch.float32
    for step in range(12):
        if step == 2:
            hook.get_collection("all").exclude("first_output")
        if step == 4:
            hook.get_collection("all").reduction_config = ReductionConfig(norms=["l2"])
        if step in (5, 6):
            for one in (hook, other):
                one.set_mode(modes.EVAL if step == 5 else modes.TRAIN)
        if step == 7:
            net.calls, size = 3, 5
        if step == 8:
            dtype = torch.float64
            net.to(dtype)
        if step == 9:
            net.last = net.first  # seen under another name, too
        if step == 10:
            other.get_collection("default").include("last")
        net(torch.randn(size, 3, dtype=dtype)).sum().backward()
        net.zero_grad()
    hook.close()
    other.close()
    return [create_trial(out_dir / "one"), create_trial(out_dir / "other")]


def saved_of(trial: Any, name: str, step: int) -> Any:
    """Everything that a step has of a tensor."""
    tensor = trial.tensor(name)
    reductions = tensor.reduction_values(step)
    return reductions or (tensor.value(step).dtype, tensor.value(step).tolist())


def test_both_ways_see_what_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = torch_tensors.EXCHANGE_API
    short = run_with_changes(tmp_path / "short", exchange, monkeypatch)
    long = run_with_changes(tmp_path / "long", None, monkeypatch)
    for a, b in zip(short, long, strict=True):
        assert a.tensor_names() == b.tensor_names()
        for name in a.tensor_names():
            assert a.tensor(name).steps() == b.tensor(name).steps(), name
            for step in a.tensor(name).steps():
                assert saved_of(a, name, step) == saved_of(b, name, step), (name, step)
    one, other = short
    assert one.tensor("first_output_0").steps() == [0, 1]
    assert one.tensor("gradient/Chain_first.weight").steps() == [0, 1, 2]
    assert one.tensor("middle_output_2").steps() == [7, 8, 9, 10, 11]
    assert set(saved_of(one, "middle_output_0", 3)) == {("min", False), ("max", False)}
    assert set(saved_of(one, "middle_output_0", 4)) == {("l2", False)}
    assert other.tensor("middle_output_2").value(8).dtype == np.float64
    assert other.tensor("middle_output_0").value(8).shape == (5, 3)


def test_copies_of_a_callback_do_nothing(tmp_path: Path) -> None:
    hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP)
    net = nn.Sequential(nn.Linear(2, 2))
    hook.register_module(net)
    copies: list[Any] = []

    def look(module: nn.Module, args: Any) -> None:
        (callback,) = module._forward_hooks.values()
        assert isinstance(callback, _core.ModuleCallback) and not callback.is_inert
        copies.extend([copy.copy(callback), copy.deepcopy(callback)])
        copies.append(pickle.loads(pickle.dumps(callback)))

    net[0].register_forward_pre_hook(look)
    net(torch.ones(1, 2))
    assert [made.is_inert for made in copies] == [True] * 3
    copies[0](net[0], (torch.ones(1, 2),), {}, torch.ones(1, 2))
    hook.close()
    assert "0_output_1" not in create_trial(tmp_path / "run").tensor_names()


def test_a_tree_is_the_same_until_a_part_changes() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    tree = _core.ModuleTree()
    assert not tree.is_same(net)
    assert tree.is_same(net)
    changes = [
        lambda: net[1].append(nn.ReLU()),
        lambda: net[0].register_parameter("extra", nn.Parameter(torch.ones(1))),
        lambda: setattr(net[0], "bias", None),
        lambda: setattr(net[0], "weight", nn.Parameter(torch.ones(2, 2))),
        lambda: net[1].pop(1),
        lambda: net[1].__setitem__(0, nn.Linear(2, 2)),
    ]
    for change in changes:
        change()
        assert not tree.is_same(net)
        assert tree.is_same(net)
    net.load_state_dict({key: value + 1 for key, value in net.state_dict().items()})
    assert tree.is_same(net)


def test_a_model_of_another_make_is_never_the_same() -> None:
    scripted = torch.jit.script(nn.Linear(2, 2))
    tree = _core.ModuleTree()
    assert not tree.is_same(scripted)
    assert not tree.is_same(scripted)
    assert not tree.is_same(object())


def test_a_part_that_comes_later_is_recorded(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP)
    hook.register_module(net)
    for step in range(3):
        if step == 2:
            net.append(nn.Linear(2, 1))
        net(torch.ones(1, 2)).sum().backward()
    hook.close()
    trial = create_trial(tmp_path / "run")
    for name in ("Sequential_1.weight", "gradient/Sequential_1.weight", "1_output_0"):
        assert trial.tensor(name).steps() == [2]


def test_a_hook_keeps_no_model_alive(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(2, 2))
    hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP)
    hook.register_module(net)
    net(torch.ones(1, 2)).sum().backward()
    hook.end_step()
    gone = [weakref.ref(net), weakref.ref(net[0]), weakref.ref(net[0].weight)]
    del net
    gc.collect()
    assert [reference() for reference in gone] == [None, None, None]
    hook.close()
