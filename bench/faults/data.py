"""Generated data: a training set and a validation set for each task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from faults import grammar
from faults.layer import Array
from faults.settings import Settings

IMAGE_SIZE = 16
SEQUENCE_LENGTH = 12


@dataclass
class Data:
    """What a model is fed with; labels are class numbers or, for regression, targets."""

    train: tuple[Array, Array]
    validation: tuple[Array, Array]
    classes: int


Maker = Callable[[Settings, Generator, Array], Array]


def _labels(settings: Settings, rng: Generator, count: int, classes: int) -> Array:
    weights = np.array(settings.class_weights or (1.0,) * classes)
    return rng.choice(classes, count, p=weights / weights.sum())


def blobs(settings: Settings, rng: Generator, labels: Array) -> Array:
    """Four clouds in eight dimensions that overlap a little."""
    centres = np.random.default_rng(5).standard_normal((4, 8)) * 1.2
    return centres[labels] + rng.standard_normal((len(labels), 8))


def circles(settings: Settings, rng: Generator, labels: Array) -> Array:
    """Points on two rings."""
    radius = 0.7 + labels + 0.2 * rng.standard_normal(len(labels))
    angle = rng.uniform(0, 2 * np.pi, len(labels))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def images(settings: Settings, rng: Generator, labels: Array) -> Array:
    """Rows, columns, diagonals or a square, at any place, in noise."""
    at = np.arange(IMAGE_SIZE)
    rows, columns = np.meshgrid(at, at, indexing="ij")
    shift = rng.integers(0, 4, (len(labels), 1, 1))
    patterns = [
        (rows + shift) % 4 < 2,
        (columns + shift) % 4 < 2,
        (rows + columns + shift) % 4 < 2,
        (abs(rows - 6 - shift) < 5) & (abs(columns - 6 - shift) < 5),
    ]
    picture = np.choose(labels[:, None, None], patterns)
    return (2.0 * picture - 1 + 2.0 * rng.standard_normal(picture.shape))[:, None]


def sequences(settings: Settings, rng: Generator, labels: Array) -> Array:
    """Waves whose frequency is the class, in four noisy channels."""
    time = np.arange(SEQUENCE_LENGTH)[None, :, None]
    phase = rng.uniform(0, 2 * np.pi, (len(labels), 1, 4))
    wave = np.sin(time * (0.5 + 0.7 * labels[:, None, None]) + phase)
    return wave + 0.6 * rng.standard_normal(wave.shape)


CLASSIFICATION: dict[str, tuple[Maker, int]] = {
    "blobs": (blobs, 4),
    "circles": (circles, 2),
    "images": (images, 4),
    "sequences": (sequences, 3),
}


def regression(rng: Generator, count: int) -> tuple[Array, Array]:
    """A smooth function of four numbers, with noise; targets have unit variance."""
    x = rng.standard_normal((count, 4))
    y = np.sin(1.5 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2] + 0.3 * x[:, 3]
    return x, (y + 0.15 * rng.standard_normal(count))[:, None]


def make_data(settings: Settings, rng: Generator) -> Data:
    """The data of a training, with the settings' mistakes in it."""
    counts = (settings.train_samples, settings.validation_samples)
    if settings.task == "grammar":
        parts = [grammar.sentences(settings, rng, count) for count in counts]
        return Data(parts[0], parts[1], settings.vocabulary)
    parts = []
    classes = 1
    for count in counts:
        if settings.task == "regression":
            x, y = regression(rng, count)
            y = y.astype(np.float32)
        else:
            maker, classes = CLASSIFICATION[settings.task]
            y = _labels(settings, rng, count, classes)
            x = maker(settings, rng, y)
        parts.append((x, y))
    mean, deviation = parts[0][0].mean(), parts[0][0].std()
    made = [
        (
            ((x - mean) / deviation * settings.input_scale + settings.input_offset).astype(
                np.float32
            ),
            y,
        )
        for x, y in parts
    ]
    if settings.label_noise:
        x, y = made[0]
        made[0] = x, _noisy(y, settings.label_noise, classes, rng)
    return Data(made[0], made[1], classes)


def _noisy(y: Array, share: float, classes: int, rng: Generator) -> Array:
    """Some labels become those of other samples, some targets are off."""
    hit = rng.random(len(y)) < share
    if classes == 1:
        return (y + hit[:, None] * rng.standard_normal(y.shape)).astype(y.dtype)
    return np.where(hit, rng.permutation(y), y)
