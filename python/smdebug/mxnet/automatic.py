"""The hook of scripts that do not know of it: blocks and losses are found while they run."""

from __future__ import annotations

import os
from typing import Any

from smdebug import automatic
from smdebug.mxnet.blocks import blocks_in
from smdebug.mxnet.hook import Hook

# FrameworkParameters of the JSON file, with their types.
OPTIONS: dict[str, type] = {"auto_mode": bool, "op_hook": bool}


class AutomaticHook(automatic.GivingWay, Hook):
    """Modes follow autograd. A script that asks for the hook of the process may use it, too."""

    def set_option(self, name: str, value: Any) -> None:
        """Sets an argument of Hook() that a JSON file has given, before the first model."""
        setattr(self, name, value)

    def knows(self, block: Any) -> bool:
        """Whether the block is recorded, by itself or as a part of a model."""
        if id(block) in self._capture.losses:
            return True
        models = [root.module() for root in self._capture.roots]
        return any(block is part for m in models if m is not None for part in blocks_in(m))

    def is_first(self, block: Any) -> bool:
        """Whether this model counts the steps."""
        roots = self._capture.roots
        return bool(roots) and roots[0].module() is block

    def register_block(self, block: Any) -> None:
        """As Hook does; a block that was found already is no mistake."""
        if not self.knows(block):
            super().register_block(block)

    register_hook = register_block


def make_hook() -> AutomaticHook:
    """The hook that the job's JSON file describes; its messages keep off the script's output."""
    kind = AutomaticHook
    if "SMDEBUG_PLAN" in os.environ:
        from smdebug.mxnet.rehearsal import Rehearsal

        kind = Rehearsal
    return automatic.make_hook(kind, OPTIONS)
