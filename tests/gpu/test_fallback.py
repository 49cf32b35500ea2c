"""A CUDA device without our kernels: PyTorch's own operations find the same, for many tensors at once."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from busy_device import a_busy_device
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, courier, create_trial, recorder
from torch import nn

NAMES = ["min", "max", "mean", "std", "sum"]
TEN = ReductionConfig(reductions=NAMES, abs_reductions=["min", "max", "mean"], norms=["l1", "l2"])


def same_net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(64, 512), nn.ReLU(inplace=True), nn.Linear(512, 512), nn.Linear(512, 2)
    ).cuda()


def train(path, steps: int = 4, **options) -> tuple[list[bytes], Hook]:
    """The parameters at the end; gradients are accumulated over two steps, and clipped."""
    net = same_net()
    hook = Hook(
        str(path),
        **{
            "include_regex": [".*"],
            "save_config": SaveConfig(save_interval=1),
            "reduction_config": TEN,
            **options,
        },
    )
    hook.register_module(net)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(steps, 128, 64, device="cuda")
    for step in range(steps):
        net(x[step]).square().mean().backward()
        if step % 2 == 1:
            nn.utils.clip_grad_norm_(net.parameters(), 1e-2)
            optimizer.step()
            optimizer.zero_grad()
    hook.close()
    return [p.detach().cpu().numpy().tobytes() for p in net.parameters()], hook


def test_the_results_are_those_of_our_kernels(tmp_path, monkeypatch):
    parameters, hook = train(tmp_path / "kernels")
    lists = []
    reduce = recorder.DeviceStage.reduce
    monkeypatch.setattr(
        recorder.DeviceStage,
        "reduce",
        lambda stage, wanted: (lists.append(len(wanted)), reduce(stage, wanted))[1],
    )
    monkeypatch.setenv("SMDEBUG_DEVICE_KERNELS", "0")
    torch.manual_seed(3)
    without, other = train(tmp_path / "without")
    assert without == parameters
    assert other.dropped_tensors == hook.dropped_tensors == {}
    ours, theirs = (create_trial(str(tmp_path / run)) for run in ("kernels", "without"))
    assert theirs.tensor_names() == ours.tensor_names()
    assert max(lists) == 6  # parameters in one list, and gradients in another
    assert lists.count(6) >= 2 * 4
    for name in ours.tensor_names():
        for step in ours.tensor(name).steps():
            found = theirs.tensor(name).reduction_values(step)
            for key, value in ours.tensor(name).reduction_values(step).items():
                near = pytest.approx(float(value), rel=1e-5, abs=1e-7)
                assert float(found[key]) == near, (name, step, key)


def test_nobody_waits_for_values(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_DEVICE_KERNELS", "0")
    net, loss_of = same_net(), nn.CrossEntropyLoss()
    hook = Hook(
        str(tmp_path),
        include_collections=["losses", "weights", "gradients"],
        save_config=SaveConfig(save_interval=1),
    )
    hook.register_module(net)
    hook.register_loss(loss_of)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    x = torch.randn(128, 64, device="cuda")
    y = torch.zeros(128, dtype=torch.long, device="cuda")
    losses, weights = [], []

    def step() -> None:
        optimizer.zero_grad()
        weights.append(net[0].weight.detach().clone())
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())

    step()
    step()  # memory is locked when it is first needed
    with a_busy_device():
        for _ in range(3):
            step()
    hook.close()
    assert hook.dropped_tensors == {}
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(range(5))
    found = trial.tensor("CrossEntropyLoss_output_0")
    assert [float(found.value(at)) for at in range(5)] == [float(loss) for loss in losses]
    tensor = trial.tensor("Sequential_0.weight")
    for at in range(5):
        np.testing.assert_array_equal(tensor.value(at), weights[at].cpu().numpy())


def test_a_nan_that_is_waited_for_starts_saving(tmp_path, monkeypatch):
    monkeypatch.setenv("SMDEBUG_DEVICE_KERNELS", "0")
    monkeypatch.setattr(courier, "IDLE_SECS", 0.01)
    net = same_net()
    saving = SaveConfig(save_interval=100, start_step=100, when_nan=["Sequential_2.weight"])
    hook = Hook(
        str(tmp_path),
        include_collections=["weights"],
        save_config=saving,
        reduction_config=ReductionConfig(reductions=["min"]),
    )
    hook.register_module(net)
    for step in range(6):
        if step == 3:
            with torch.no_grad():
                net[2].weight[5, 5] = float("nan")
        net(torch.randn(128, 64, device="cuda"))
        for thread in threading.enumerate():  # so that the values have come when the next begins
            if thread.name == "smdebug-courier":
                thread.join()
    hook.close()
    assert create_trial(str(tmp_path)).steps() == [4]
