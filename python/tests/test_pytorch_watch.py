"""Budget, flight recorder and first bad tensor with real models; training is the same bit for bit."""

from __future__ import annotations

import inspect
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Messages
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig, create_trial, modes
from torch import nn
from torch_training import EVERY_STEP, Small, batches, record, train_small

NEVER = SaveConfig(save_interval=1000)
EXTREMA = ReductionConfig(["min", "max"])
LAYOUTS = pytest.mark.parametrize("layout", ["original", "packed"])


class Faulty(nn.Module):
    """The logarithm of a negative number at one step, between two layers."""

    def __init__(self, bad_step: int) -> None:
        super().__init__()
        self.a = nn.Linear(3, 4)
        self.act = nn.Tanh()
        self.b = nn.Linear(4, 2)
        self.bad_step = bad_step
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.act(self.a(x))
        if self.calls == self.bad_step:
            x = torch.log(x - 2)
        self.calls += 1
        return self.b(x)  # the planted line


def planted_line() -> int:
    lines, first = inspect.getsourcelines(Faulty)
    return first + next(i for i, line in enumerate(lines) if "# the planted line" in line)


def train_faulty(hook: Any) -> nn.Module:
    return train_small(hook, 6, Faulty(bad_step=4))


@LAYOUTS
def test_the_first_bad_tensor_is_named_with_its_module_and_line(
    out_dir: Path, layout: str, messages: Messages
) -> None:
    trial = record(
        train_faulty,
        out_dir,
        layout=layout,
        save_all=True,
        save_config=NEVER,
        reduction_config=EXTREMA,
        flight_recorder=3,
    )
    bad, dump = trial.findings()
    assert (bad["tensor"], bad["module"], bad["step"]) == ("b_input_0", "b", 4)
    assert bad["nan"] == 20 and bad["mode"] == "GLOBAL"
    assert bad["source"]["file"] == __file__ and bad["source"]["line"] == planted_line()
    assert "self.b(x)" in bad["source"]["text"]
    assert [past["step"] for past in bad["before"]] == [2, 3]
    after = [later["tensor"] for later in bad["after_it"]]
    assert after[0] == "b_output_0" and "gradient/Faulty_b.bias" in after
    assert dump["steps_in_run"] == [2, 3, 4]
    assert trial.steps() == [0, 2, 3, 4]
    assert trial.tensor("a_output_0").reduction_value(3, "max") is not None
    assert messages.containing(f"test_pytorch_watch.py:{planted_line()}")


def test_it_is_found_without_a_recorder_and_without_saving(out_dir: Path) -> None:
    trial = record(train_faulty, out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    (bad,) = trial.findings()
    assert (bad["tensor"], bad["step"]) == ("b_input_0", 4)
    assert trial.steps() == [0]


def test_it_is_found_where_reductions_are_saved_anyway(out_dir: Path) -> None:
    trial = record(
        train_faulty, out_dir, save_all=True, save_config=EVERY_STEP, reduction_config=EXTREMA
    )
    assert trial.findings()[0]["tensor"] == "b_input_0"


def test_a_weight_that_is_bad_before_the_forward_comes_first(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        for i, (x, _) in enumerate(batches(3)):
            if i == 1:
                model.b.weight.data[0, 0] = float("inf")
            model(x)
        return model

    trial = record(job, out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    (bad,) = trial.findings()
    assert (bad["tensor"], bad["module"], bad["step"]) == ("Small_b.weight", "Small_b", 1)
    assert (bad["nan"], bad["positive_inf"], bad["negative_inf"]) == (0, 1, 0)
    assert bad["source"] is None and "before the forward" in bad["note"]


def test_an_input_of_the_program_that_is_bad_comes_first(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        for i, (x, _) in enumerate(batches(3)):
            model(x * float("nan") if i == 2 else x)
        return model

    trial = record(job, out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    assert trial.findings()[0]["tensor"] == "a_input_0"


def test_a_gradient_that_is_bad_names_its_parameter(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        model = Small()
        hook.register_module(model)
        for i, (x, _) in enumerate(batches(3)):
            y = model(x).sum()
            (y * torch.tensor(float("inf")) if i == 1 else y).backward()
            model.zero_grad()
        return model

    trial = record(job, out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    (bad,) = trial.findings()
    assert bad["tensor"].startswith("gradient/Small_b.") and bad["module"] == "Small_b"
    assert bad["source"] is None and "order of backward" in bad["note"]


def test_of_a_compiled_model_only_what_is_known_is_said(out_dir: Path) -> None:
    torch._dynamo.reset()
    hook = Hook(out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    model = torch.compile(Small(), backend="eager")
    hook.register_module(model)
    for i, (x, _) in enumerate(batches(3)):
        model(x * float("nan") if i == 1 else x)
    hook.close()
    (bad,) = create_trial(str(out_dir)).findings()
    assert bad["step"] == 1 and "compiled" in bad["note"]
    assert bad["module"] == "OptimizedModule"


def test_masks_of_attention_are_no_bad_tensors(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        hook.register_module(layer)
        mask = nn.Transformer.generate_square_subsequent_mask(3)
        for _ in range(3):
            layer(torch.ones(2, 3, 4), src_mask=mask).sum().backward()
            layer.zero_grad()
        return layer

    trial = record(job, out_dir, save_all=True, save_config=NEVER, first_bad_tensor=True)
    assert trial.findings() == []


def test_modes_have_their_own_steps_in_the_recorder(out_dir: Path) -> None:
    hook = Hook(
        out_dir, save_all=True, save_config=NEVER, reduction_config=EXTREMA, flight_recorder=4
    )
    model = Small()
    hook.register_module(model)
    for i, (x, _) in enumerate(batches(8)):
        hook.set_mode(modes.EVAL if i % 2 else modes.TRAIN)
        model(x)
    hook.dump_flight_recorder("by hand")
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps(modes.TRAIN) == [0, 2, 3] and trial.steps(modes.EVAL) == [0, 2, 3]


DYING = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from torch_training import train_small
from smdebug.pytorch import Hook, ReductionConfig, SaveConfig

hook = Hook(sys.argv[1], save_all=True, flight_recorder=3,
            save_config=SaveConfig(save_interval=1000), reduction_config=ReductionConfig(["max"]))
train_small(hook, 6)
"""


@pytest.mark.parametrize(
    ("end", "status", "reason"),
    [
        ("raise RuntimeError('planted')", 1, "RuntimeError: planted"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, "SIGTERM"),
    ],
)
def test_a_dying_process_leaves_its_last_steps(
    out_dir: Path, end: str, status: int, reason: str
) -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", DYING + end, str(out_dir), str(here)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(here.parent)},
    )
    assert done.returncode == status, done.stderr
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 3, 4, 5]
    assert trial.tensor("gradient/Small_a.weight").reduction_value(4, "max") is not None
    assert trial.findings()[0]["reason"] == reason


def test_the_cost_of_callbacks_is_on_the_bill(out_dir: Path) -> None:
    hook = Hook(out_dir, save_all=True, save_config=EVERY_STEP)
    train_small(hook, 5)
    hook.close()
    bill = hook.bill()
    assert (bill["steps"], bill["saved_steps"]) == (5, 5) and bill["tensors"] > 5 * 12
    assert 0 < bill["share"] < 1


def test_a_budget_that_is_far_too_small_saves_at_the_longest_interval(out_dir: Path) -> None:
    def job(hook: Any) -> nn.Module:
        return train_small(hook, 100)

    trial = record(job, out_dir, save_all=True, max_overhead=1e-6, max_interval=32)
    assert {32, 64, 96} <= set(trial.steps()) and len(trial.steps()) < 15
