"""The hook for PyTorch and compiled models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from smdebug.pytorch import Hook, SaveConfig
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch_training import NoHook, Small, batches, record

STEPS = 8
SAVING = SaveConfig(save_interval=3)


@pytest.fixture(autouse=True)
def strict(clean_process: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    yield
    torch.compiler.reset()
    torch.compiler.set_stance("default")


class Compilation:
    """A model in one of the ways in which programs compile and register it."""

    def __init__(self, way: str, backend: str, **options: Any) -> None:
        self.way, self.backend, self.options = way, backend, options
        self.graphs: dict[type, int] = {}

    def __call__(self, hook: Any) -> list[Any]:
        torch.compiler.reset()
        counter = CompileCounterWithBackend(self.backend)
        if self.way.startswith("sequential"):
            model: nn.Module = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
        else:
            model = Small()
        run: Any = model
        if self.way == "in_place":
            model.compile(backend=counter, **self.options)
            hook.register_module(model)
        elif self.way.endswith("wrapper"):
            run = torch.compile(model, backend=counter, **self.options)
            hook.register_module(run)
        elif self.way == "raw_before":
            hook.register_module(model)
            run = torch.compile(model, backend=counter, **self.options)
        else:
            run = torch.compile(model, backend=counter, **self.options)
            hook.register_module(model)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches(STEPS):
            optimizer.zero_grad()
            nn.functional.cross_entropy(run(x), y).backward()
            optimizer.step()
        self.graphs[type(hook)] = counter.frame_count
        return list(model.parameters())


PREFIX = {
    "wrapper": ("OptimizedModule__orig_mod.", "OptimizedModule"),
    "sequential_wrapper": ("OptimizedModule__orig_mod.", "OptimizedModule"),
    "in_place": ("Small_", "Small"),
    "raw_before": ("Small_", "Small"),
    "raw_after": ("Small_", "Small"),
    "sequential": ("Sequential_", "Sequential"),
}
CASES = [(way, "eager") for way in PREFIX] + [("wrapper", "inductor"), ("in_place", "inductor")]


def names_of(way: str) -> list[str]:
    prefix, root = PREFIX[way]
    layers = ["0", "2"] if way.startswith("sequential") else ["a", "b"]
    parameters = [f"{prefix}{layer}.{kind}" for layer in layers for kind in ("weight", "bias")]
    names = parameters + [f"gradient/{name}" for name in parameters]
    names += [f"{root}_input_0", f"{root}_output_0"]
    return sorted(names)


@pytest.mark.parametrize(("way", "backend"), CASES)
def test_parameters_gradients_and_the_root_of_a_compiled_model_are_seen(
    out_dir: Path, way: str, backend: str
) -> None:
    job = Compilation(way, backend)
    trial = record(job, out_dir, save_all=True, save_config=SAVING)
    assert trial.steps() == [0, 3, 6]
    assert trial.tensor_names() == names_of(way)
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == [0, 3, 6]
    # At most one graph more for a torch-owned class whose callback is compiled with it.
    more = 1 if way == "sequential" else 0
    assert job.graphs[Hook] <= job.graphs[NoHook] + more


def test_a_whole_graph_can_be_demanded(out_dir: Path) -> None:
    job = Compilation("wrapper", "eager", fullgraph=True)
    trial = record(job, out_dir, save_all=True, save_config=SAVING)
    assert trial.steps() == [0, 3, 6]
    assert job.graphs[Hook] == job.graphs[NoHook] == 1


@pytest.mark.parametrize("way", PREFIX)
def test_inner_modules_are_seen_on_request_without_another_compilation(
    out_dir: Path, way: str
) -> None:
    job = Compilation(way, "eager")
    trial = record(job, out_dir, save_all=True, save_config=SAVING, compiled_modules=True)
    assert trial.steps() == [0, 3, 6]
    layers = ["0", "1", "2"] if way.startswith("sequential") else ["a", "b"]
    if way.endswith("wrapper"):
        layers = ["_orig_mod", *(f"_orig_mod.{layer}" for layer in layers)]
    inner = [f"{m}_{k}_0" for m in layers for k in ("input", "output")]
    assert trial.tensor_names() == sorted(names_of(way) + inner)
    more = 1 if way == "sequential" else 0
    assert job.graphs[Hook] <= job.graphs[NoHook] + more


def test_a_forward_that_fails_does_not_leave_compilation_off(out_dir: Path) -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.fc(x)

    counter = CompileCounterWithBackend("eager")
    model = torch.compile(Failing(), backend=counter)
    hook = Hook(
        out_dir,
        save_all=True,
        save_config=SaveConfig(save_steps=[1], save_interval=100),
        compiled_modules=True,
    )
    hook.register_module(model)
    model(torch.ones(1, 3))
    with pytest.raises(RuntimeError, match="shapes"):
        model(torch.ones(1, 4))
    model(torch.ones(1, 3))
    assert counter.frame_count == 1
    hook.close()
