"""Collections that can be told about tensors and variables instead of names."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from smdebug.collection import Collection as PlainCollection
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError


class Collection(PlainCollection):
    """A named group of tensors with its own patterns, save and reduction configs."""

    def add(self, arg: Any) -> None:
        """Adds a tensor, a variable, an operation, a name, or a list or set of these."""
        for item in arg if isinstance(arg, list | tuple | set) else [arg]:
            if isinstance(item, str):
                self.add_tensor_name(item)
            elif isinstance(item, tf.Operation):
                for output in item.outputs:
                    self.add_tensor_name(output.name)
            elif isinstance(item, tf.Tensor | tf.Variable):
                self.add_tensor_name(item.name)
            else:
                raise SMDebugTypeError(
                    f"A tensor, a variable or an operation was expected, not {item!r}."
                )


class CollectionManager(PlainCollectionManager):
    """All collections of a hook, by name."""

    collection_class = Collection
