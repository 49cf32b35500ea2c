"""Watches optimizers: gradients just before an update, and where a step ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

Sample = Callable[[list[tuple[torch.nn.Parameter, torch.Tensor]]], None]


class OptimizerWatch:
    """Calls `sample` with the gradients of each update and `updated` after it."""

    def __init__(self, sample: Sample | None, updated: Callable[[], None] | None) -> None:
        # Optimizers outlive hooks: their global callbacks must not keep the hook alive.
        self._sample = weakref.WeakMethod(sample) if sample else None
        self._updated = weakref.WeakMethod(updated) if updated else None
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def remove(self) -> None:
        """Stops watching."""
        for handle in self._handles:
            handle.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not _closure(args, kwargs):
            self._give(optimizer)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        # A closure runs forward and backward inside the update.
        if _closure(args, kwargs):
            self._give(optimizer)
        updated = self._updated() if self._updated else None
        if updated:
            updated()

    def _give(self, optimizer: Any) -> None:
        sample = self._sample() if self._sample else None
        if sample is None or _found_inf(optimizer):
            return
        scale = getattr(optimizer, "grad_scale", None)
        pairs = [
            (p, p.grad if scale is None else p.grad.detach() / scale.to(p.grad.device))
            for group in optimizer.param_groups
            for p in group["params"]
            if p.grad is not None
        ]
        sample(pairs)


def _closure(args: Any, kwargs: Any) -> Any:
    """What the program gave to step(); the first argument is the optimizer itself."""
    return kwargs.get("closure") or (args[1] if len(args) > 1 else None)


def _found_inf(optimizer: Any) -> bool:
    """Whether a fused optimizer is going to skip this update."""
    found = getattr(optimizer, "found_inf", None)
    return found is not None and bool(found.item())
