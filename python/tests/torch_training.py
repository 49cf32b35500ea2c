"""Small models and loops for the tests of the hook for PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from smdebug.pytorch import Hook, SaveConfig, create_trial
from torch import nn

EVERY_STEP = SaveConfig(save_interval=1)


class Net(nn.Module):
    """Inputs that are changed in place, modules used twice, a tuple as output, unused parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(3, 4)
        self.relu = nn.ReLU(inplace=True)
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.lstm = nn.LSTM(4, 2, batch_first=True)
        self.fc2 = nn.Linear(2, 2)
        self.unused = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        x = self.relu(self.fc1(x))
        x = self.relu(self.seq(x))
        y, _ = self.lstm(x.unsqueeze(1))
        return self.fc2(y[:, 0]) * scale


class Small(nn.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.b = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(torch.tanh(self.a(x)))


SMALL_PARAMETERS = ["Small_a.bias", "Small_a.weight", "Small_b.bias", "Small_b.weight"]
SMALL_NAMES = sorted(
    SMALL_PARAMETERS
    + [f"gradient/{name}" for name in SMALL_PARAMETERS]
    + [f"{m}_{kind}_0" for m in ("Small", "a", "b") for kind in ("input", "output")]
)


class NoHook:
    """Takes the place of a hook and does nothing."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: contextlib.nullcontext()


def batches(
    count: int, size: int = 5, width: int = 3
) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
    """Inputs and labels that depend on nothing but the arguments."""
    generator = torch.Generator().manual_seed(17)
    for _ in range(count):
        x = torch.randn(size, width, generator=generator)
        yield x, torch.randint(0, 2, (size,), generator=generator)


Job = Callable[[Any], Any]


def record(job: Job, out_dir: Path, **arguments: Any) -> Any:
    """The run that job(hook) recorded. Its result must be, bit for bit, that of a job without hook."""
    torch.manual_seed(7)
    plain = job(NoHook())
    torch.manual_seed(7)
    hook = Hook(out_dir, **arguments)
    recorded = job(hook)
    hook.close()
    assert_same(plain, recorded)
    assert (out_dir / "training_job_end.ts").exists()
    return create_trial(str(out_dir))


def assert_same(plain: Any, recorded: Any) -> None:
    """The same bits."""
    if isinstance(plain, nn.Module):
        plain, recorded = plain.state_dict(), recorded.state_dict()
    if isinstance(plain, dict):
        assert list(plain) == list(recorded)
        plain, recorded = list(plain.values()), list(recorded.values())
    if isinstance(plain, list | tuple):
        assert len(plain) == len(recorded)
        for left, right in zip(plain, recorded, strict=True):
            assert_same(left, right)
    elif isinstance(plain, torch.Tensor):
        assert torch.equal(plain, recorded) or (plain.isnan() == recorded.isnan()).all()
    else:
        assert plain == recorded


def step(
    model: nn.Module, loss: Callable[..., torch.Tensor], optimizer: Any, x: Any, y: Any
) -> None:
    """One step of training."""
    optimizer.zero_grad()
    loss(model(x), y).backward()
    optimizer.step()


def train_small(hook: Any, count: int = 3, model: nn.Module | None = None) -> nn.Module:
    """A few steps of a small model that is registered."""
    model = Small() if model is None else model
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in batches(count):
        step(model, nn.functional.cross_entropy, optimizer, x, y)
    return model


def saved(trial: Any, name: str, at: int = 0, **arguments: Any) -> np.ndarray:
    """A recorded value."""
    return trial.tensor(name).value(at, **arguments)


def assert_value(found: np.ndarray, expected: torch.Tensor) -> None:
    """The value that the test has seen itself, in shape and content."""
    expected_array = expected.detach().numpy()
    assert found.shape == expected_array.shape
    np.testing.assert_array_equal(found, expected_array)


def callbacks_of(model: nn.Module) -> int:
    """How many callbacks modules and parameters hold."""
    count = 0
    for module in model.modules():
        count += len(module._forward_hooks) + len(module._forward_pre_hooks)
    for parameter in model.parameters():
        count += len(parameter._backward_hooks or {})
        count += len(getattr(parameter, "_post_accumulate_grad_hooks", None) or {})
    return count
