"""Trains a small network in plain NumPy and records it with smdebug.

    python examples/numpy_mlp.py [--out DIR] [--steps N] [--pause SECS]

Residual blocks classify points on two rings. One block has a planted fault: after a third of the run
its bias takes one bad step, and its units never fire again. The other blocks make up for it and the
loss goes on falling, so the loss curve hides the fault. The recorded gradients show it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import smdebug
from numpy.random import Generator

WIDTH = 32
BLOCKS = 5
# The fault is known to the trainer only; whoever reads the run must find it.
SICK_BLOCK = 3
BAD_STEP = 50
LEARNING_RATE = 0.05
BATCH = 128


class Layer:
    """y = x W + b; a block adds max(0, x W + b) to x instead."""

    def __init__(self, name: str, shape: tuple[int, int], is_block: bool, rng: Generator) -> None:
        self.name = name
        self.is_block = is_block
        scale = np.sqrt((0.5 if is_block else 2) / shape[0])
        self.weight = (rng.standard_normal(shape) * scale).astype(np.float32)
        self.bias = np.zeros(shape[1], np.float32)

    def forward(self, x: np.ndarray) -> np.ndarray:
        self.inputs = x
        self.outputs = x @ self.weight + self.bias
        if not self.is_block:
            return self.outputs
        self.outputs = np.maximum(self.outputs, 0)
        return x + self.outputs

    def backward(self, upstream: np.ndarray) -> np.ndarray:
        delta = upstream * (self.outputs > 0) if self.is_block else upstream
        self.weight_gradient = self.inputs.T @ delta
        self.bias_gradient = delta.sum(axis=0)
        through = delta @ self.weight.T
        return upstream + through if self.is_block else through

    def update(self) -> None:
        self.weight -= LEARNING_RATE * self.weight_gradient
        self.bias -= LEARNING_RATE * self.bias_gradient


def make_layers(rng: Generator) -> list[Layer]:
    return [
        Layer("input", (2, WIDTH), False, rng),
        *(Layer(f"block{i}", (WIDTH, WIDTH), True, rng) for i in range(1, BLOCKS + 1)),
        Layer("output", (WIDTH, 1), False, rng),
    ]


def batch_of_rings(rng: Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points on an inner ring (label 0) and an outer ring (label 1)."""
    label = rng.integers(0, 2, BATCH)
    radius = 1.0 + label + 0.15 * rng.standard_normal(BATCH)
    angle = rng.uniform(0, 2 * np.pi, BATCH)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return points.astype(np.float32), label.astype(np.float32)


def loss_and_gradient(logits: np.ndarray, label: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean logistic loss and its gradient with respect to the logits."""
    z = logits[:, 0]
    loss = float(np.mean(np.logaddexp(0, z) - label * z))
    gradient = (1 / (1 + np.exp(-z)) - label) / len(label)
    return loss, gradient[:, None].astype(np.float32)


def make_hook(out_dir: str | Path) -> smdebug.Hook:
    """Statistics of everything at every second step; whole weights at the start only."""
    hook = smdebug.Hook(
        out_dir=out_dir,
        save_config=smdebug.SaveConfig(save_interval=2),
        reduction_config=smdebug.ReductionConfig(
            reductions=["min", "mean", "max", "std"], norms=["l2"], abs_reductions=["mean"]
        ),
        include_collections=["weights", "biases", "gradients", "activations", "first_weights"],
    )
    hook.get_collection("activations").include("^activation/")
    hook.add_collection(
        smdebug.Collection(
            "first_weights",
            include_regex="^(?!gradient).*weight$",
            save_config=smdebug.SaveConfig(save_interval=1, end_step=1),
            reduction_config=smdebug.ReductionConfig(save_raw_tensor=True),
        )
    )
    return hook


def record(hook: smdebug.Hook, layers: list[Layer], loss: float) -> None:
    hook.save_scalar("loss", loss)
    for layer in layers:
        hook.save_tensor(f"{layer.name}/weight", layer.weight, "weights")
        hook.save_tensor(f"{layer.name}/bias", layer.bias, "biases")
        hook.save_tensor(f"gradient/{layer.name}/weight", layer.weight_gradient, "gradients")
        hook.save_tensor(f"gradient/{layer.name}/bias", layer.bias_gradient, "gradients")
        hook.save_tensor(f"activation/{layer.name}", layer.outputs, "activations")


def train(out_dir: str | Path, steps: int, pause: float = 0) -> float:
    """Runs the loop, records it below `out_dir`, and gives the last loss."""
    rng = np.random.default_rng(7)
    layers = make_layers(rng)
    loss = float("nan")
    with make_hook(out_dir) as hook:
        hook.set_mode(smdebug.modes.TRAIN)
        for step in range(steps):
            hook.step()
            if step == steps // 3:
                layers[SICK_BLOCK].bias -= BAD_STEP
            x, label = batch_of_rings(rng)
            for layer in layers:
                x = layer.forward(x)
            loss, upstream = loss_and_gradient(x, label)
            for layer in reversed(layers):
                upstream = layer.backward(upstream)
            record(hook, layers, loss)
            for layer in layers:
                layer.update()
            time.sleep(pause)
    return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="runs/numpy_mlp", help="directory of the recorded run")
    parser.add_argument("--steps", type=int, default=60, help="steps to train")
    parser.add_argument("--pause", type=float, default=0, help="seconds to wait after each step")
    arguments = parser.parse_args()
    loss = train(arguments.out, arguments.steps, arguments.pause)
    print(f"Trained {arguments.steps} steps; the loss is {loss:.3f} and looks fine.")


if __name__ == "__main__":
    main()
