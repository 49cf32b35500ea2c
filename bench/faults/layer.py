"""Layers with a hand-written backward pass.

A layer owns its parameters and, after `backward`, the gradients of the last batch. `taps` holds what
the layer shows to a recorder after `forward`, under the names that a hook for modules would give.
Arrays keep the type of the parameters: float32 in trainings, float64 where gradients are checked.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.random import Generator

Array = np.ndarray
Tamper = Callable[[Array], Array]


class Layer:
    """Base of all layers. One thread at a time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.params: dict[str, Array] = {}
        self.grads: dict[str, Array] = {}
        self.taps: dict[str, Array] = {}
        # An injected fault replaces what the layer puts out.
        self.tamper: Tamper | None = None

    def forward(self, x: Array) -> Array:
        raise NotImplementedError

    def backward(self, upstream: Array) -> Array:
        raise NotImplementedError

    def layers(self) -> list[Layer]:
        """This layer and those inside of it, in the order of the forward pass."""
        return [self]

    def out(self, y: Array) -> Array:
        return y if self.tamper is None else self.tamper(y)


class Dense(Layer):
    """y = x Wᵀ + b over the last axis; the weight has the shape (outputs, inputs)."""

    def __init__(
        self, name: str, inputs: int, outputs: int, rng: Generator, gain: float = 2.0
    ) -> None:
        super().__init__(name)
        weight = rng.standard_normal((outputs, inputs)) * np.sqrt(gain / inputs)
        self.params[f"{name}.weight"] = weight.astype(np.float32)
        self.params[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        self.x = x
        y = x @ self.params[f"{self.name}.weight"].T + self.params[f"{self.name}.bias"]
        return self.out(y)

    def backward(self, upstream: Array) -> Array:
        flat = upstream.reshape(-1, upstream.shape[-1])
        self.grads[f"{self.name}.weight"] = flat.T @ self.x.reshape(-1, self.x.shape[-1])
        self.grads[f"{self.name}.bias"] = flat.sum(axis=0)
        return upstream @ self.params[f"{self.name}.weight"]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


class Activation(Layer):
    """ReLU, tanh or sigmoid, element by element; the name ends in the kind."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(f"{name}.{kind}")
        self.kind = kind

    def forward(self, x: Array) -> Array:
        if self.kind == "relu":
            y = np.maximum(x, 0)
        else:
            y = np.tanh(x) if self.kind == "tanh" else sigmoid(x)
        self.y = y
        y = self.out(y)
        self.taps = {f"{self.name}_input_0": x, f"{self.name}_output_0": y}
        return y

    def backward(self, upstream: Array) -> Array:
        if self.kind == "relu":
            return upstream * (self.y > 0)
        if self.kind == "tanh":
            return upstream * (1 - self.y * self.y)
        return upstream * (self.y * (1 - self.y))


class Rescale(Layer):
    """Divides by a factor that a fault may set; 1 does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.factor = 1.0

    def forward(self, x: Array) -> Array:
        return x if self.factor == 1.0 else x.astype(np.float32) / np.float32(self.factor)

    def backward(self, upstream: Array) -> Array:
        # The factor was put in just before, so that both together change nothing.
        return upstream


class Sequence(Layer):
    """Layers one after the other."""

    def __init__(self, name: str, parts: list[Layer]) -> None:
        super().__init__(name)
        self.parts = parts

    def forward(self, x: Array) -> Array:
        for part in self.parts:
            x = part.forward(x)
        return x

    def backward(self, upstream: Array) -> Array:
        for part in reversed(self.parts):
            upstream = part.backward(upstream)
        return upstream

    def layers(self) -> list[Layer]:
        return [layer for part in self.parts for layer in part.layers()]


class Residual(Layer):
    """y = x + gain · body(x); with `start` the gain is a parameter that begins there."""

    def __init__(self, name: str, body: Layer, start: float | None = None) -> None:
        super().__init__(name)
        self.body = body
        if start is not None:
            self.params[f"{name}.gain.weight"] = np.full(1, start, np.float32)

    def forward(self, x: Array) -> Array:
        self.inner = self.body.forward(x)
        gain = self.params.get(f"{self.name}.gain.weight")
        return x + (self.inner if gain is None else gain * self.inner)

    def backward(self, upstream: Array) -> Array:
        gain = self.params.get(f"{self.name}.gain.weight")
        through = upstream
        if gain is not None:
            self.grads[f"{self.name}.gain.weight"] = np.sum(upstream * self.inner).reshape(1)
            through = gain * upstream
        return upstream + self.body.backward(through)

    def layers(self) -> list[Layer]:
        return [*self.body.layers(), self]


class LayerNorm(Layer):
    """Zero mean and unit variance over the last axis, with gain and bias."""

    def __init__(self, name: str, width: int) -> None:
        super().__init__(name)
        self.params[f"{name}.weight"] = np.ones(width, np.float32)
        self.params[f"{name}.bias"] = np.zeros(width, np.float32)

    def forward(self, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        self.scale = 1 / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1e-5)
        self.unit = centred * self.scale
        return self.unit * self.params[f"{self.name}.weight"] + self.params[f"{self.name}.bias"]

    def backward(self, upstream: Array) -> Array:
        axes = tuple(range(upstream.ndim - 1))
        self.grads[f"{self.name}.weight"] = (upstream * self.unit).sum(axis=axes)
        self.grads[f"{self.name}.bias"] = upstream.sum(axis=axes)
        g = upstream * self.params[f"{self.name}.weight"]
        along = (g * self.unit).mean(axis=-1, keepdims=True)
        return self.scale * (g - g.mean(axis=-1, keepdims=True) - self.unit * along)
