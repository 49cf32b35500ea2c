"""Tensors on CUDA devices, by the core's own kernels and copies: which devices can, and what is left.

The work goes to the stream that made the tensors, inside the callback; nobody waits for it but
the thread that writes. Gradients, and what modules give, are held for a moment, so that many of them
share a launch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from smdebug import _core
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger
from smdebug.pytorch import tensors as torch_tensors

# Tensors of this size together are read at the latest, or a small share of the device's memory;
# fewer when backward ends.
HELD_BYTES = 1 << 30

_raw_stream = getattr(torch._C, "_cuda_getCurrentRawStream", None)

Pairs = list[tuple[str, torch.Tensor]]


def _stream_of(device: int) -> int:
    return int(torch.cuda.current_stream(device).cuda_stream)


class Surveys:
    """What a hook has asked devices for. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._usable: dict[int, bool] = {}
        self._is_used = False
        self.backward_ended: Callable[[], None] = lambda: None  # calls release()
        self.direct: Any = None  # what callbacks of the core share with this
        if isinstance(core, InertCore):
            return
        parts = {
            "stream_of": _raw_stream or _stream_of,
            "usable": self._usable,
            "gave_up": self._give_up,
            "queue": self._queue_end,
            "full": self._end,
            "held_bytes": HELD_BYTES,
        }
        self.direct = _core.DeviceTensors(core, torch_tensors.EXCHANGE_API, parts)

    @property
    def has_held(self) -> bool:
        """Whether release() has something to do."""
        return self.direct is not None and self.direct.has_held

    def can_read(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor is on a device that has our kernels."""
        if not tensor.is_cuda:
            return False
        index = tensor.device.index
        usable = self._usable.get(index)
        return self._prepare(index) if usable is None else usable

    def save(self, names: _core.Tickets, tensors: list[torch.Tensor]) -> list[int]:
        """Queues what is wanted of plain tensors; indices of those that must go another way."""
        if not tensors or not self.can_read(tensors[0]):
            return list(range(len(tensors)))
        left: list[int] = self.direct.save(names, tensors, torch_tensors.PLAIN_TENSORS)
        return left

    @contextmanager
    def unless(self, number: torch.Tensor | None) -> Iterator[bool]:
        """What is saved meanwhile is dropped if the number turns out not to be zero.

        False: nobody can know that without waiting for a device.
        """
        if number is None:
            yield True
            return
        known = self.direct is not None and self.can_read(number)
        try:
            yield known and self.direct.set_veto(number)
        finally:
            if known:
                self.direct.set_veto(None)

    def survey(self, pairs: Pairs) -> Pairs:
        """Queues the statistics of tensors, where can_read() holds; those that no kernel can do."""
        names, tensors = [name for name, _ in pairs], [tensor for _, tensor in pairs]
        return [pairs[i] for i in self.direct.survey(names, tensors)]

    def copy(self, pairs: Pairs, kind: Any) -> Pairs:
        """Queues copies of tensors, where can_read() holds; those that must be waited for."""
        whole = [tensor.detach().contiguous() for _, tensor in pairs]
        return [pairs[i] for i in self.direct.copy([name for name, _ in pairs], whole, kind)]

    def hold(self, name: str, gradient: torch.Tensor) -> bool:
        """Keeps a gradient until release(), which is called when backward ends; False: cannot."""
        return bool(self.direct.hold(name, gradient))

    def release(self) -> tuple[Pairs, list[str]]:
        """Queues what was held; those that no kernel can do, and names of changed ones."""
        left, changed = self.direct.release()
        return left, changed

    def look_at_results(self) -> None:
        """Looks for bad values in what has come from devices so far."""
        if self._is_used:
            _core.look_at_late(self._core)
            self.direct.forget()

    def _queue_end(self) -> None:
        """Fails outside of backward."""
        torch.autograd.Variable._execution_engine.queue_callback(self._end)

    def _end(self) -> None:
        self.backward_ended()

    def _prepare(self, device: int) -> bool:
        self._usable[device] = False
        if os.environ.get("SMDEBUG_DEVICE_KERNELS", "1") == "0":
            return False
        if torch.version.cuda is None:
            self._give_up(device, "this PyTorch is not built for CUDA.")
            return False
        try:
            _core.prepare_device(device)
        except Exception as error:
            self._give_up(device, error)
            return False
        self._usable[device] = self._is_used = True
        return True

    def _give_up(self, device: int, reason: object) -> None:
        self._usable[device] = False
        text = str(reason).splitlines()[0]
        get_logger().warning(
            f"Statistics of tensors on cuda:{device} are computed by PyTorch's own operations, "
            f"which are slower: {text}"
        )
