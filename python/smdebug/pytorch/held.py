"""Gradients that wait until backward ends, so that they can be reduced together.

For devices that have none of our kernels; those that have hold gradients in the core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

# Gradients of this size together are read at the latest.
HELD_BYTES = 256 << 20

Pairs = list[tuple[str, torch.Tensor]]


@dataclass
class _Held:
    name: str
    alias: torch.Tensor  # shares the memory: backward takes over a gradient that nobody else has
    version: int


class HeldGradients:
    """What backward has handed on so far. One thread at a time."""

    def __init__(self) -> None:
        self._held: list[_Held] = []
        self._bytes = 0
        self._is_queued = False
        self._may_hold = True

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, name: str, gradient: torch.Tensor, ended: Callable[[], None]) -> bool:
        """Keeps a gradient until release(), which `ended` calls; False: it must be read now."""
        if not self._may_hold:
            return False
        try:
            version = gradient._version
            if not self._is_queued:
                torch.autograd.Variable._execution_engine.queue_callback(ended)
        except RuntimeError:  # of inference mode, or not inside of backward
            return False
        self._is_queued = True
        self._held.append(_Held(name, gradient.detach(), version))
        self._bytes += gradient.numel() * gradient.element_size()
        if self._bytes >= HELD_BYTES:
            ended()
        return True

    def release(self) -> tuple[Pairs, list[str]]:
        """Those that are as they were, and the names of those that somebody has changed."""
        held, self._held = self._held, []
        self._bytes = 0
        self._is_queued = False
        steady = [(item.name, item.alias) for item in held if item.alias._version == item.version]
        changed = [item.name for item in held if item.alias._version != item.version]
        if changed:
            self._may_hold = False
        return steady, changed
