"""What a transformer has besides dense layers: token embeddings and causal self-attention."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from faults.layer import Array, Dense, Layer


class Embedding(Layer):
    """Rows of a table by token, plus a learned row for each position."""

    def __init__(self, name: str, tokens: int, positions: int, width: int, rng: Generator) -> None:
        super().__init__(name)
        table = rng.standard_normal((tokens, width)) * 0.3
        place = rng.standard_normal((positions, width)) * 0.1
        self.params[f"{name}.weight"] = table.astype(np.float32)
        self.params[f"{name}.position.weight"] = place.astype(np.float32)

    def forward(self, x: Array) -> Array:
        self.x = x
        self.taps = {f"{self.name}_input_0": x}
        place = self.params[f"{self.name}.position.weight"]
        y = self.params[f"{self.name}.weight"][x] + place[: x.shape[1]]
        return self.out(y)

    def backward(self, upstream: Array) -> Array:
        tokens = np.arange(len(self.params[f"{self.name}.weight"]))
        chosen = (self.x.ravel() == tokens[:, None]).astype(upstream.dtype)
        table = chosen @ upstream.reshape(-1, upstream.shape[-1])
        place = np.zeros_like(self.params[f"{self.name}.position.weight"])
        place[: upstream.shape[1]] = upstream.sum(axis=0)
        self.grads = {f"{self.name}.weight": table, f"{self.name}.position.weight": place}
        return upstream


class Attention(Layer):
    """Causal self-attention with several heads."""

    # Samples of a batch whose probabilities are shown to the recorder.
    SHOWN = 2

    def __init__(self, name: str, width: int, heads: int, rng: Generator) -> None:
        super().__init__(name)
        self.heads = heads
        self.q, self.k, self.v, self.o = (
            Dense(f"{name}.{part}", width, width, rng, gain=1.0) for part in "qkvo"
        )
        # Shows the scores as the softmax gets them, with −∞ where keys are masked.
        self.shows_mask = False

    def forward(self, x: Array) -> Array:
        n, time, width = x.shape
        self.split = (n, time, self.heads, width // self.heads)
        q, k, v = (
            part.forward(x).reshape(self.split).transpose(0, 2, 1, 3)
            for part in (self.q, self.k, self.v)
        )
        scores = (q @ k.transpose(0, 1, 3, 2)) * np.float32(1 / np.sqrt(self.split[3]))
        hidden = np.triu(np.ones((time, time), bool), 1)
        masked = np.where(hidden, np.asarray(-np.inf, scores.dtype), scores)
        raised = np.exp(masked - masked.max(axis=-1, keepdims=True))
        self.a = raised / raised.sum(axis=-1, keepdims=True)
        self.qkv = (q, k, v)
        mixed = (self.a @ v).transpose(0, 2, 1, 3).reshape(n, time, width)
        self.taps = {
            f"{self.name}.scores_output_0": scores,
            f"{self.name}.softmax_output_0": self.a[: self.SHOWN],
        }
        if self.shows_mask:
            mask = np.where(hidden, -np.inf, 0).astype(np.float32)
            self.taps[f"{self.name}.mask_output_0"] = mask
            self.taps[f"{self.name}.softmax_input_0"] = masked[: self.SHOWN]
        return self.out(self.o.forward(mixed))

    def backward(self, upstream: Array) -> Array:
        q, k, v = self.qkv
        mixed = self.o.backward(upstream).reshape(self.split).transpose(0, 2, 1, 3)
        d_v = self.a.transpose(0, 1, 3, 2) @ mixed
        d_a = mixed @ v.transpose(0, 1, 3, 2)
        d_scores = self.a * (d_a - (d_a * self.a).sum(axis=-1, keepdims=True))
        d_scores = d_scores * np.float32(1 / np.sqrt(self.split[3]))
        d_q = d_scores @ k
        d_k = d_scores.transpose(0, 1, 3, 2) @ q
        n, time, _, _ = self.split
        d_x = np.zeros(())
        for part, d in ((self.q, d_q), (self.k, d_k), (self.v, d_v)):
            d_x = d_x + part.backward(d.transpose(0, 2, 1, 3).reshape(n, time, -1))
        return d_x

    def layers(self) -> list[Layer]:
        return [self.q, self.k, self.v, self, self.o]
