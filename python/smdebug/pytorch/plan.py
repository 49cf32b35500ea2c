"""What a step wants of a model, worked out once for as long as the model has the same parts."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from smdebug.pytorch.names import Root

# (name, object), without keeping the object alive.
References = list[tuple[str, Callable[[], Any]]]


class Plan:
    """The wanted parameters, gradients and modules of one model, by name."""

    def __init__(
        self,
        root: Root,
        module: nn.Module,
        holds: Callable[[str], bool],
        holds_tensors_of: Callable[[str], bool],
    ) -> None:
        self.revision = root.revision
        self._parameters: References = []
        self._gradients: References = []
        for name, parameter in root.parameters(module):
            if holds(name):
                self._parameters.append((name, weakref.ref(parameter)))
            if holds(f"gradient/{name}"):
                self._gradients.append((f"gradient/{name}", weakref.ref(parameter)))
        self._modules: References = [
            (name, weakref.ref(inner))
            for name, inner in root.modules(module)
            if holds_tensors_of(name)
        ]

    def parameters(self) -> Iterable[tuple[str, torch.Tensor]]:
        """Those that are saved."""
        return _alive(self._parameters)

    def gradients(self) -> Iterable[tuple[str, torch.Tensor]]:
        """(name of the gradient, parameter)."""
        return _alive(self._gradients)

    def modules(self) -> Iterable[tuple[str, nn.Module]]:
        """Those with an input or output that may be saved."""
        return _alive(self._modules)


def _alive(references: References) -> Iterable[tuple[str, Any]]:
    for name, reference in references:
        found = reference()
        if found is not None:
            yield name, found
