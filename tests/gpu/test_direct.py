"""Callbacks of the core on a CUDA device: they run no Python code, and see what Python would see."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial, device, survey
from smdebug.pytorch.capture import Capture
from torch import nn

TEN = ReductionConfig(
    reductions=["min", "max", "mean", "std", "sum"],
    abs_reductions=["min", "max", "mean"],
    norms=["l1", "l2"],
)


class Branches(nn.Module):
    """Outputs of several kinds: one that is changed in place, a tuple, one that passes through."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 96)
        self.relu = nn.ReLU(inplace=True)
        self.same = nn.Identity()
        self.split = Split()
        self.last = nn.Linear(48, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        left, right = self.split(self.same(self.relu(self.first(x))))
        return self.last(left + right)


class Split(nn.Module):
    """Gives two views with gaps."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x[:, :48], x[:, 48:]


def hook_for(path, reductions=TEN, **options) -> Hook:
    return Hook(
        str(path),
        include_regex=[".*"],
        save_config=SaveConfig(save_interval=1),
        reduction_config=reductions,
        **options,
    )


@pytest.fixture
def slow_calls(monkeypatch) -> list[str]:
    """Names of what callbacks handed to Python."""
    calls: list[str] = []
    after, on_gradient = Capture._after_forward, Capture._on_gradient

    def after_forward(self, name, is_root, *rest):
        if not is_root:
            calls.append(name)
        after(self, name, is_root, *rest)

    def gradient(self, name, *rest):
        calls.append(name)
        on_gradient(self, name, *rest)

    monkeypatch.setattr(Capture, "_after_forward", after_forward)
    monkeypatch.setattr(Capture, "_on_gradient", gradient)
    return calls


@pytest.fixture
def no_waiting(monkeypatch) -> None:
    """Whatever must be waited for is a failure."""

    def refuse(*args, **kwargs):
        raise AssertionError("A tensor was not read by our kernels.")

    monkeypatch.setattr(device, "reduce_together", refuse)
    monkeypatch.setattr(device.DeviceStage, "copy", refuse)


def train(model: nn.Module, steps: int) -> list[dict[str, torch.Tensor]]:
    """What callbacks of PyTorch itself see, step by step."""
    seen: list[dict[str, torch.Tensor]] = []

    def note(name):
        def see(module, args, output):
            outputs = output if isinstance(output, tuple) else (output,)
            for i, value in enumerate(outputs):
                seen[-1][f"{name}_output_{i}"] = value.detach().clone()

        return see

    handles = [m.register_forward_hook(note(n)) for n, m in model.named_modules() if n]
    torch.manual_seed(1)
    for _ in range(steps):
        seen.append({})
        model.zero_grad()
        model(torch.randn(200, 64, device="cuda")).square().mean().backward()
        for name, parameter in model.named_parameters():
            seen[-1][f"gradient/Branches_{name}"] = parameter.grad.clone()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(parameter.grad, alpha=0.1)
    for handle in handles:
        handle.remove()
    return seen


def test_outputs_and_gradients_never_reach_python(tmp_path, slow_calls, no_waiting):
    torch.manual_seed(0)
    model = Branches().cuda()
    hook = hook_for(tmp_path)
    hook.register_module(model)
    want = train(model, 5)
    hook.close()
    # Only the first tensor of a device, which has to be prepared.
    assert len(slow_calls) <= 1, slow_calls
    trial = create_trial(str(tmp_path))
    for step, tensors in enumerate(want):
        for name, tensor in tensors.items():
            values = tensor.double()
            found = trial.tensor(name)
            for label, value in {
                "min": values.min(),
                "max": values.max(),
                "mean": values.mean(),
                "std": values.std(unbiased=False),
                "l2": values.norm(),
            }.items():
                got = float(found.reduction_value(step, label))
                np.testing.assert_allclose(got, value.item(), rtol=1e-5, atol=1e-8, err_msg=name)
    assert hook.dropped_tensors == {}


def test_what_passes_through_is_read_once_and_what_changes_is_not(tmp_path, no_waiting):
    model = nn.Sequential(nn.Linear(64, 64), nn.Identity(), nn.ReLU(inplace=True)).cuda()
    hook = hook_for(tmp_path)
    hook.register_module(model)
    counts = hook._capture.recorder.surveys.direct
    x = torch.randn(32, 64, device="cuda")
    with torch.no_grad():
        model(x)
        before = counts.launches
        model(x)
    hook.close()
    # Parameters; the input of the linear layer, which has waited; its output, which the ReLU will
    # change; what the ReLU takes and has made, which is the output of the model as well. The
    # identity gives what it takes.
    assert counts.launches - before == 4
    trial = create_trial(str(tmp_path))
    assert trial.tensor("1_output_0").reduction_value(1, "min") < 0
    assert trial.tensor("2_output_0").reduction_value(1, "min") == 0


def test_inference_mode_has_no_counts_of_changes(tmp_path, no_waiting):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(inplace=True)).cuda()
    hook = hook_for(tmp_path)
    hook.register_module(model)
    with torch.inference_mode():
        for _ in range(2):
            out = model(torch.randn(32, 64, device="cuda"))
    hook.close()
    found = create_trial(str(tmp_path)).tensor("1_output_0").reduction_value(1, "max")
    np.testing.assert_allclose(found, out.max().item(), rtol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32])
def test_medians_and_products_come_from_a_copy_in_the_background(tmp_path, no_waiting, dtype):
    wanted = ReductionConfig(reductions=["median", "prod", "mean"])
    hook = hook_for(tmp_path, wanted)
    values = torch.ones(301, device="cuda", dtype=dtype)
    values[::20] = 3  # the product fits into every type
    torch.cuda.set_sync_debug_mode("error")
    try:
        for step in range(3):
            hook.begin_step()
            hook.save("x", values + step)
            hook.end_step()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    hook.close()
    found = create_trial(str(tmp_path)).tensor("x")
    for step in range(3):
        x = (values + step).cpu().to(torch.float64).numpy()
        np.testing.assert_allclose(found.reduction_value(step, "median"), np.median(x))
        np.testing.assert_allclose(found.reduction_value(step, "mean"), np.mean(x), rtol=1e-6)
    want = np.prod(values.cpu().to(torch.float64).numpy())
    np.testing.assert_allclose(float(found.reduction_value(0, "prod")), want, rtol=1e-5)


def test_complex_numbers_come_from_a_copy_in_the_background(tmp_path, no_waiting):
    hook = hook_for(tmp_path, ReductionConfig(norms=["l1", "l2"], abs_reductions=["max"]))
    z = torch.randn(1000, device="cuda", dtype=torch.complex64)
    hook.begin_step()
    hook.save("z", z)
    hook.end_step()
    hook.close()
    found = create_trial(str(tmp_path)).tensor("z")
    np.testing.assert_allclose(found.reduction_value(0, "l2"), z.norm().item(), rtol=1e-5)
    np.testing.assert_allclose(
        found.reduction_value(0, "max", abs=True), z.abs().max().item(), rtol=1e-6
    )


def test_raw_gradients_are_copied_without_python(tmp_path, slow_calls, no_waiting):
    torch.manual_seed(0)
    model = Branches().cuda()
    hook = Hook(
        str(tmp_path),
        include_collections=["weights", "gradients"],
        save_config=SaveConfig(save_interval=1),
    )
    hook.register_module(model)
    want = train(model, 3)
    hook.close()
    assert len(slow_calls) <= 1, slow_calls
    trial = create_trial(str(tmp_path))
    for step, tensors in enumerate(want):
        for name, tensor in tensors.items():
            if name.startswith("gradient/") and not name.endswith("bias"):
                np.testing.assert_array_equal(trial.tensor(name).value(step), tensor.cpu().numpy())


def test_tensors_that_are_freed_at_once_keep_their_values(tmp_path, no_waiting):
    """The memory of each is given to the next one, which overwrites it."""
    hook = hook_for(tmp_path)
    hook.begin_step()
    for i in range(64):
        hook.save(f"x{i}", torch.full((1 << 20,), float(i), device="cuda"))
        torch.full((1 << 20,), -1.0, device="cuda")
    hook.end_step()
    hook.close()
    trial = create_trial(str(tmp_path))
    for i in range(64):
        found = trial.tensor(f"x{i}")
        assert found.reduction_value(0, "min") == found.reduction_value(0, "max") == i


def test_parts_of_sharded_models_are_read_where_they_are(tmp_path, no_waiting):
    from torch import distributed
    from torch.distributed.fsdp import fully_shard

    distributed.init_process_group(
        "nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        torch.manual_seed(0)
        model = Branches().cuda()
        fully_shard(model.first)
        fully_shard(model)
        name = type(model).__name__  # sharding gives the model a type of its own
        hook = hook_for(tmp_path / "run")
        hook.register_module(model)
        want: list[dict[str, float]] = []
        for _ in range(3):
            weights = {
                f"{name}_{n}": p.to_local().double().norm() for n, p in model.named_parameters()
            }
            model.zero_grad()
            model(torch.randn(200, 64, device="cuda")).square().mean().backward()
            gradients = {
                f"gradient/{name}_{n}": p.grad.to_local().double().norm()
                for n, p in model.named_parameters()
            }
            want.append({n: value.item() for n, value in (weights | gradients).items()})
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad, alpha=0.1)
        hook.close()
    finally:
        distributed.destroy_process_group()
    trial = create_trial(str(tmp_path / "run"))
    for step, norms in enumerate(want):
        for tensor, norm in norms.items():
            found = trial.tensor(tensor).reduction_value(step, "l2")
            np.testing.assert_allclose(found, norm, rtol=1e-5, err_msg=tensor)


def shown(folder) -> list[bytes]:
    """What TensorBoard is told, without the times."""
    out = []
    for path in sorted(folder.rglob("*tfevents*")):
        data = path.read_bytes()
        while data:
            size = int.from_bytes(data[:8], "little")
            record, data = data[12 : 12 + size], data[16 + size :]
            out.append(record[9:])
    return out


def test_histograms_are_those_of_the_host_and_nobody_waits_for_them(tmp_path, no_waiting):
    boards = {}
    for place in ("cpu", "cuda"):
        torch.manual_seed(0)
        net = Branches().to(place)
        hook = Hook(
            str(tmp_path / place / "run"),
            tensorboard_dir=str(tmp_path / place / "board"),
            include_collections=["weights", "biases"],
            save_config=SaveConfig(save_interval=1),
            reduction_config=ReductionConfig(reductions=["max"]),
        )
        hook.register_module(net)
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(3):
                net(torch.ones(4, 64, device=place))
        finally:
            torch.cuda.set_sync_debug_mode("default")
        hook.close()
        boards[place] = shown(tmp_path / place / "board")
    assert len(boards["cuda"]) > 3 * 4
    assert boards["cuda"] == boards["cpu"]


class Tower(nn.Module):
    """Layers of which the first one's output is changed when somebody says so."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(12))
        self.changes = False
        self.factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i == 0 and self.changes:
                x.mul_(2)
            if i == 5:
                x = x * self.factor
        return x


@pytest.mark.parametrize("held_bytes", [100_000, 1 << 30], ids=["beside", "at_the_end"])
def test_outputs_that_nobody_changes_share_a_launch(
    tmp_path, no_waiting, caplog, monkeypatch, held_bytes
):
    monkeypatch.setattr(survey, "HELD_BYTES", held_bytes)
    net = Tower().cuda()
    hook = hook_for(tmp_path / "run")
    hook.register_module(net)
    direct = hook._capture.recorder.surveys.direct
    launches, expected = [], []
    for step in range(6):
        before = direct.launches
        net.changes = step >= 3
        x = torch.randn(64, 64, device="cuda")
        with torch.no_grad():
            seen = [x]
            for layer in net.layers:
                seen.append(nn.functional.linear(seen[-1], layer.weight, layer.bias))
                if net.changes and len(seen) == 2:
                    seen[-1] = seen[-1] * 2
            expected.append([float(value.abs().max()) for value in seen[1:]])
        net(x).sum().backward()
        launches.append(direct.launches - before)
    hook.close()
    assert launches[0] > 12  # one by one, to see whether they could wait
    assert launches[1] == launches[2] < 12
    trial = create_trial(str(tmp_path / "run"))
    # The one that was changed for the first time is not saved, and never waits again.
    changed = trial.tensor("layers.0_output_0")
    assert changed.steps() == [0, 1, 2, 4, 5]
    assert "'layers.0_output_0' cannot be saved: it was changed" in caplog.text
    for i in range(12):
        tensor = trial.tensor(f"layers.{i}_output_0")
        assert tensor.steps() == (changed.steps() if i == 0 else list(range(6)))
        for step in tensor.steps():
            halves = 2 if i == 0 and step >= 3 else 1
            found = halves * float(tensor.reduction_value(step, "max", abs=True))
            assert found == pytest.approx(expected[step][i], rel=1e-4)


def test_the_first_bad_output_is_named_although_outputs_wait(tmp_path, no_waiting, caplog):
    net = Tower().cuda()
    hook = hook_for(tmp_path / "run")
    hook.register_module(net)
    for step in range(4):
        net.changes = step >= 2
        net.factor = float("nan") if step == 3 else 1.0
        net(torch.randn(8, 64, device="cuda")).sum().backward()
    hook.close()
    assert "First non-finite value of the training: 'layers.6_input_0'" in caplog.text


def test_outputs_that_wait_do_not_change_the_training(tmp_path):
    found = []
    for recorded in (False, True):
        torch.manual_seed(3)
        net = Tower(256).cuda()
        optimizer = torch.optim.Adam(net.parameters(), 1e-3)
        if recorded:
            hook = hook_for(tmp_path / "run")
            hook.register_module(net)
        for _ in range(8):
            optimizer.zero_grad()
            net(torch.randn(128, 256, device="cuda")).square().mean().backward()
            optimizer.step()
        found.append([p.detach().cpu().numpy().tobytes() for p in net.parameters()])
    hook.close()
    assert found[0] == found[1]
