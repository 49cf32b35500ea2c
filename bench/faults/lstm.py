"""An LSTM over sequences of the shape (samples, time, features)."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from faults.layer import Array, Layer, sigmoid


class Lstm(Layer):
    """Puts out its last hidden state. Gates stand in the order input, forget, output, candidate."""

    def __init__(self, name: str, inputs: int, width: int, rng: Generator) -> None:
        super().__init__(name)
        self.width = width
        shape_in, shape_hidden = (4 * width, inputs), (4 * width, width)
        self.params = {
            f"{name}.weight_ih": _uniform(shape_in, width, rng),
            f"{name}.weight_hh": _uniform(shape_hidden, width, rng),
            f"{name}.bias": np.zeros(4 * width, np.float32),
        }
        self.params[f"{name}.bias"][width : 2 * width] = 1

    def forward(self, x: Array) -> Array:
        n, time, _ = x.shape
        h = self.width
        into = x @ self.params[f"{self.name}.weight_ih"].T + self.params[f"{self.name}.bias"]
        recurrent = self.params[f"{self.name}.weight_hh"].T
        hidden = np.zeros((n, h), x.dtype)
        cell = np.zeros((n, h), x.dtype)
        self.x = x
        self.cache = []
        before = np.empty((n, time, 4 * h), x.dtype)
        for t in range(time):
            z = into[:, t] + hidden @ recurrent
            before[:, t] = z
            gates = sigmoid(z[:, : 3 * h])
            candidate = np.tanh(z[:, 3 * h :])
            i, f, o = gates[:, :h], gates[:, h : 2 * h], gates[:, 2 * h :]
            previous = cell
            cell = f * cell + i * candidate
            squashed = np.tanh(cell)
            self.cache.append((hidden, previous, i, f, o, candidate, squashed))
            hidden = o * squashed
        hidden = self.out(hidden)
        self.taps = {
            f"{self.name}.sigmoid_input_0": before[:, -1, : 3 * h],
            f"{self.name}.tanh_input_0": before[:, -1, 3 * h :],
            f"{self.name}_output_0": hidden,
        }
        return hidden

    def backward(self, upstream: Array) -> Array:
        weight_ih = self.params[f"{self.name}.weight_ih"]
        weight_hh = self.params[f"{self.name}.weight_hh"]
        n, time, _ = self.x.shape
        deltas = np.empty((n, time, 4 * self.width), upstream.dtype)
        grad_hh = np.zeros_like(weight_hh)
        d_hidden, d_cell = upstream, np.zeros_like(upstream)
        for t in reversed(range(time)):
            hidden, previous, i, f, o, candidate, squashed = self.cache[t]
            d_cell = d_cell + d_hidden * o * (1 - squashed * squashed)
            delta = np.concatenate(
                [
                    d_cell * candidate * i * (1 - i),
                    d_cell * previous * f * (1 - f),
                    d_hidden * squashed * o * (1 - o),
                    d_cell * i * (1 - candidate * candidate),
                ],
                axis=1,
            )
            deltas[:, t] = delta
            grad_hh += delta.T @ hidden
            d_hidden = delta @ weight_hh
            d_cell = d_cell * f
        flat = deltas.reshape(n * time, -1)
        self.grads = {
            f"{self.name}.weight_ih": flat.T @ self.x.reshape(n * time, -1),
            f"{self.name}.weight_hh": grad_hh,
            f"{self.name}.bias": flat.sum(axis=0),
        }
        return deltas @ weight_ih


def _uniform(shape: tuple[int, int], width: int, rng: Generator) -> Array:
    bound = 1 / np.sqrt(width)
    return rng.uniform(-bound, bound, shape).astype(np.float32)
