"""What optimizers keep of each parameter, saved when the collection is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from smdebug.pytorch import Hook, SaveConfig, create_trial, modes
from torch import nn
from torch_training import EVERY_STEP, Small, batches, record, saved, step

PARAMETERS = ["Small_a.weight", "Small_a.bias", "Small_b.weight", "Small_b.bias"]


def train(hook: Any, seen: list[Any], make: Any, count: int = 4) -> nn.Module:
    """A few steps; `seen` gets a copy of the optimizer's state after each."""
    model = Small()
    hook.register_module(model)
    optimizer = make(model.parameters())
    for x, y in batches(count):
        step(model, nn.functional.cross_entropy, optimizer, x, y)
        named = zip(PARAMETERS, model.parameters(), strict=True)
        seen.append(
            {
                f"optimizer/{name}/{key}": value.detach().clone()
                for name, parameter in named
                for key, value in optimizer.state[parameter].items()
                if isinstance(value, torch.Tensor)
            }
        )
    return model


@pytest.mark.parametrize("layout", ["original", "packed"])
@pytest.mark.parametrize(
    ("make", "keys"),
    [
        (lambda p: torch.optim.Adam(p, lr=0.1), {"step", "exp_avg", "exp_avg_sq"}),
        (lambda p: torch.optim.AdamW(p, lr=0.1, fused=True), {"step", "exp_avg", "exp_avg_sq"}),
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), {"momentum_buffer"}),
    ],
)
def test_the_state_after_each_update_is_saved(
    out_dir: Path, make: Any, keys: set[str], layout: str
) -> None:
    seen: list[Any] = []
    trial = record(
        lambda hook: train(hook, seen, make),
        out_dir,
        include_collections=["optimizer_variables", "weights", "biases"],
        save_config=EVERY_STEP,
        layout=layout,
    )
    expected = {f"optimizer/{name}/{key}" for name in PARAMETERS for key in keys}
    assert set(trial.tensor_names(collection="optimizer_variables")) == expected
    assert set(trial.tensor_names(collection="weights")) == {n for n in PARAMETERS if "weight" in n}
    assert set(trial.tensor_names(collection="biases")) == {n for n in PARAMETERS if "bias" in n}
    recorded = seen[4:]  # the first four are those of the training without hook
    for at, state in enumerate(recorded):
        assert set(state) == expected
        for name, value in state.items():
            assert (saved(trial, name, at) == value.numpy()).all(), (name, at)


def test_it_follows_the_config_of_its_collection_and_is_not_saved_in_evaluation(
    out_dir: Path,
) -> None:
    def job(hook: Any) -> nn.Module:
        hook.set_mode(modes.TRAIN)
        if isinstance(hook, Hook):
            hook.get_collection("optimizer_variables").save_config = SaveConfig(save_interval=2)
        model = train(hook, [], lambda p: torch.optim.Adam(p), 5)
        hook.set_mode(modes.EVAL)
        optimizer = torch.optim.Adam(model.parameters())
        for x, y in batches(1):
            step(model, nn.functional.cross_entropy, optimizer, x, y)
        return model

    trial = record(
        job,
        out_dir,
        include_collections=["optimizer_variables", "weights"],
        save_config=EVERY_STEP,
    )
    assert trial.tensor("optimizer/Small_b.bias/exp_avg").steps(mode=modes.TRAIN) == [0, 2, 4]
    assert trial.tensor("optimizer/Small_b.bias/exp_avg").steps(mode=modes.EVAL) == []
    assert trial.tensor("Small_a.weight").steps(mode=modes.EVAL) == [0]


def test_it_is_left_alone_unless_asked_for(out_dir: Path) -> None:
    trial = record(
        lambda hook: train(hook, [], lambda p: torch.optim.Adam(p)),
        out_dir,
        save_all=True,
        save_config=EVERY_STEP,
    )
    assert not [name for name in trial.tensor_names() if name.startswith("optimizer/")]


def test_parameters_of_other_models_are_passed_over(out_dir: Path) -> None:
    other = nn.Linear(3, 2)

    def job(hook: Any) -> nn.Module:
        def make(parameters: Any) -> Any:
            return torch.optim.Adam([*parameters, *other.parameters()])

        return train(hook, [], make)

    trial = record(
        job, out_dir, include_collections=["optimizer_variables"], save_config=EVERY_STEP
    )
    assert len(trial.tensor_names(collection="optimizer_variables")) == 4 * 3


def test_a_script_that_knows_nothing_of_it_can_be_asked_for_it(
    out_dir: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Sequential(torch.nn.Linear(3, 2))\n"
        "optimizer = torch.optim.Adam(model.parameters())\n"
        "for _ in range(3):\n"
        "    optimizer.zero_grad()\n"
        "    torch.nn.functional.mse_loss(model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()\n"
        "    optimizer.step()\n"
    )
    options = ["--out", str(out_dir), "--save", "weights,optimizer_variables:1", "--interval", "1"]
    command = [sys.executable, "-m", "smdebug.run", *options, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    trial = create_trial(str(out_dir))
    names = trial.tensor_names(collection="optimizer_variables")
    keys = ("step", "exp_avg", "exp_avg_sq")
    parts = ("weight", "bias")
    assert set(names) == {f"optimizer/Sequential_0.{p}/{key}" for p in parts for key in keys}
    assert trial.tensor_names(collection="weights") == ["Sequential_0.weight"]
    assert trial.tensor("optimizer/Sequential_0.weight/step").reduction_value(2, "mean") == 3
