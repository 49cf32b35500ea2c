"""Rules inside of a training with PyTorch."""

from __future__ import annotations

import json
import threading

import pytest
import smdebug.pytorch as smd
import torch
from smdebug.exceptions import TrainingStopRequested
from smdebug.rules import diagnose
from smdebug.rules.action import StopTraining
from torch import nn

NEVER = smd.SaveConfig(save_steps=[10**9], start_step=10**9)


def train(hook, steps, after=lambda number: None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    hook.register_module(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for number in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(torch.randn(3, 4)), torch.zeros(3, 2))
        if number >= 4:
            loss = loss * 1e-12
        loss.backward()
        optimizer.step()
        after(number)


def hits(out_dir):
    lines = (out_dir / "findings" / "worker_0.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_gradients_are_reduced_and_judged(out_dir):
    rule = {"rule": "VanishingGradient", "save_interval": 2}
    with smd.Hook(out_dir, save_config=NEVER, rules=[rule]) as hook:
        train(hook, 9)
    assert [hit["step"] for hit in hits(out_dir)] == [4, 6, 8]
    trial = smd.create_trial(out_dir)
    names = trial.tensor_names()
    assert len(names) == 4 and all(name.startswith("gradient/") for name in names)
    for name in names:
        assert trial.tensor(name).steps() == [0, 2, 4, 6, 8]
        assert set(trial.tensor(name).reduction_values(0)) == {("mean", True)}
    (finding,) = diagnose(out_dir, "VanishingGradient")["findings"]
    assert finding["hits"] == 3
    assert finding["evidence"]["violations"] == hits(out_dir)[0]["violations"]


def test_patterns_of_a_rule_reach_inner_modules(out_dir):
    rule = {"rule": "ExplodingTensor", "tensor_regex": "0_output|2.weight", "save_interval": 3}
    with smd.Hook(out_dir, save_config=NEVER, rules=[rule]) as hook:
        train(hook, 4)
    names = smd.create_trial(out_dir).tensor_names()
    assert any("output" in name for name in names) and any("2.weight" in name for name in names)
    assert not any("bias" in name for name in names)


@pytest.mark.parametrize("strict", ["0", "1"])
def test_an_action_stops_the_training_though_failures_never_do(out_dir, monkeypatch, strict):
    monkeypatch.setenv("SMDEBUG_STRICT", strict)
    rule = {"rule": "VanishingGradient", "save_interval": 1, "actions": [StopTraining()]}
    hook = smd.Hook(out_dir, save_config=NEVER, rules=[rule])
    pause = threading.Event()
    last = []

    def after(number):
        last.append(number)
        if number >= 4:
            pause.wait(0.02)

    with pytest.raises(TrainingStopRequested, match="VanishingGradient asked at step 4"):
        train(hook, 1500, after)
    hook.close()
    assert 4 <= last[-1] < 1499
