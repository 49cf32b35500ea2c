"""Trainings without a fault, among them those that look as if they had one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from faults import injection as inject
from faults.injection import Injection
from faults.settings import TRAINERS


@dataclass(frozen=True)
class Variant:
    """A healthy training of some trainers, with settings of its own."""

    name: str
    trainers: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    injection: Callable[[], Injection] = Injection
    # Begins with a low loss that stays; others must bring it down.
    is_converged: bool = False


VARIANTS: tuple[Variant, ...] = (
    Variant("plain", tuple(TRAINERS)),
    # Fine-tuning: the first layers are trained already, are frozen, and have no gradient.
    Variant(
        "frozen layers",
        ("mlp", "cnn", "transformer"),
        {"frozen": ("layers.0.", "embedding0")},
        injection=lambda: inject.Trained(60),
        is_converged=True,
    ),
    Variant("zero residual gains", ("mlp", "transformer"), {"residual_start": 0.0, "depth": 3}),
    Variant("warm-up", ("mlp", "regressor", "cnn", "lstm"), {"schedule": "warmup"}),
    Variant(
        "cosine to zero", ("mlp", "regressor", "cnn", "lstm", "transformer"), {"schedule": "cosine"}
    ),
    Variant(
        "converged plateau",
        ("mlp", "circles", "regressor", "lstm"),
        factors={"lr": 0.1},
        injection=lambda: inject.Trained(300),
        is_converged=True,
    ),
    Variant("small batches", ("mlp", "circles", "lstm", "cnn"), {"batch": 4}, {"lr": 0.2}),
    Variant("rare tokens", ("transformer",), {"vocabulary": 400}),
    Variant("shown mask", ("transformer",), {"shows_mask": True}),
    Variant(
        "benign spike",
        ("mlp", "regressor", "cnn", "transformer"),
        injection=lambda: inject.PoisonedBatch(120, 4, harm=False),
    ),
    Variant("tanh", ("mlp", "regressor"), {"activation": "tanh"}),
    Variant("deep", ("mlp",), {"depth": 5, "residual_start": 0.5}),
    Variant("mild decay", ("mlp", "cnn", "regressor"), {"decay": 1e-4}),
    Variant("mild imbalance", ("mlp", "cnn"), {"class_weights": (3, 2, 2, 1)}),
    Variant("Adam", ("mlp", "circles"), {"optimizer": "adam", "lr": 0.005}),
    Variant("clipped", ("mlp", "lstm", "transformer", "ranks"), {"clip": 1.0}),
    Variant("no momentum", ("mlp", "circles"), {"momentum": 0.0, "lr": 0.2}),
    Variant("label noise", ("mlp", "circles"), {"label_noise": 0.05}),
)
