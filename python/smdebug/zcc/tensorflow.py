"""TensorFlow: what is patched stands in a file for each way of training."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from smdebug.zcc import Patches

PARTS = ("tensorflow_session",)


class Parts(Patches):
    """What patch() of each part has returned, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, Any] = {}


def patch() -> Parts:
    """Patches everything, or nothing."""
    with Parts() as patches:
        for name in PARTS:
            part = import_module(f"smdebug.zcc.{name}").patch()
            patches.parts[name] = part
            patches.add(part.undo)
    return patches
