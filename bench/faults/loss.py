"""Losses, each with its gradient. The wrong heads of the bench are here, too.

A loss takes what the model puts out and the labels, and gives (value, gradient, what the loss saw).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from faults.layer import Array

Loss = Callable[[Array, Array], tuple[float, Array, Array]]

# Token that stands for nothing: its positions do not count.
PADDING = 0


def log_softmax(z: Array) -> Array:
    shifted = z - z.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def cross_entropy(z: Array, label: Array) -> tuple[float, Array, Array]:
    """Softmax and mean negative log-likelihood, as one would have it."""
    rows = np.arange(len(label))
    logs = log_softmax(z)
    gradient = np.exp(logs)
    gradient[rows, label] -= 1
    return float(-logs[rows, label].mean()), gradient / len(label), z


def without_softmax(z: Array, label: Array) -> tuple[float, Array, Array]:
    """Negative log-likelihood of raw outputs: the log-softmax was forgotten."""
    rows = np.arange(len(label))
    gradient = np.zeros_like(z)
    gradient[rows, label] = -1 / len(label)
    return float(-z[rows, label].mean()), gradient, z


def double_softmax(z: Array, label: Array) -> tuple[float, Array, Array]:
    """Cross-entropy of outputs that went through a softmax already."""
    p = np.exp(log_softmax(z))
    value, upstream, _ = cross_entropy(p, label)
    return value, p * (upstream - (upstream * p).sum(axis=-1, keepdims=True)), p


def squared_ids(z: Array, label: Array) -> tuple[float, Array, Array]:
    """Squared error between all outputs and the number of the class."""
    difference = z - label[:, None].astype(z.dtype)
    return float((difference**2).mean()), 2 * difference / difference.size, z


def squared(z: Array, target: Array) -> tuple[float, Array, Array]:
    """Mean squared error."""
    difference = z - target
    return float((difference**2).mean()), 2 * difference / difference.size, z


# By setting: the function and the name of the module that would compute it.
LOSSES: dict[str, tuple[Loss, str]] = {
    "cross_entropy": (cross_entropy, "CrossEntropyLoss"),
    "without_softmax": (without_softmax, "NLLLoss"),
    "double_softmax": (double_softmax, "CrossEntropyLoss"),
    "squared_ids": (squared_ids, "MSELoss"),
    "squared": (squared, "MSELoss"),
}


def of_positions(loss: Loss, z: Array, label: Array) -> tuple[float, Array, Array]:
    """A loss of every position of a sequence that is not padding."""
    kept = label != PADDING
    value, gradient, seen = loss(z[kept], label[kept])
    full = np.zeros_like(z)
    full[kept] = gradient
    return value, full, seen
