"""Finds out that two graphs run in turns with one hook, whose tensors cannot be told apart then."""

from __future__ import annotations

import weakref
from typing import Any

from smdebug import _core
from smdebug.logger import get_logger


class Turns:
    """The graphs that ran in each mode. Evaluations between steps of training have their own."""

    def __init__(self) -> None:
        self._now: dict[_core.ModeKeys, weakref.ref[Any]] = {}
        self._before: dict[_core.ModeKeys, weakref.WeakSet[Any]] = {}
        self._has_told = False

    def run(self, graph: Any, mode: _core.ModeKeys) -> None:
        """A graph runs. Says once that a graph comes back after another one in the same mode."""
        now = self._now.get(mode, _nothing)()
        if now is graph:
            return
        self._now[mode] = weakref.ref(graph)
        before = self._before.setdefault(mode, weakref.WeakSet())
        if now is not None:
            before.add(now)
        if graph in before and not self._has_told:
            self._has_told = True
            get_logger().warning(
                f"The hook is used in two graphs in turns, both in mode {mode.name}: tensors of the "
                "same name cannot be told apart. Use a hook or a mode of its own for each graph."
            )


def _nothing() -> None:
    return None
