"""Everything that can be chosen about a training. Faults and variants change some of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """One training. Steps are steps of the mode TRAIN."""

    task: str
    steps: int = 240
    batch: int = 64
    train_samples: int = 8192
    validation_samples: int = 512
    eval_interval: int = 20
    # Whole tensors are saved at this interval, and what goes into the model at the other.
    raw_interval: int = 10
    input_interval: int = 10

    # Model.
    activation: str = "relu"
    depth: int = 2
    width: int = 32
    residual_start: float | None = None
    frozen: tuple[str, ...] = ()
    loss: str = "cross_entropy"
    shows_mask: bool = False
    vocabulary: int = 28

    # Data.
    input_scale: float = 1.0
    input_offset: float = 0.0
    label_noise: float = 0.0
    class_weights: tuple[float, ...] = ()
    filler: float = 0.0
    dominating: bool = False
    # A split of a tree must explain this much, so that pure noise is left alone.
    least_gain: float = 4.0

    # Optimization.
    optimizer: str = "sgd"
    lr: float = 0.05
    momentum: float = 0.9
    decay: float = 0.0
    eps: float = 1e-8
    schedule: str = "constant"
    clip: float = 0.0
    ranks: int = 1


# The trainings as they should be, by the name of the trainer.
TRAINERS: dict[str, Settings] = {
    "mlp": Settings("blobs"),
    "circles": Settings("circles"),
    "regressor": Settings("regression", loss="squared", optimizer="adam", lr=0.005),
    "cnn": Settings(
        "images", batch=24, lr=0.02, train_samples=2880, width=6, raw_interval=20, input_interval=5
    ),
    "lstm": Settings(
        "sequences", batch=32, optimizer="adam", lr=0.01, width=16, train_samples=4096
    ),
    "transformer": Settings(
        "grammar",
        steps=200,
        batch=12,
        width=64,
        optimizer="adam",
        lr=0.002,
        schedule="warmup",
        train_samples=1200,
        validation_samples=48,
        raw_interval=50,
        input_interval=10,
    ),
    "ranks": Settings("blobs", batch=32, ranks=2, raw_interval=20),
    "trees": Settings("table", steps=100, train_samples=3000, validation_samples=1000, depth=3),
}


def settings_of(trainer: str, seed: int, changes: dict[str, Any]) -> Settings:
    """The settings of a trainer with some of them changed."""
    settings = TRAINERS[trainer]
    if trainer == "ranks":
        settings = replace(settings, ranks=2 + seed % 3)
    return replace(settings, **changes)
