"""The models of the trainers, put together from layers."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from faults import grammar
from faults.attention import Attention, Embedding
from faults.convolution import AveragePool, Convolution, Flatten
from faults.data import IMAGE_SIZE
from faults.layer import Activation, Array, Dense, Layer, LayerNorm, Rescale, Residual, Sequence
from faults.lstm import Lstm
from faults.settings import Settings

HEADS = 4
INPUTS = {"blobs": 8, "circles": 2, "regression": 4, "sequences": 4}
# What goes into the model is recorded under these names; images and tokens have the names that the
# rules about them look for.
INPUT_NAMES = {"images": "hybridsequential0_input_0"}


class Model:
    """Layers with one dictionary of parameters, which optimizers change in place."""

    def __init__(self, root: Layer, input_name: str | None) -> None:
        self.root = root
        self.input_name = input_name
        self.layers = root.layers()
        self.params = {n: p for layer in self.layers for n, p in layer.params.items()}

    def layer(self, name: str) -> Layer:
        return next(layer for layer in self.layers if layer.name == name)

    def forward(self, x: Array) -> Array:
        return self.root.forward(x)

    def backward(self, upstream: Array) -> dict[str, Array]:
        """The gradients of all parameters."""
        self.root.backward(upstream)
        return {n: g for layer in self.layers for n, g in layer.grads.items()}

    def use_double(self) -> None:
        """Goes over to float64, in which finite differences are exact enough."""
        for layer in self.layers:
            for name, value in layer.params.items():
                layer.params[name] = value.astype(np.float64)
        self.params = {n: p for layer in self.layers for n, p in layer.params.items()}


def _gain(activation: str) -> float:
    return 2.0 if activation == "relu" else 1.0


def _mlp(settings: Settings, inputs: int, outputs: int, rng: Generator) -> Layer:
    parts: list[Layer] = []
    for i in range(settings.depth):
        name = f"layers.{i}"
        body = [
            Dense(f"{name}.fc", inputs, settings.width, rng, _gain(settings.activation)),
            Activation(name, settings.activation),
            Rescale(f"{name}.rescale"),
        ]
        if i > 0 and settings.residual_start is not None:
            parts.append(Residual(name, Sequence(name, body), settings.residual_start))
        else:
            parts += body
        inputs = settings.width
    return Sequence("net", [*parts, Dense("head", inputs, outputs, rng, gain=1.0)])


def _cnn(settings: Settings, outputs: int, rng: Generator) -> Layer:
    width = settings.width
    flat = width * (IMAGE_SIZE // 4) ** 2
    return Sequence(
        "net",
        [
            Convolution("layers.0.conv", 1, width, rng),
            Activation("layers.0", settings.activation),
            Rescale("layers.0.rescale"),
            AveragePool("layers.0.pool", 2),
            Convolution("layers.1.conv", width, width, rng),
            Activation("layers.1", settings.activation),
            Rescale("layers.1.rescale"),
            AveragePool("layers.1.pool", 2),
            Flatten("flatten"),
            Dense("head", flat, outputs, rng, gain=1.0),
        ],
    )


def _lstm(settings: Settings, outputs: int, rng: Generator) -> Layer:
    width = settings.width
    return Sequence(
        "net",
        [
            Lstm("lstm", INPUTS["sequences"], width, rng),
            Dense("layers.0.fc", width, width, rng, gain=1.0),
            Activation("layers.0", "tanh"),
            Dense("head", width, outputs, rng, gain=1.0),
        ],
    )


def _transformer(settings: Settings, rng: Generator) -> Layer:
    width = settings.width
    parts: list[Layer] = [
        Embedding("embedding0", settings.vocabulary, grammar.LENGTH, width, rng),
    ]
    for i in range(settings.depth):
        name = f"layers.{i}"
        attention = Attention(f"{name}.attention", width, HEADS, rng)
        attention.shows_mask = settings.shows_mask
        mixing = [LayerNorm(f"{name}.norm1", width), attention]
        thinking = [
            LayerNorm(f"{name}.norm2", width),
            Dense(f"{name}.fc1", width, width, rng),
            Activation(name, "relu"),
            Dense(f"{name}.fc2", width, width, rng, gain=0.5),
        ]
        start = settings.residual_start
        parts.append(Residual(f"{name}.mix", Sequence(name, mixing), start))
        parts.append(Residual(f"{name}.feed", Sequence(name, thinking), start))
    norm = LayerNorm("norm", width)
    return Sequence("net", [*parts, norm, Dense("head", width, settings.vocabulary, rng, 0.3)])


def make_model(settings: Settings, classes: int, rng: Generator) -> Model:
    """A fresh model for a task."""
    if settings.task == "grammar":
        return Model(_transformer(settings, rng), None)
    name = INPUT_NAMES.get(settings.task, "Net_input_0")
    if settings.task == "images":
        return Model(_cnn(settings, classes, rng), name)
    if settings.task == "sequences":
        return Model(_lstm(settings, classes, rng), name)
    return Model(_mlp(settings, INPUTS[settings.task], classes, rng), name)
