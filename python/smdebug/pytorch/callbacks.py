"""Callbacks that a program can hold without risk: they never fail and stand still in children."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from smdebug import _core
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.guard import Guard
from smdebug.hook import InertCore
from smdebug.pytorch import tensors as torch_tensors

graph_task_id: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)
# Keeps the compiler from looking into our callbacks.
set_eval_frame: Any = getattr(
    getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "set_eval_frame", None
)


def is_replay() -> bool:
    """A forward that is no forward: recomputation in backward, tracing, exporting."""
    return graph_task_id() != -1 or torch._C._is_tracing() or torch.compiler.is_exporting()


def _raise(message: str) -> None:
    raise SMDebugRuntimeError(message)


class Callbacks:
    """Makes the callbacks of one hook; a failure in any of them goes through its guard."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._guard = Guard(core.is_strict)
        self._pid = os.getpid()

    @property
    def in_owner(self) -> bool:
        """False in forked children."""
        return os.getpid() == self._pid

    @property
    def are_off(self) -> bool:
        """Whether callbacks have nothing to do any more, or are in a forked child."""
        return self._guard.disabled or not self.in_owner

    def safe(self, site: str, function: Callable[..., None]) -> Callable[..., None]:
        """The function as a callback that never fails and does nothing in forked children."""

        def call(*args: Any) -> None:
            if not self.are_off:
                self.run(site, function, *args)

        return call

    def of_module(
        self, site: str, function: Callable[..., None], only_wanted: bool = True
    ) -> _core.Callback:
        """A callback of a module; it does nothing in copies of the module.

        With `only_wanted` it runs in steps that save something alone.
        """
        return _core.Callback(self.safe(site, function), set_eval_frame, self._core, only_wanted)

    def direct_path(self, lock: _core.HookLock, indices: dict[str, int], located: Any) -> Any:
        """What callbacks of the core share; located(name) is called in that of a bad tensor."""
        if isinstance(self._core, InertCore):
            return None
        parts = {
            "lock": lock,
            "indices": indices,
            "failed": self.safe("Saving a tensor", _raise),
            "located": self.safe("Finding a call", located),
            "task_id": graph_task_id,
            "tracing": torch._C._is_tracing,
            "compiler": torch.compiler,
            "isolate": set_eval_frame,
        }
        return _core.DirectPath(self._core, torch_tensors.EXCHANGE_API, parts)

    def run(self, site: str, function: Callable[..., object], *args: Any) -> None:
        """Calls the function now; `site` names what is being done."""
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)
