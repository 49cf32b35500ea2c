"""The hand-written backward passes against finite differences, in double precision."""

from __future__ import annotations

import numpy as np
import pytest

from faults.injection import Injection
from faults.loss import LOSSES
from faults.settings import settings_of
from faults.training import Training

DELTA = 1e-6
# Elements of each parameter that are tried.
TRIED = 4

FORMS = [
    ("mlp", {}),
    ("mlp", {"activation": "tanh", "residual_start": 0.5, "depth": 3}),
    ("mlp", {"activation": "sigmoid", "depth": 3}),
    ("mlp", {"loss": "without_softmax"}),
    ("mlp", {"loss": "double_softmax"}),
    ("mlp", {"loss": "squared_ids"}),
    ("circles", {}),
    ("regressor", {}),
    ("cnn", {}),
    ("lstm", {}),
    ("transformer", {}),
    ("transformer", {"residual_start": 0.7}),
]


def small_training(trainer: str, changes: dict[str, object]) -> Training:
    sizes = {"batch": 3, "train_samples": 8, "validation_samples": 4}
    width = {} if trainer == "transformer" else {"width": 5}
    training = Training(settings_of(trainer, 1, {**sizes, **width, **changes}), Injection(), 1)
    training.models[0].use_double()
    # Biases of zero put units exactly on the kink of a ReLU.
    rng = np.random.default_rng(7)
    for param in training.models[0].params.values():
        param += 0.05 * rng.standard_normal(param.shape)
    return training


@pytest.mark.parametrize(("trainer", "changes"), FORMS)
def test_gradients_equal_finite_differences(trainer: str, changes: dict[str, object]) -> None:
    training = small_training(trainer, changes)
    model = training.models[0]
    x, y = training.data.train[0][:3], training.data.train[1][:3]
    if x.dtype.kind == "f":
        x = x.astype(np.float64)

    def loss() -> float:
        return training.loss_of(model.forward(x), y)[0]

    _, upstream, _ = training.loss_of(model.forward(x), y)
    gradients = {name: g.copy() for name, g in model.backward(upstream).items()}
    assert gradients.keys() == model.params.keys()
    rng = np.random.default_rng(0)
    for name, param in model.params.items():
        flat, slope = param.reshape(-1), gradients[name].reshape(-1)
        for at in rng.choice(flat.size, min(TRIED, flat.size), replace=False):
            kept = flat[at]
            flat[at] = kept + DELTA
            above = loss()
            flat[at] = kept - DELTA
            below = loss()
            flat[at] = kept
            expected = (above - below) / (2 * DELTA)
            assert slope[at] == pytest.approx(expected, rel=2e-4, abs=2e-7), name


def test_every_loss_is_tried() -> None:
    used = {settings_of(trainer, 1, changes).loss for trainer, changes in FORMS}
    assert used == set(LOSSES)
