"""What a step wants of a model, worked out once for as long as the model has the same parts."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, Protocol

# (name, object), without keeping the object alive.
References = list[tuple[str, Callable[[], Any]]]


class Model(Protocol):
    """A registered model, as its adapter knows it."""

    revision: int  # grows when the model may have other parts

    def refresh(self, module: Any) -> None:
        """Brings `revision` up to date."""

    def parameters(self, module: Any) -> Iterable[tuple[str, Any]]:
        """(name, parameter)."""

    def modules(self, module: Any) -> Iterable[tuple[str, Any]]:
        """(name, module) of the model and everything in it."""


class Plan:
    """The wanted parameters, gradients and modules of one model, by name."""

    def __init__(
        self,
        model: Model,
        module: Any,
        holds: Callable[[str], bool],
        holds_tensors_of: Callable[[str], bool],
    ) -> None:
        self.revision = model.revision
        self._parameters: References = []
        self._gradients: References = []
        for name, parameter in model.parameters(module):
            if holds(name):
                self._parameters.append((name, weakref.ref(parameter)))
            if holds(f"gradient/{name}"):
                self._gradients.append((f"gradient/{name}", weakref.ref(parameter)))
        self._modules: References = [
            (name, weakref.ref(inner))
            for name, inner in model.modules(module)
            if holds_tensors_of(name)
        ]

    def parameters(self) -> Iterable[tuple[str, Any]]:
        """Those that are saved."""
        return _alive(self._parameters)

    def gradients(self) -> Iterable[tuple[str, Any]]:
        """(name of the gradient, parameter)."""
        return _alive(self._gradients)

    def modules(self) -> Iterable[tuple[str, Any]]:
        """Those with an input or output that may be saved."""
        return _alive(self._modules)


def _alive(references: References) -> Iterable[tuple[str, Any]]:
    for name, reference in references:
        found = reference()
        if found is not None:
            yield name, found
