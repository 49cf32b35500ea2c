"""Collections that can be told about blocks instead of names."""

from __future__ import annotations

import re
from typing import Any

from smdebug.collection import Collection as PlainCollection
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError
from smdebug.mxnet.blocks import is_block, name_of


class Collection(PlainCollection):
    """A named group of tensors with its own patterns, save and reduction configs."""

    def add_block_tensors(self, block: Any, inputs: bool = False, outputs: bool = True) -> None:
        """Adds what goes into or comes out of a block, registered or not."""
        if not is_block(block):
            raise SMDebugTypeError(f"A gluon Block was expected, not {block!r}.")
        for wanted, kind in ((inputs, "input"), (outputs, "output")):
            if wanted:
                self.include(rf"^{re.escape(name_of(block))}_{kind}_\d+$")


class CollectionManager(PlainCollectionManager):
    """All collections of a hook, by name."""

    collection_class = Collection
