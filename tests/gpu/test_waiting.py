"""What a hook may be asked for beside statistics, on a CUDA device: nobody waits for it either."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from busy_device import a_busy_device
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial, device
from torch import nn

EVERY = SaveConfig(save_interval=1)


@pytest.fixture(autouse=True)
def no_slow_way(monkeypatch) -> None:
    """Our kernels and copies do all of it."""

    def refuse(*args, **kwargs):
        raise AssertionError("A tensor went another way.")

    monkeypatch.setattr(device, "reduce_together", refuse)
    monkeypatch.setattr(device.DeviceStage, "copy", refuse)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 256)
        self.second = nn.Linear(256, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def same_net() -> Net:
    torch.manual_seed(5)
    return Net().cuda()


def train(
    hook: Hook, steps: int, ends: Callable[[int], None] = lambda step: None
) -> list[torch.Tensor]:
    """Losses of a training that the device falls behind in after its first step."""
    net, loss_of = same_net(), nn.CrossEntropyLoss()
    hook.register_module(net)
    hook.register_loss(loss_of)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2, fused=True)
    x = torch.randn(128, 64, device="cuda")
    y = torch.zeros(128, dtype=torch.long, device="cuda")
    losses = []

    def step(number: int) -> None:
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        ends(number)

    step(0)  # compiles the kernels
    with a_busy_device():
        for number in range(1, steps):
            step(number)
    return losses


def test_losses_that_rules_and_curves_show(tmp_path):
    """An output beside the run gets the loss of each step."""
    hook = Hook(
        str(tmp_path / "run"),
        tensorboard_dir=str(tmp_path / "board"),
        include_collections=["losses"],
        save_config=EVERY,
        rules=["LossNotDecreasing"],
    )
    losses = train(hook, 5)
    hook.close()
    found = create_trial(str(tmp_path / "run")).tensor("CrossEntropyLoss_output_0")
    assert [float(found.value(step)) for step in range(5)] == [float(loss) for loss in losses]
    board = b"".join(path.read_bytes() for path in (tmp_path / "board").rglob("*tfevents*"))
    assert board.count(b"CrossEntropyLoss_output_0") >= 5
    for loss in losses:
        assert np.float32(loss.item()).tobytes() in board


def test_raw_values_that_are_watched_for_a_nan(tmp_path):
    hook = Hook(
        str(tmp_path / "run"),
        include_collections=["weights"],
        save_config=SaveConfig(save_interval=1, when_nan=["Net_first.weight"]),
    )
    train(hook, 4)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("Net_first.weight").steps() == [0, 1, 2, 3]
    want = same_net().first.weight.detach().cpu().numpy()
    np.testing.assert_array_equal(trial.tensor("Net_first.weight").value(0), want)


def test_raw_values_that_a_flight_recorder_keeps(tmp_path):
    hook = Hook(
        str(tmp_path / "run"),
        include_collections=["weights"],
        save_config=SaveConfig(save_interval=1000),
        flight_recorder=8,
        flight_recorder_raw=True,
    )
    seen: list[torch.Tensor] = []
    net = None

    def note(step: int) -> None:
        nonlocal net
        net = net or next(root.module() for root in hook._capture.roots)
        seen.append(net.first.weight.detach().clone())

    train(hook, 4, note)
    hook.dump_flight_recorder("to see what it holds")
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    found = trial.tensor("Net_first.weight")
    assert found.steps() == [0, 1, 2, 3]
    for step in (1, 2, 3):  # the weights of a step are those after the one before
        np.testing.assert_array_equal(found.value(step), seen[step - 1].cpu().numpy())


def test_raw_values_that_grow_from_step_to_step(tmp_path):
    """More memory of the host is locked while the device is busy."""
    net = same_net()
    inputs = [torch.randn(rows, 64, device="cuda") for rows in (128, 1024, 8192, 65536, 1000)]
    hook = Hook(str(tmp_path / "run"), include_regex=["first_output"], save_config=EVERY)
    with torch.no_grad():
        want = [net.first(x) for x in inputs]
        for x in inputs:
            net(x)  # PyTorch has the memory from now on
        hook.register_module(net)
        net(inputs[0])
        with a_busy_device():
            for x in inputs[1:]:
                net(x)
    hook.close()
    found = create_trial(str(tmp_path / "run")).tensor("first_output_0")
    assert found.steps() == list(range(len(inputs)))
    for step, values in enumerate(want):
        np.testing.assert_array_equal(found.value(step), values.cpu().numpy())


@pytest.mark.parametrize("raw", [False, True], ids=["statistics", "raw"])
def test_unscaled_gradients_of_updates_that_a_fused_optimizer_may_skip(tmp_path, raw):
    hook = Hook(
        str(tmp_path / "run"),
        include_collections=["gradients"],
        save_config=EVERY,
        reduction_config=None if raw else ReductionConfig(norms=["l2"]),
        gradient_source="optimizer",
    )
    net = same_net()
    hook.register_module(net)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    optimizer = torch.optim.AdamW(net.parameters(), 1e-3, fused=True)
    x = torch.randn(128, 64, device="cuda")
    factors = [torch.tensor(f, device="cuda") for f in (1.0, 1.0, float("inf"), 1.0, 1.0)]
    want: list[torch.Tensor] = []

    def step(number: int) -> None:
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = net(x).float().square().mean()
        scaler.scale(loss * factors[number]).backward()
        want.append(net.first.weight.grad / scaler._scale)
        scaler.step(optimizer)
        scaler.update()

    step(0)  # compiles the kernels
    with a_busy_device():
        for number in range(1, 5):
            step(number)
    hook.close()
    trial = create_trial(str(tmp_path / "run"))
    found = trial.tensor("gradient/Net_first.weight")
    assert found.steps() == [0, 1, 3, 4]  # the update of step 2 was skipped
    for at in found.steps():
        if raw:
            np.testing.assert_allclose(found.value(at), want[at].cpu().numpy(), rtol=1e-6)
        else:
            got = float(found.reduction_value(at, "l2"))
            assert got == pytest.approx(want[at].double().norm().item(), rel=1e-5)


def test_a_model_that_is_compiled_to_cuda_graphs(tmp_path):
    """The mode in which PyTorch replays graphs, whose memory is used again and again."""
    import torch._dynamo

    torch._dynamo.reset()
    hook = Hook(
        str(tmp_path / "run"),
        include_collections=["weights", "biases", "gradients"],
        save_config=EVERY,
        reduction_config=ReductionConfig(reductions=["min", "max"], norms=["l2"]),
    )
    net = same_net()
    compiled = torch.compile(net, mode="reduce-overhead")
    hook.register_module(compiled)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    x = torch.randn(128, 64, device="cuda")
    want: list[dict[str, torch.Tensor]] = []
    for _ in range(8):
        optimizer.zero_grad()
        parameters = {f"OptimizedModule_{n}": p for n, p in compiled.named_parameters()}
        norms = {name: p.detach().double().norm() for name, p in parameters.items()}
        compiled(x).square().mean().backward()
        for name, p in parameters.items():
            norms[f"gradient/{name}"] = p.grad.double().norm()
        want.append(norms)
        optimizer.step()
    hook.close()
    assert hook.dropped_tensors == {}
    trial = create_trial(str(tmp_path / "run"))
    for step, norms in enumerate(want):
        for name, norm in norms.items():
            found = float(trial.tensor(name).reduction_value(step, "l2"))
            assert found == pytest.approx(norm.item(), rel=1e-5), (step, name)
