"""Trains what examples/cpp/libtorch.cpp trains, in Python, and compares the two runs.

Usage: libtorch_twin.py RUN_OF_THE_EXAMPLE DIRECTORY

Names, collections, steps, modes, element types and shapes must be equal; values must be close, as
both seed the same generator.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from smdebug import modes
from smdebug.pytorch import Hook
from smdebug.trials import create_trial
from torch import nn
from torch.nn import functional

CONFIG = {"HookParameters": {"save_all": True, "save_interval": 10}}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 16)
        self.fc2 = nn.Linear(16, 2)

    def forward(self, x):
        return self.fc2(torch.tanh(self.fc1(x)))


def two_rings(count):
    ring = torch.arange(count).remainder(2)
    turn = 6.2831853 * torch.rand(count)
    radius = 0.5 + ring + 0.1 * torch.randn(count)
    return torch.stack([radius * torch.cos(turn), radius * torch.sin(turn)], 1), ring


def train(directory):
    config = directory / "config.json"
    run = directory / "twin"
    config.write_text(json.dumps({"LocalPath": str(run), **CONFIG}))
    hook = Hook.create_from_json_file(str(config))
    hook.auto_mode = True
    torch.manual_seed(1)
    points, ring = two_rings(256)
    others, other_ring = two_rings(64)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    hook.register_module(net)
    for i in range(60):
        net.train()
        loss = functional.cross_entropy(net(points), ring)
        hook.record_tensor_value("CrossEntropyLoss", loss)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % 20 == 19:
            net.eval()
            with torch.no_grad():
                loss = functional.cross_entropy(net(others), other_ring)
                hook.record_tensor_value("CrossEntropyLoss", loss)
    hook.close()
    return run


def described(run):
    """All that a run says, but for times and values."""
    trial = create_trial(run)
    tensors = {}
    for name in trial.tensor_names():
        tensor = trial.tensor(name)
        for mode in (modes.TRAIN, modes.EVAL):
            for step in tensor.steps(mode=mode):
                value = tensor.value(step, mode=mode)
                tensors[name, mode.name, int(step)] = (value.dtype.name, value.shape)
    index = {
        path.name: json.loads(path.read_text())["meta"]
        for path in sorted(run.glob("index/*/*.json"))
    }
    files = sorted(str(path.relative_to(run)) for path in run.rglob("*") if path.is_file())
    collections = json.loads(next(run.glob("collections/*/*.json")).read_text())
    steps = {mode.name: trial.steps(mode=mode) for mode in modes}
    return {
        "tensors": tensors,
        "index": index,
        "files": files,
        "collections": collections,
        "steps": steps,
        "workers": trial.workers(),
    }


def main():
    theirs, directory = map(Path, sys.argv[1:])
    directory.mkdir(parents=True, exist_ok=True)
    ours = train(directory)
    native, python = described(theirs), described(ours)
    assert len(native["tensors"]) == 15 * 6 + 11 * 1, len(native["tensors"])
    for part, found in native.items():
        assert found == python[part], f"{part} differ:\n{found}\n{python[part]}"
    one, other = create_trial(theirs), create_trial(ours)
    for name, mode, step in native["tensors"]:
        a, b = (t.tensor(name).value(step, mode=modes[mode]) for t in (one, other))
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5, err_msg=f"{name} {mode} {step}")
    print(f"{len(native['tensors'])} tensors are alike")


if __name__ == "__main__":
    main()
