"""Callbacks that models can be copied and compiled with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from smdebug import _core
from smdebug.callbacks import BaseCallbacks
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.inert_core import InertCore
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


class Callbacks(BaseCallbacks):
    """Makes the callbacks of one hook; a failure in any of them goes through its guard."""

    def of_module(
        self, site: str, function: Callable[..., None], only_wanted: bool = True
    ) -> _core.Callback:
        """A callback of a module; it does nothing in copies of the module.

        With `only_wanted` it runs in steps that save something alone.
        """
        return _core.Callback(self.safe(site, function), set_eval_frame, self._core, only_wanted)

    def direct_path(
        self, lock: _core.HookLock, indices: dict[str, int], located: Any, devices: Any = None
    ) -> Any:
        """What callbacks of the core share; located(name) is called in that of a bad tensor.

        Without `devices`, tensors on CUDA devices go another way.
        """
        if isinstance(self._core, InertCore):
            return None
        parts = {
            "lock": lock,
            "indices": indices,
            "failed": self.safe("Saving a tensor", _raise),
            "located": self.safe("Finding a call", located),
            "devices": devices,
            "task_id": graph_task_id,
            "tracing": torch._C._is_tracing,
            "compiler": torch.compiler,
            "isolate": set_eval_frame,
        }
        return _core.DirectPath(self._core, torch_tensors.EXCHANGE_API, parts)
