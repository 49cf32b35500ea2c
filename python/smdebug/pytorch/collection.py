"""Collections that can be told about modules instead of names."""

from __future__ import annotations

import re
from typing import Any

from torch import nn

from smdebug.collection import Collection as PlainCollection
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError
from smdebug.pytorch.names import ModuleNames

Wish = tuple[nn.Module, bool, bool]  # (module, its inputs, its outputs)


class Collection(PlainCollection):
    """A named group of tensors with its own patterns, save and reduction configs."""

    _names: ModuleNames | None = None

    def add_module_tensors(
        self, module: nn.Module, inputs: bool = False, outputs: bool = True
    ) -> None:
        """Adds what goes into or comes out of a module, which may be registered later."""
        if not isinstance(module, nn.Module):
            raise SMDebugTypeError(f"A torch.nn.Module was expected, not {module!r}.")
        self._wishes().append((module, inputs, outputs))
        if self._names is not None:
            self._names.wait(self)
            self._resolve(self._names)

    def _wishes(self) -> list[Wish]:
        wishes: list[Wish] = self.__dict__.setdefault("_module_wishes", [])
        return wishes

    def _resolve(self, names: ModuleNames) -> bool:
        """Turns wishes for modules with known names into patterns; whether none is left."""
        left: list[Wish] = []
        for module, inputs, outputs in self._wishes():
            name = names.find(module)
            if name is None:
                left.append((module, inputs, outputs))
                continue
            for wanted, kind in ((inputs, "input"), (outputs, "output")):
                if wanted:
                    self.include(rf"^{re.escape(name)}_{kind}_\d+$")
        self.__dict__["_module_wishes"] = left
        return not left


class CollectionManager(PlainCollectionManager):
    """All collections of a hook, by name; they learn the names of its modules."""

    collection_class = Collection
    _names: ModuleNames | None = None

    def add(self, arg: Any) -> None:
        super().add(arg)
        collection = self.find(arg if isinstance(arg, str) else arg.name)
        if self._names is not None and isinstance(collection, Collection):
            self._introduce(collection, self._names)

    def _use_names(self, names: ModuleNames) -> None:
        self._names = names
        for collection in self.all():
            if isinstance(collection, Collection):
                self._introduce(collection, names)

    @staticmethod
    def _introduce(collection: Collection, names: ModuleNames) -> None:
        collection._names = names
        if collection._wishes() and not collection._resolve(names):
            names.wait(collection)
