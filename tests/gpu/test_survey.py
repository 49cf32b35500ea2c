"""Statistics by our own kernels on a CUDA device: values, streams, graphs, and that nobody waits."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch
from smdebug import _core
from smdebug.pytorch import (
    Hook,
    ReductionConfig,
    SaveConfig,
    create_trial,
    device,
    survey,
)
from torch import nn

FLOATS = [
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float64,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
]
INTEGERS = [
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
    torch.bool,
]
NAMES = ["min", "max", "mean", "std", "variance", "sum"]
NORMS = ["l1", "l2"]
ALL = ReductionConfig(reductions=NAMES, abs_reductions=NAMES, norms=NORMS, abs_norms=NORMS)
SIZES = [1, 2, 7, 255, 256, 257, 1000, 4097, 16384, 65537, 300_001, 2_000_003]


OTHER_WAYS = {"test_without_kernels_the_results_are_the_same"}


@pytest.fixture(autouse=True)
def only_our_kernels(monkeypatch, request):
    """PyTorch's own operations and copies of tensors are no part of these tests."""
    if request.node.originalname in OTHER_WAYS:
        return

    def refuse(*args, **kwargs):
        raise AssertionError("A tensor was not read by our kernels.")

    monkeypatch.setattr(device, "reduce_together", refuse)
    monkeypatch.setattr(device.DeviceStage, "copy", refuse)


def hook_for(path, reductions=ALL, **options) -> Hook:
    return Hook(
        str(path),
        include_regex=[".*"],
        save_config=SaveConfig(save_interval=1),
        reduction_config=reductions,
        **options,
    )


def saved(hook: Hook, tensors: dict[str, torch.Tensor]) -> None:
    """One step with these tensors, in one list."""
    hook.begin_step()
    hook._capture.save(list(tensors), list(tensors.values()))
    hook.end_step()


def random_bits(dtype: torch.dtype, size: int) -> torch.Tensor:
    """Elements of any value; floats without NaN and infinity."""
    width = torch.empty((), dtype=dtype).element_size()
    generator = torch.Generator().manual_seed(size)
    raw = torch.randint(0, 256, (size * width,), dtype=torch.uint8, generator=generator)
    if dtype is torch.bool:
        return (raw > 127).view(torch.bool)
    if dtype in INTEGERS:
        return raw.view(dtype)
    return torch.randn(size, dtype=torch.float64, generator=generator).to(dtype)


def values_of(tensor: torch.Tensor) -> np.ndarray:
    """Floats as float64, integers as they are."""
    tensor = tensor.cpu()
    if tensor.dtype in FLOATS:
        return tensor.double().numpy()
    return tensor.contiguous().numpy()


def expected(name: str, values: np.ndarray, absolute: bool) -> float:
    integer = values.dtype.kind in "iub"
    if absolute:
        wide = values.astype(np.longdouble)
        values = np.abs(wide)
    if name == "sum" and integer and not absolute:
        kind = np.uint64 if values.dtype.kind == "u" else np.int64
        return values.sum(dtype=kind)
    if name == "sum" and integer:
        whole = [abs(int(x)) for x in values.ravel()]
        return sum(whole) % (1 << 64)
    exact = values.astype(np.longdouble)
    return {
        "min": exact.min,
        "max": exact.max,
        "mean": exact.mean,
        "std": exact.std,
        "variance": exact.var,
        "sum": exact.sum,
        "l1": lambda: np.abs(exact).sum(),
        "l2": lambda: np.sqrt((exact * exact).sum()),
    }[name]()


def check(trial, step: int, name: str, tensor: torch.Tensor) -> None:
    values = values_of(tensor)
    tensor_of_trial = trial.tensor(name)
    scale = np.abs(values.astype(np.longdouble)).sum()
    for reduction in NAMES + NORMS:
        for absolute in (False, True):
            got = np.longdouble(tensor_of_trial.reduction_value(step, reduction, abs=absolute))
            want = np.longdouble(expected(reduction, values, absolute))
            narrow = tensor.dtype in FLOATS and tensor.dtype is not torch.float64
            tolerance = (2e-7 if narrow else 2e-12) * abs(want)
            if reduction in ("sum", "mean"):
                tolerance += 1e-14 * scale / (values.size if reduction == "mean" else 1)
            if reduction in ("std", "variance"):
                tolerance += 1e-12 * np.abs(values.astype(np.longdouble)).max()
            assert abs(got - want) <= tolerance, (name, reduction, absolute, got, want)


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS, ids=str)
def test_statistics_are_those_of_the_values(tmp_path, dtype):
    hook = hook_for(tmp_path)
    tensors = {}
    for size in SIZES:
        x = random_bits(dtype, size).cuda()
        tensors[f"whole_{size}"] = x
        if size > 10:
            tensors[f"offset_{size}"] = x[1:]
            tensors[f"gaps_{size}"] = x[::3]
            tensors[f"turned_{size}"] = x[: size // 7 * 7].view(7, -1).t()[:, 2:5]
            tensors[f"repeated_{size}"] = x[:5, None].expand(5, 11)
    saved(hook, tensors)
    hook.close()
    trial = create_trial(str(tmp_path))
    for name, tensor in tensors.items():
        check(trial, 0, name, tensor)


def test_what_is_not_a_number(tmp_path):
    hook = hook_for(tmp_path)
    inf, nan = float("inf"), float("nan")
    special = {"nan": [1.0, nan, 2.0], "inf": [1.0, inf, -3.0], "both": [inf, -inf, 0.0]}
    tensors = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float64):
        for label, values in special.items():
            x = torch.randn(100_000, device="cuda", dtype=dtype)
            x[50_000:50_003] = torch.tensor(values, dtype=dtype)
            tensors[f"{label}_{dtype}"] = x
    saved(hook, tensors)
    hook.close()
    trial = create_trial(str(tmp_path))
    with np.errstate(invalid="ignore"):
        for name, tensor in tensors.items():
            values = values_of(tensor)
            for reduction in ("min", "max", "sum", "std", "l1", "l2"):
                got = trial.tensor(name).reduction_value(0, reduction)
                want = expected(reduction, values, False)
                np.testing.assert_allclose(float(got), float(want), rtol=1e-6, err_msg=name)


def test_the_same_tensor_gives_the_same_bits(tmp_path):
    hook = hook_for(tmp_path)
    x = torch.randn(5_000_011, device="cuda")
    for _ in range(5):
        saved(hook, {"x": x})
    hook.close()
    tensor = create_trial(str(tmp_path)).tensor("x")
    for reduction in NAMES + NORMS:
        assert len({tensor.reduction_value(step, reduction) for step in range(5)}) == 1


def test_many_tensors_take_few_launches(tmp_path):
    """More of them than one launch can be told of."""
    hook = hook_for(tmp_path)
    tensors = {
        f"x{i}": torch.randn(1 + (i * 7919) % 5000, device="cuda").to(
            torch.bfloat16 if i % 3 else torch.float32
        )
        for i in range(1000)
    }
    saved(hook, tensors)
    hook.close()
    trial = create_trial(str(tmp_path))
    for name in list(tensors)[::37]:
        check(trial, 0, name, tensors[name])


def net(width: int = 512) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(inplace=True), nn.Linear(width, width), nn.Linear(width, 2)
    ).cuda()


def test_nothing_waits_for_the_device_over_several_steps(tmp_path):
    hook = hook_for(tmp_path)
    model = net()
    hook.register_module(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, fused=True)
    x = torch.randn(128, 64, device="cuda")

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    step()  # compiles the kernels
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(4_000_000_000)  # about two seconds of the device
        for _ in range(4):
            step()
        done = torch.cuda.Event()
        done.record()
        waited = done.query()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert not waited
    hook.close()
    trial = create_trial(str(tmp_path))
    assert trial.steps() == list(range(5))
    assert len(trial.tensor_names(step=4)) == len(trial.tensor_names(step=0)) > 10


@pytest.mark.parametrize("side", [False, True], ids=["default_stream", "side_streams"])
def test_values_are_those_of_the_moment_on_every_stream(tmp_path, side):
    """Tensors are changed and freed at once, and their memory is used again."""
    hook = hook_for(tmp_path)
    streams = [torch.cuda.Stream() if side else torch.cuda.current_stream() for _ in range(3)]
    hook.begin_step()
    for i in range(300):
        with torch.cuda.stream(streams[i % 3]):
            x = torch.full((200_000 + i,), float(i), device="cuda")
            hook.save(f"x{i}", x)
            x.add_(1000)
            del x
    hook.end_step()
    hook.close()
    trial = create_trial(str(tmp_path))
    for i in range(300):
        assert trial.tensor(f"x{i}").reduction_value(0, "min") == i
        assert trial.tensor(f"x{i}").reduction_value(0, "max") == i


def test_a_graph_can_be_captured_while_results_are_awaited(tmp_path, caplog):
    hook = hook_for(tmp_path)
    model = net()
    x = torch.randn(128, 64, device="cuda")
    y = model(x)
    saved(hook, {"before": x})
    torch.cuda.synchronize()
    other = torch.cuda.Stream()
    with torch.cuda.stream(other):
        torch.cuda._sleep(1_000_000_000)
        hook.begin_step()
        hook.save("awaited", x)
        hook.end_step()  # the writer waits for it now
    hook.begin_step()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = model(x)
        hook.save("captured", z)
    graph.replay()
    hook.save("replayed", z)
    hook.end_step()
    hook.close()
    np.testing.assert_allclose(z.detach().cpu(), y.detach().cpu(), rtol=1e-5)
    trial = create_trial(str(tmp_path))
    check(trial, 1, "awaited", x)
    check(trial, 2, "replayed", z.detach())
    assert "captured" not in trial.tensor_names()
    assert hook.dropped_tensors == {"captured": 1}


def gradients_of(trial, name: str, step: int) -> float:
    return trial.tensor(f"gradient/{name}").reduction_value(step, "l2")


@pytest.mark.parametrize("held_bytes", [1, 1 << 30], ids=["one_by_one", "together"])
def test_gradients_are_those_of_backward(tmp_path, monkeypatch, held_bytes):
    """Accumulation adds to them, clipping and the optimizer change them afterwards."""
    monkeypatch.setattr(survey, "HELD_BYTES", held_bytes)
    hook = hook_for(tmp_path)
    model = net()
    hook.register_module(model)
    want: dict[int, dict[str, torch.Tensor]] = {}
    x = torch.randn(4, 128, 64, device="cuda")
    for step in range(4):
        if step % 2 == 0:
            model.zero_grad()
        before = {
            n: p.grad.clone() if p.grad is not None else 0 for n, p in model.named_parameters()
        }
        model(x[step]).square().mean().backward()
        want[step] = {n: p.grad - before[n] for n, p in model.named_parameters()}
        if step % 2 == 1:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            torch.optim.SGD(model.parameters(), 0.1).step()
    hook.close()
    trial = create_trial(str(tmp_path))
    for step, gradients in want.items():
        for name, gradient in gradients.items():
            got = gradients_of(trial, f"Sequential_{name}", step)
            np.testing.assert_allclose(got, gradient.norm().item(), rtol=1e-3)
    assert hook.dropped_tensors == {}


def test_holding_gradients_does_not_make_backward_copy_them(tmp_path):
    hook = hook_for(tmp_path)
    model = nn.Linear(4096, 4096, bias=False).cuda()
    hook.register_module(model)
    seen = []
    model.weight.register_hook(lambda g: seen.append(g.data_ptr()))
    x = torch.randn(8, 4096, device="cuda")
    for _ in range(3):
        model.zero_grad()
        model(x).sum().backward()
        assert model.weight.grad.data_ptr() == seen[-1]
    hook.close()


def test_an_optimizer_inside_of_backward_comes_after_the_values(tmp_path):
    hook = hook_for(tmp_path)
    model = net()
    want = {}

    def use_up(parameter):
        want[parameter] = parameter.grad.norm().item()
        parameter.grad.zero_()

    for p in model.parameters():
        p.register_post_accumulate_grad_hook(use_up)
    hook.register_module(model)
    model(torch.randn(128, 64, device="cuda")).square().mean().backward()
    hook.close()
    trial = create_trial(str(tmp_path))
    for name, p in model.named_parameters():
        got = gradients_of(trial, f"Sequential_{name}", 0)
        np.testing.assert_allclose(got, want[p], rtol=1e-5)


def test_gradients_that_somebody_changes_meanwhile_are_not_saved_wrong(tmp_path):
    hook = hook_for(tmp_path)
    model = net()
    hook.register_module(model)
    x = torch.randn(128, 64, device="cuda")

    def change_in_place(grad):
        grad.mul_(0)

    output = model(x)  # the hook of ours comes first
    handles = [p.register_hook(change_in_place) for p in model.parameters()]
    output.square().mean().backward()
    for handle in handles:
        handle.remove()
    hook.close()
    trial = create_trial(str(tmp_path))
    assert hook.dropped_tensors  # said, not written
    names = [n for n in trial.tensor_names() if n.startswith("gradient/")]
    for name in names:
        for step in trial.tensor(name).steps():
            assert trial.tensor(name).reduction_value(step, "l2") > 0


def test_a_tensor_under_two_names_is_read_once(tmp_path):
    hook = hook_for(tmp_path)
    x = torch.randn(10_000, device="cuda")
    hook.begin_step()
    hook.save("a", x)
    hook.save("b", x)
    x.mul_(2)
    hook.save("c", x)
    hook.end_step()
    hook.close()
    assert hook._capture.recorder.surveys.direct.launches == 2  # for a and c
    trial = create_trial(str(tmp_path))
    check(trial, 0, "a", x / 2)
    check(trial, 0, "b", x / 2)
    check(trial, 0, "c", x)


def test_a_compiled_model_is_compiled_once_and_whole(tmp_path):
    import torch._dynamo

    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    model = net()
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    hook = hook_for(tmp_path)
    hook.register_module(compiled)
    x = torch.randn(128, 64, device="cuda")
    want = {}
    for step in range(6):
        model.zero_grad()
        compiled(x).square().mean().backward()
        want[step] = {n: p.grad.norm().item() for n, p in model.named_parameters()}
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
    hook.close()
    assert len(graphs) == 1
    trial = create_trial(str(tmp_path))
    names = [n for n in trial.tensor_names() if n.startswith("gradient/")]
    assert len(names) == len(want[0])
    for step in range(6):
        found = sorted(float(gradients_of(trial, n.removeprefix("gradient/"), step)) for n in names)
        np.testing.assert_allclose(found, sorted(want[step].values()), rtol=1e-5)


def test_unscaled_gradients_of_mixed_precision(tmp_path):
    hook = hook_for(tmp_path, gradient_source="optimizer")
    model = net()
    hook.register_module(model)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x = torch.randn(128, 64, device="cuda")
    want = []
    for _ in range(3):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            loss = model(x).float().square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        want.append({n: p.grad.norm().item() for n, p in model.named_parameters()})
        scaler.step(optimizer)
        scaler.update()
    hook.close()
    trial = create_trial(str(tmp_path))
    for step, norms in enumerate(want):
        for name, norm in norms.items():
            got = gradients_of(trial, f"Sequential_{name}", step)
            np.testing.assert_allclose(got, norm, rtol=1e-5)


def test_the_first_bad_tensor_is_found_without_waiting(tmp_path, caplog):
    hook = hook_for(tmp_path)
    model = net()
    hook.register_module(model)
    x = torch.randn(128, 64, device="cuda")
    with caplog.at_level(logging.WARNING):
        for step in range(6):
            if step == 3:
                with torch.no_grad():
                    model[2].weight[5, 5] = float("nan")
            model.zero_grad()
            model(x).sum().backward()
        hook.close()
    files = list((tmp_path / "findings").iterdir())
    assert len(files) == 1
    text = files[0].read_text()
    assert "Sequential_2.weight" in text
    assert '"step": 3' in text or '"step":3' in text


def test_a_nan_that_is_waited_for_starts_saving(tmp_path):
    saving = SaveConfig(save_interval=100, start_step=100, when_nan=["Sequential_2.weight"])
    hook = Hook(
        str(tmp_path),
        include_collections=["weights"],
        save_config=saving,
        reduction_config=ReductionConfig(reductions=["min"]),
    )
    model = net()
    hook.register_module(model)
    x = torch.randn(128, 64, device="cuda")
    for step in range(6):
        if step == 3:
            with torch.no_grad():
                model[2].weight[5, 5] = float("nan")
        model(x)
        torch.cuda.synchronize()  # so that the result has come when the next step begins
    hook.close()
    assert create_trial(str(tmp_path)).steps() == [4]


def test_without_kernels_the_results_are_the_same(tmp_path, monkeypatch, caplog):
    def missing(ordinal):
        raise RuntimeError("There is no libnvrtc.")

    monkeypatch.setattr(_core, "prepare_device", missing)
    hook = hook_for(tmp_path)
    tensors = {f"x{size}": torch.randn(size, device="cuda") for size in SIZES}
    with caplog.at_level(logging.WARNING):
        saved(hook, tensors)
    hook.close()
    trial = create_trial(str(tmp_path))
    for name, tensor in tensors.items():
        for reduction in ("min", "max", "l1", "l2"):
            got = trial.tensor(name).reduction_value(0, reduction)
            want = expected(reduction, values_of(tensor), False)
            np.testing.assert_allclose(float(got), float(want), rtol=1e-5)


def test_compiled_kernels_are_kept_in_files(tmp_path):
    import os
    import subprocess
    import sys
    from pathlib import Path

    code = """
import sys, time, torch
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig
hook = Hook(sys.argv[1], include_regex=[".*"], save_config=SaveConfig(save_interval=1),
            reduction_config=ReductionConfig(reductions=["min"]))
x = torch.ones(10, device="cuda")
hook.begin_step(); hook.save("x", x); hook.end_step(); hook.close()
"""
    root = Path(__file__).parents[2]
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "PYTHONPATH": str(root / "python"),
        "SMDEBUG_KERNEL_CACHE_DIR": str(cache),
        "SMDEBUG_STRICT": "1",
    }

    def run(label):
        subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / label)], env=environment, check=True
        )
        trial = create_trial(str(tmp_path / label))
        assert trial.tensor("x").reduction_value(0, "min") == 1
        (file,) = cache.iterdir()
        return file

    file = run("first")
    content = file.read_bytes()
    changed = file.stat().st_mtime_ns
    assert run("second").stat().st_mtime_ns == changed
    file.write_bytes(content[:-100])
    assert run("third").read_bytes() == content
