"""Watches optimizers: gradients just before an update, their state after it, where a step ends."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)


@dataclass
class Update:
    """Parameters and their gradients, just before an optimizer uses them.

    Fused optimizers divide gradients by a scale themselves, and skip the update where a device has
    found an infinity in them.
    """

    gradients: list[tuple[torch.nn.Parameter, torch.Tensor]]
    scale: torch.Tensor | None
    found_inf: torch.Tensor | None

    def unscaled(self, gradients: list[torch.Tensor]) -> list[torch.Tensor]:
        """Gradients of this update as it uses them; in one launch where that can be."""
        scale = self.scale
        if scale is None:
            return gradients
        gradients = [gradient.detach() for gradient in gradients]
        kinds = {(type(g), g.device, g.dtype, g.layout) for g in gradients}
        if kinds == {(torch.Tensor, scale.device, gradients[0].dtype, torch.strided)}:
            return list(torch._foreach_div(gradients, scale))
        return [g / scale.to(g.device) for g in gradients]


class Listener(Protocol):
    """Who wants to know of updates. Failures in here are its own to handle."""

    def wants_gradients(self) -> bool: ...
    def on_update(self, update: Update) -> None: ...
    def wants_state(self) -> bool: ...
    def on_updated(self, state: list[tuple[torch.nn.Parameter, str, torch.Tensor]]) -> None: ...
    def guarded(self, site: str, function: Callable[..., object], *args: Any) -> None: ...


class OptimizerWatch:
    """Tells a listener the gradients and the state of each update as far as it wants them, and that
    there was one."""

    def __init__(self, listener: Listener) -> None:
        # Optimizers outlive hooks: their global callbacks must not keep the hook alive.
        self._listener = weakref.ref(listener)
        self._handles = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def remove(self) -> None:
        """Stops watching."""
        for handle in self._handles:
            handle.remove()

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        listener = self._listener()
        if listener is not None and not _closure(args, kwargs):
            listener.guarded("Reading gradients", _give, listener, optimizer)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        listener = self._listener()
        if listener is None:
            return
        # A closure runs forward and backward inside the update.
        if _closure(args, kwargs):
            listener.guarded("Reading gradients", _give, listener, optimizer)
        listener.guarded("An update", _give_state, listener, optimizer)


def _give(listener: Listener, optimizer: Any) -> None:
    if not listener.wants_gradients():
        return
    listener.on_update(
        Update(
            gradients=[
                (p, p.grad)
                for group in optimizer.param_groups
                for p in group["params"]
                if p.grad is not None
            ],
            scale=getattr(optimizer, "grad_scale", None),
            found_inf=getattr(optimizer, "found_inf", None),
        )
    )


def _give_state(listener: Listener, optimizer: Any) -> None:
    state = []
    if listener.wants_state():
        state = [
            (p, key, value)
            for group in optimizer.param_groups
            for p in group["params"]
            for key, value in optimizer.state.get(p, {}).items()
            if isinstance(value, torch.Tensor)
        ]
    listener.on_updated(state)


def _closure(args: Any, kwargs: Any) -> Any:
    """What the program gave to step(); the first argument is the optimizer itself."""
    return kwargs.get("closure") or (args[1] if len(args) > 1 else None)
