"""Optimizers that change parameters in place. Each replica of a model has one of its own."""

from __future__ import annotations

import numpy as np

from faults.layer import Array

Params = dict[str, Array]


class Sgd:
    """Gradient descent with momentum and L2 decay."""

    def __init__(self, momentum: float, decay: float) -> None:
        self.momentum = momentum
        self.decay = decay
        self.reset()

    def reset(self) -> None:
        self.state: Params = {}
        self.count = 0

    def step(self, params: Params, grads: Params, lr: float) -> None:
        self.count += 1
        for name, gradient in grads.items():
            g = gradient + self.decay * params[name] if self.decay else gradient
            if self.momentum:
                kept = self.state.get(f"momentum_buffer/{name}")
                g = g if kept is None else self.momentum * kept + g
                self.state[f"momentum_buffer/{name}"] = g
            params[name] -= lr * g


class Adam:
    """Adam with bias correction and L2 decay."""

    def __init__(self, eps: float, decay: float) -> None:
        self.eps = eps
        self.decay = decay
        self.reset()

    def reset(self) -> None:
        self.state: Params = {}
        self.count = 0

    def step(self, params: Params, grads: Params, lr: float) -> None:
        self.count += 1
        first, second = 1 - 0.9**self.count, 1 - 0.999**self.count
        for name, gradient in grads.items():
            g = gradient + self.decay * params[name] if self.decay else gradient
            if f"exp_avg/{name}" not in self.state:
                self.state[f"exp_avg/{name}"] = np.zeros_like(g)
                self.state[f"exp_avg_sq/{name}"] = np.zeros_like(g)
            m, v = self.state[f"exp_avg/{name}"], self.state[f"exp_avg_sq/{name}"]
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            params[name] -= lr / first * m / (np.sqrt(v / second) + self.eps)


Optimizer = Sgd | Adam
