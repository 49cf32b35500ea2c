"""Rules inside of a training with PyTorch."""

from __future__ import annotations

import json
import threading

import pytest
import recorded
import smdebug.pytorch as smd
import torch
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
from smdebug.rules import diagnose
from smdebug.rules.action import Checkpoint, StopTraining
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


def test_a_checkpoint_holds_the_weights_before_the_step_that_is_stopped(out_dir, tmp_path):
    rule = {
        "rule": "VanishingGradient",
        "save_interval": 1,
        "actions": [Checkpoint(), StopTraining()],
    }
    hook = smd.Hook(out_dir, save_config=NEVER, rules=[rule])
    model, file = nn.Linear(4, 2), tmp_path / "weights.pt"
    hook.register_module(model)
    hook.on_checkpoint(lambda: torch.save(model.state_dict(), file))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(scale):
        optimizer.zero_grad()
        (model(torch.ones(3, 4)).square().sum() * scale).backward()
        optimizer.step()

    step(1)
    step(1e-12)
    hook.end_step()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    recorded.wait_until_heard(hook, "checkpoint", "stop")
    with pytest.raises(TrainingStopRequested, match="VanishingGradient asked at step 1"):
        step(1)
    saved = torch.load(file)
    assert all(torch.equal(saved[name], before[name]) for name in before)
    step(1)  # what follows is the end of the training
    hook.close()


def test_all_ranks_stop_at_their_next_step(tmp_path):
    ranks = [recorded.start(RANK, tmp_path, rank) for rank in range(2)]
    try:
        assert [rank.wait(timeout=recorded.TIMEOUT_SECS) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
        said = [rank.communicate()[0].splitlines()[-1] for rank in ranks]
    announced = run_control.records(tmp_path / "run")
    assert [(record.rank, record.world_size) for record in announced] == [(0, 2), (1, 2)]
    steps = [[int(number) for number in line.split()] for line in said]
    for seen, stopped in steps:
        assert stopped <= seen + 1
    assert abs(steps[0][1] - steps[1][1]) <= 1


# Ranks in lockstep, as data parallel training has them; a rank that is alone at the end is told so
# by its group, which then lacks a member.
RANK = """
import datetime, os, sys, time
import torch
import torch.distributed as dist
import smdebug.pytorch as smd
from smdebug.exceptions import TrainingStopRequested
from smdebug.rules.action import StopTraining
from torch import nn

rank = int(sys.argv[2])
dist.init_process_group(
    "gloo", init_method=f"file://{sys.argv[1]}/rendezvous", rank=rank, world_size=2,
    timeout=datetime.timedelta(seconds=30),
)
rule = {"rule": "VanishingGradient", "save_interval": 1, "actions": [StopTraining()]}
every = smd.SaveConfig(save_interval=1)
hook = smd.Hook(f"{sys.argv[1]}/run", save_config=every, rules=[rule], include_workers="all")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
hook.register_module(model)
seen = -1
step = -1
try:
    for step in range(10**6):
        if seen < 0 and hook._rule_watch._requests._seen:
            seen = step - 1
        loss = model(torch.ones(3, 4)).square().sum()
        (loss * (1e-12 if step >= 3 else 1)).backward()
        time.sleep(0.01)
except (TrainingStopRequested, RuntimeError) as error:
    is_alone = not isinstance(error, TrainingStopRequested)
    stopped = step
hook.close()
print(stopped if seen < 0 or is_alone else seen, stopped, flush=True)
os._exit(0)  # the group is broken
"""
