"""Trains a small classifier with PyTorch, records it, and prints what the run tells.

    python examples/pytorch/train.py [--out DIR] [--steps N]

The biases of one layer are far too large: its units are saturated, and hardly any gradient passes it.
The loss does not show where the trouble is; the recorded gradients do.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import smdebug.pytorch as smd
import torch
from torch import nn

WIDTH = 16


class Classifier(nn.Module):
    """Five layers, one of them sick."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.head = nn.Linear(WIDTH, 2)
        with torch.no_grad():
            self.layers[2].bias += 8

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return self.head(x)


def train(out_dir: str, steps: int) -> None:
    """Trains and records gradients as statistics, and the loss as it is."""
    torch.manual_seed(0)
    hook = smd.Hook(
        out_dir,
        save_config=smd.SaveConfig(save_interval=10),
        include_collections=["gradients"],
        reduction_config=smd.ReductionConfig(norms=["l2"]),
    )
    model, loss = Classifier(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(loss)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        x = torch.randn(64, WIDTH)
        optimizer.zero_grad()
        loss(model(x), (x.sum(dim=1) > 0).long()).backward()
        optimizer.step()
    hook.close()


def report(out_dir: str) -> None:
    """Prints the norm of each layer's gradient at the last recorded step."""
    trial = smd.create_trial(out_dir)
    last = trial.steps()[-1]
    print(f"step {last}: loss {float(trial.tensor('CrossEntropyLoss_output_0').value(last)):.3f}")
    for name in trial.tensor_names(regex=r"^gradient/.*weight$"):
        print(f"{name:45} {trial.tensor(name).reduction_value(last, 'l2'):.1e}")


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="runs/pytorch", help="directory of the run")
    parser.add_argument("--steps", type=int, default=50)
    args = parser.parse_args()
    if Path(args.out).exists():
        parser.error(f"{args.out} exists already; choose another directory with --out.")
    train(args.out, args.steps)
    report(args.out)


if __name__ == "__main__":
    main()
