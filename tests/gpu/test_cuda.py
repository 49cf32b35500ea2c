"""The hook for PyTorch on a CUDA device. `make test-gpu` runs it; `make test` needs no device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial, device
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2] / "python/tests"))

from torch_training import Net, NoHook, batches

STEPS = 200
REDUCTIONS = ["min", "max", "mean", "std", "variance", "sum", "l1", "l2"]


def train(hook, net: nn.Module, steps: int, seen: dict | None = None):
    """The losses of a training on the device; `seen` gets what the modules' outputs were."""
    net = net.cuda()
    loss_of = nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss_of)
    optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
    losses = []
    for step, (x, y) in enumerate(batches(steps, size=64)):
        if seen is not None:
            seen[step] = {name: p.detach().clone() for name, p in net.named_parameters()}
        optimizer.zero_grad()
        loss = loss_of(net(x.cuda()), y.cuda())
        loss.backward()
        if seen is not None:
            for name, p in net.named_parameters():
                if p.grad is not None:
                    seen[step][f"gradient/{name}"] = p.grad.detach().clone()
        optimizer.step()
        losses.append(loss.detach())
    return [float(loss) for loss in losses]


class Wide(nn.Module):
    """Layers whose outputs are changed in place by what follows, and large enough to be slow."""

    def __init__(self, width: int = 1024) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, width)
        self.relu = nn.ReLU(inplace=True)
        self.fc2 = nn.Linear(width, width)
        self.fc3 = nn.Linear(width, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


def same_seed(build):
    torch.manual_seed(3)
    return build()


@pytest.mark.parametrize(
    ("kernels", "room_bytes"),
    [("1", 256 << 20), ("0", 256 << 20), ("0", 1 << 10)],
    ids=["kernels", "without_kernels", "without_kernels_and_room"],
)
def test_raw_values_are_those_of_the_moment(tmp_path, monkeypatch, kernels, room_bytes):
    monkeypatch.setenv("SMDEBUG_DEVICE_KERNELS", kernels)
    monkeypatch.setattr(device, "DEVICE_COPY_BYTES", room_bytes)
    seen: dict = {}
    hook = Hook(str(tmp_path), save_all=True, save_config=SaveConfig(save_interval=1))
    with_hook = train(hook, same_seed(Wide), STEPS, seen)
    hook.close()
    assert with_hook == train(NoHook(), same_seed(Wide), STEPS)
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(range(STEPS))
    wrong = 0
    for step in range(STEPS):
        for name, tensor in seen[step].items():
            gradient = name.startswith("gradient/")
            label = ("gradient/" if gradient else "") + "Wide_" + name.removeprefix("gradient/")
            wrong += int(np.count_nonzero(trial.tensor(label).value(step) != tensor.cpu().numpy()))
        # The output of fc1 before relu changed it, told from the weights.
        x = list(batches(STEPS, size=64))[step][0].cuda() if step % 50 == 0 else None
        if x is not None:
            weights = seen[step]
            before = torch.nn.functional.linear(x, weights["fc1.weight"], weights["fc1.bias"])
            got = trial.tensor("fc1_output_0").value(step)
            assert got.min() < 0
            np.testing.assert_allclose(got, before.cpu().numpy(), rtol=1e-5, atol=1e-6)
    assert wrong == 0


def test_raw_values_that_find_no_room_in_the_ring():
    """The ring of a device is made once in a process, so a small one has a process of its own."""
    same = f"{__file__}::{test_raw_values_are_those_of_the_moment.__name__}[kernels]"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", same],
        env={**os.environ, "SMDEBUG_DEVICE_RING_BYTES": "1024"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_reductions_are_those_of_the_values(tmp_path, dtype):
    names = REDUCTIONS + [f"abs_{name}" for name in REDUCTIONS]
    hook = Hook(
        str(tmp_path),
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(
            reductions=["min", "max", "mean", "std", "variance", "sum"],
            abs_reductions=["min", "max", "mean", "std", "variance", "sum"],
            norms=["l1", "l2"],
            abs_norms=["l1", "l2"],
        ),
    )
    net = same_seed(lambda: Wide(256)).cuda().to(dtype)
    hook.register_module(net)
    seen = {}
    for step in range(3):
        x = torch.randn(64, 3, device="cuda", dtype=dtype)
        seen[step] = {name: p.detach().double().cpu().numpy() for name, p in net.named_parameters()}
        net(x).float().pow(2).mean().backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
        net.zero_grad()
    hook.close()
    trial = create_trial(str(tmp_path))
    for step, tensors in seen.items():
        for name, value in tensors.items():
            tensor = trial.tensor(f"Wide_{name}")
            for reduction in names:
                absolute = reduction.startswith("abs_")
                plain = reduction.removeprefix("abs_")
                got = tensor.reduction_value(step, plain, abs=absolute)
                source = np.abs(value) if absolute else value
                want = {
                    "min": source.min,
                    "max": source.max,
                    "mean": source.mean,
                    "std": source.std,
                    "variance": source.var,
                    "sum": source.sum,
                    "l1": lambda source=source: np.abs(source).sum(),
                    "l2": lambda source=source: np.sqrt((source**2).sum()),
                }[plain]()
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7, err_msg=reduction)


def test_a_network_with_everything_trains_the_same(tmp_path):
    hook = Hook(str(tmp_path), save_all=True, save_config=SaveConfig(save_interval=1))
    with_hook = train(hook, same_seed(Net), 20)
    hook.close()
    assert with_hook == train(NoHook(), same_seed(Net), 20)
    trial = create_trial(str(tmp_path))
    loss = trial.tensor("CrossEntropyLoss_output_0")
    assert [float(loss.value(step)) for step in loss.steps()] == with_hook


def test_scaled_gradients_of_mixed_precision(tmp_path):
    hook = Hook(str(tmp_path), save_all=True, save_config=SaveConfig(save_interval=1))
    net = same_seed(lambda: Wide(256)).cuda()
    hook.register_module(net)
    scaler = torch.amp.GradScaler("cuda")
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    for x, y in batches(10, size=64):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(range(10))
    assert trial.tensor("fc2_output_0").value(3).dtype == np.float16
    assert np.isfinite(trial.tensor("Wide_fc2.weight").value(9)).all()


@pytest.mark.parametrize("raw", [False, True], ids=["reductions", "raw"])
def test_nothing_waits_for_the_device_inside_a_step(tmp_path, raw):
    """PyTorch itself raises when an operation waits for the device."""
    hook = Hook(
        str(tmp_path),
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        reduction_config=None if raw else ReductionConfig(reductions=["min", "max", "mean", "std"]),
    )
    net = same_seed(lambda: Wide(256)).cuda()
    hook.register_module(net)
    x = torch.randn(64, 3, device="cuda")
    net(x).sum().backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        net(x).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    hook.close()
    assert create_trial(str(tmp_path)).steps() == [0, 1]
