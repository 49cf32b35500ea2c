"""What the recorders of a soak save: a pure function of run, life and step.

A step holds its own life, so that a reader can tell which values belong to it without asking the
recorder.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MARK = "mark"
LOSS = "scalar/loss"
SHAPES = {
    "layers.0/weight": (64, 64),
    "layers.0/bias": (64,),
    "layers.1/weight": (64, 16),
    "gradient/layers.0/weight": (64, 64),
    "outputs/logits": (4, 8),
}
BIG = "big"
BIG_EVERY = 40
BIG_SHAPE = (256, 256)
# Saved as statistics alone; least and greatest are elements, so they are exact.
REDUCED = ["reduced/a", "reduced/b", "reduced/c"]
REDUCED_SIZE = 64


def loss(step: int) -> float:
    """Independent of the life, so that a line of `smdebug tail` can be judged by itself."""
    return 1.0 + 8.0 / (step + 8)


def raw(run: int, life: int, step: int) -> dict[str, Array]:
    """The tensors of a step whose values are saved."""
    rng = np.random.default_rng([run, life, step])
    shapes = dict(SHAPES)
    if step % BIG_EVERY == 0:
        shapes[BIG] = BIG_SHAPE
    tensors = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    return {MARK: np.array([life, step], np.int64), **tensors}


def reduced(run: int, life: int, step: int) -> dict[str, Array]:
    """The tensors of a step of which only statistics are saved."""
    rng = np.random.default_rng([run, life, step, 1])
    return {name: rng.standard_normal(REDUCED_SIZE, np.float32) for name in REDUCED}


def checksum(
    tensors: Mapping[str, Array], extremes: Mapping[str, tuple[float, float]], loss: float
) -> int:
    """One number for everything that a step holds."""
    total = zlib.crc32(np.float64(loss).tobytes())
    for name in sorted(tensors):
        array = tensors[name]
        total = zlib.crc32(f"{name}{array.dtype}{array.shape}".encode(), total)
        total = zlib.crc32(np.ascontiguousarray(array).tobytes(), total)
    for name in sorted(extremes):
        total = zlib.crc32(name.encode() + np.array(extremes[name], np.float64).tobytes(), total)
    return total


def expected_checksum(run: int, life: int, step: int) -> int:
    """The checksum of a step as its recorder made it."""
    extremes = {
        name: (float(array.min()), float(array.max()))
        for name, array in reduced(run, life, step).items()
    }
    return checksum(raw(run, life, step), extremes, loss(step))


def read_step(trial: Any, step: int) -> tuple[int, int]:
    """(life, checksum) of a step as a trial gives it."""
    tensors = {name: trial.tensor(name).value(step) for name in [MARK, *SHAPES]}
    if step % BIG_EVERY == 0:
        tensors[BIG] = trial.tensor(BIG).value(step)
    extremes = {}
    for name in REDUCED:
        tensor = trial.tensor(name)
        extremes[name] = tuple(float(tensor.reduction_value(step, kind)) for kind in ("min", "max"))
    number = float(np.asarray(trial.tensor(LOSS).value(step)).reshape(-1)[0])
    return int(tensors[MARK][0]), checksum(tensors, extremes, number)
