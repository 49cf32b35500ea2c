"""Trains a small network with PyTorch. Knows nothing of smdebug.

    python examples/demo/train.py [--steps N] [--sick NAME] [--pause SECS]

Residual blocks classify points on two rings. One block has a planted fault: after a third of the run
its bias takes one bad step, and its units never fire again. The other blocks make up for it and the
loss goes on falling, so the loss curve hides the fault.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

WIDTH = 32
BATCH = 128
BAD_STEP = 50.0


class Rings(nn.Module):
    """Tells points on an inner ring from those on an outer one."""

    def __init__(self) -> None:
        super().__init__()
        self.input = nn.Linear(2, WIDTH)
        self.block1 = nn.Linear(WIDTH, WIDTH)
        self.block2 = nn.Linear(WIDTH, WIDTH)
        self.block3 = nn.Linear(WIDTH, WIDTH)
        self.block4 = nn.Linear(WIDTH, WIDTH)
        self.block5 = nn.Linear(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.input(x)
        for block in (self.block1, self.block2, self.block3, self.block4, self.block5):
            x = x + torch.relu(block(x))
        return self.output(x)[:, 0]


def batch_of_rings(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on an inner ring (label 0) and an outer ring (label 1)."""
    label = torch.randint(0, 2, (BATCH,), generator=generator).float()
    radius = 1.0 + label + 0.15 * torch.randn(BATCH, generator=generator)
    angle = 2 * torch.pi * torch.rand(BATCH, generator=generator)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], 1), label


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=60, help="steps to train")
    parser.add_argument("--sick", default="block3", help="the layer that falls ill; '': none")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each step")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    generator = torch.Generator().manual_seed(7)
    model = Rings()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    loss = torch.tensor(float("nan"))
    for step in range(arguments.steps):
        if arguments.sick and step == arguments.steps // 3:
            with torch.no_grad():
                getattr(model, arguments.sick).bias -= BAD_STEP
        points, label = batch_of_rings(generator)
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(points), label)
        loss.backward()
        optimizer.step()
        time.sleep(arguments.pause)
    print(f"Trained {arguments.steps} steps; the loss is {loss:.3f} and looks fine.")


if __name__ == "__main__":
    main()
