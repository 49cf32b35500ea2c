"""Collections that can be told about layers and variables instead of names."""

from __future__ import annotations

import re
from typing import Any

from smdebug.collection import Collection as PlainCollection
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError

# (name, patterns, saved without reductions); tensors are told apart by what they are.
BUILTIN_COLLECTIONS: list[tuple[str, list[str], bool]] = [
    ("all", [], False),
    ("default", [], False),
    ("weights", [], False),
    ("biases", [], False),
    ("gradients", [], False),
    ("losses", [], True),
    ("metrics", [], True),
    ("inputs", [], False),
    ("outputs", [], False),
    ("layers", [], False),
    ("sm_metrics", [], True),
    ("optimizer_variables", [], False),
]
DEFAULT_COLLECTIONS = ["metrics", "losses", "sm_metrics"]


class Collection(PlainCollection):
    """A named group of tensors with its own patterns, save and reduction configs."""

    def add(self, arg: Any) -> None:
        """Adds a tensor of a graph, a variable, an operation, a name, or several of these."""
        for item in list(arg) if isinstance(arg, list | tuple | set | frozenset) else [arg]:
            if isinstance(item, str):
                self.add_tensor_name(item)
            elif hasattr(item, "outputs") and hasattr(item, "node_def"):  # an operation
                for output in item.outputs:
                    self.add_tensor_name(output.name)
            elif hasattr(item, "assign"):
                self._add_variable(_name_of(item))
            else:
                self.add_tensor_name(_name_of(item))

    def _add_variable(self, name: str) -> None:
        """A variable, under its name and under those that it has as a weight."""
        name = name if ":" in name else f"{name}:0"
        self.add_tensor_name(name)
        # Keras leaves out the name of a Sequential, which is in the path of the variable.
        inner = name.partition("/")[2]
        names = [name, inner] if "/" in inner else [name]
        self.include(f"^([^/]+/)?weights/({'|'.join(map(re.escape, names))})$")

    def add_keras_layer(self, layer: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Adds what goes into or comes out of a layer of Keras."""
        name = getattr(layer, "name", None)
        if not isinstance(name, str) or not callable(getattr(layer, "call", None)):
            raise SMDebugTypeError(f"A layer of Keras was expected, not {layer!r}.")
        self.__dict__.setdefault("_layers", []).append(layer)
        for wanted, part in ((inputs, "inputs"), (outputs, "outputs")):
            if wanted:
                self.include(rf"^{re.escape(name)}/{part}(/|_\d+$|$)")

    @property
    def layers(self) -> list[Any]:
        """The layers that were added."""
        return list(self.__dict__.get("_layers", ()))


class CollectionManager(PlainCollectionManager):
    """All collections of a hook, by name."""

    collection_class = Collection


def _name_of(item: Any) -> str:
    try:
        name = getattr(item, "path", None) or item.name
    except AttributeError:  # a tensor with values has none
        name = None
    if not isinstance(name, str):
        raise SMDebugTypeError(
            "A tensor of a graph, a variable, an operation or a name was expected, not "
            f"{type(item).__name__}; save_tensor() saves a tensor that has values."
        )
    return name
