"""The callbacks on modules and parameters that saved steps need."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from smdebug.model_plan import Plan


class Attachment:
    """Callbacks that were attached for some plans; steps with the same plans use them again."""

    def __init__(self) -> None:
        self._handles: list[Any] = []
        self.gradient_names: dict[int, str] = {}  # by id of the parameter
        self._frozen: list[weakref.ref[torch.Tensor]] = []
        self.plans: list[Plan] = []  # what they were attached for, if that can come again

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits for a tensor."""
        return not (self._handles or self.gradient_names)

    def add(self, handle: Any) -> None:
        """Takes over a callback that was just attached."""
        self._handles.append(handle)

    def wait_for(self, parameter: torch.Tensor) -> None:
        """A parameter that has no gradient now, and perhaps one later."""
        self._frozen.append(weakref.ref(parameter))

    def fits(self, plans: list[Plan]) -> bool:
        """Whether the callbacks for these plans are in place and see what the last ones see.

        A program may have taken some off, or put its own behind them, which may change a tensor.
        """
        return (
            len(plans) == len(self.plans) > 0
            and all(one is other for one, other in zip(plans, self.plans, strict=True))
            and self._are_last()
            and not any(_can_have_gradient(reference()) for reference in self._frozen)
        )

    def _are_last(self) -> bool:
        for handle in self._handles:
            callbacks = handle.hooks_dict_ref()
            if callbacks is None or next(reversed(callbacks), None) != handle.id:
                return False
        return True

    def remove(self) -> None:
        """Takes the callbacks off."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self.gradient_names.clear()
        self._frozen.clear()
        self.plans.clear()


def _can_have_gradient(parameter: torch.Tensor | None) -> bool:
    return parameter is not None and parameter.requires_grad and parameter.is_leaf
