"""Layers for images of the shape (samples, channels, height, width)."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.random import Generator

from faults.layer import Array, Layer

KERNEL = 3


class Convolution(Layer):
    """A 3×3 convolution that keeps height and width."""

    def __init__(self, name: str, inputs: int, outputs: int, rng: Generator) -> None:
        super().__init__(name)
        fan_in = inputs * KERNEL * KERNEL
        weight = rng.standard_normal((outputs, inputs, KERNEL, KERNEL)) * np.sqrt(2 / fan_in)
        self.params[f"{name}.weight"] = weight.astype(np.float32)
        self.params[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def forward(self, x: Array) -> Array:
        n, c, h, w = x.shape
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (KERNEL, KERNEL), axis=(2, 3))
        self.columns = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n * h * w, -1)
        weight = self.params[f"{self.name}.weight"]
        y = self.columns @ weight.reshape(len(weight), -1).T + self.params[f"{self.name}.bias"]
        self.shape = (n, c, h, w)
        return self.out(y.reshape(n, h, w, -1).transpose(0, 3, 1, 2))

    def backward(self, upstream: Array) -> Array:
        n, c, h, w = self.shape
        weight = self.params[f"{self.name}.weight"]
        flat = upstream.transpose(0, 2, 3, 1).reshape(n * h * w, -1)
        self.grads[f"{self.name}.weight"] = (flat.T @ self.columns).reshape(weight.shape)
        self.grads[f"{self.name}.bias"] = flat.sum(axis=0)
        columns = (flat @ weight.reshape(len(weight), -1)).reshape(n, h, w, c, KERNEL, KERNEL)
        padded = np.zeros((n, c, h + 2, w + 2), upstream.dtype)
        for i in range(KERNEL):
            for j in range(KERNEL):
                padded[:, :, i : i + h, j : j + w] += columns[..., i, j].transpose(0, 3, 1, 2)
        return padded[:, :, 1:-1, 1:-1]


class AveragePool(Layer):
    """Means over squares of `size`."""

    def __init__(self, name: str, size: int) -> None:
        super().__init__(name)
        self.size = size

    def forward(self, x: Array) -> Array:
        n, c, h, w = x.shape
        s = self.size
        return x.reshape(n, c, h // s, s, w // s, s).mean(axis=(3, 5))

    def backward(self, upstream: Array) -> Array:
        s = self.size
        return np.repeat(np.repeat(upstream, s, axis=2), s, axis=3) / np.float32(s * s)


class Flatten(Layer):
    """All axes but the first become one."""

    def forward(self, x: Array) -> Array:
        self.shape = x.shape
        return x.reshape(len(x), -1)

    def backward(self, upstream: Array) -> Array:
        return upstream.reshape(self.shape)
