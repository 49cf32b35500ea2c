"""Tensors in the memory of a device: reduced there, or copied to the host without waiting.

Everything is queued on the stream that made the tensor, so that what the program does to it next
cannot change what is read. A thread of its own brings the results to the core.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import torch

from smdebug import _core
from smdebug.pytorch.batched import Batch, can_batch
from smdebug.pytorch.courier import Courier

# (name of a tensor, its element type, names of its reductions)
Labels = list[tuple[str, str, list[str]]]

# Copies on the device that wait for their way to the host. Beyond it the stream that made the
# tensor copies it to the host itself.
DEVICE_COPY_BYTES = 256 << 20


def _median(x: torch.Tensor) -> torch.Tensor:
    ordered = x.sort().values
    middle = (ordered[(x.numel() - 1) // 2].double() + ordered[x.numel() // 2].double()) / 2
    return torch.where(x.isnan().any(), torch.full_like(middle, float("nan")), middle)


# Those that need a tensor for itself. In float64, so that one vector carries all results.
_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "prod": lambda x: x.prod(dtype=torch.float64),
    "median": _median,
}


def can_reduce(tensor: torch.Tensor, names: list[str]) -> bool:
    """Whether `reduce_together` has these reductions for tensors of this type."""
    known = all(can_batch(name) or name.removeprefix("abs_") in _REDUCTIONS for name in names)
    return known and tensor.dtype.is_floating_point and tensor.numel() > 0


def _reduce_alone(tensor: torch.Tensor, name: str) -> torch.Tensor:
    flat = tensor.detach().reshape(-1)
    if flat.dtype.itemsize < 4:
        flat = flat.float()
    return _REDUCTIONS[name.removeprefix("abs_")](flat.abs() if name.startswith("abs_") else flat)


def reduce_together(wanted: list[tuple[torch.Tensor, list[str]]]) -> torch.Tensor:
    """All reductions of all tensors of one device as one vector of float64, without waiting."""
    results: dict[tuple[int, str], torch.Tensor] = {}
    alike: dict[tuple[torch.dtype, tuple[str, ...]], list[int]] = {}
    for i, (tensor, names) in enumerate(wanted):
        batched = tuple(name for name in names if can_batch(name))
        if batched:
            alike.setdefault((tensor.dtype, batched), []).append(i)
        for name in names:
            if not can_batch(name):
                results[i, name] = _reduce_alone(tensor, name)
    for (_, batched), numbers in alike.items():
        batch = Batch([wanted[i][0] for i in numbers], list(batched))
        # Views of one tensor, which has all of them side by side.
        table = torch.stack([batch.get(name) for name in batched], 1)
        if len(numbers) == len(wanted) and all(names == list(batched) for _, names in wanted):
            return table.reshape(-1)
        for i, row in zip(numbers, table.unbind(0), strict=True):
            results.update(
                ((i, name), value) for name, value in zip(batched, row.unbind(0), strict=True)
            )
    return torch.stack([results[i, name] for i, (_, names) in enumerate(wanted) for name in names])


class DeviceStage:
    """Brings tensors of devices, and reductions of them, to the core. One thread at a time.

    `save_tensor` saves a tensor of the host under a name, as what its kind says.
    """

    def __init__(self, core: Any, save_tensor: Callable[[str, torch.Tensor, Any], None]) -> None:
        self._core = core
        self._save_tensor = save_tensor
        self._courier = Courier()
        self._room = _Room(DEVICE_COPY_BYTES)
        self._streams: dict[torch.device, Any] = {}

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: nothing may be queued."""
        return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()

    def copy(self, name: str, tensor: torch.Tensor, kind: Any) -> None:
        """Queues the copy of a tensor to the host; other kinds of devices are waited for."""
        tensor = tensor.detach()
        if tensor.device.type != "cuda" or tensor.numel() == 0:
            self._save_tensor(name, tensor.cpu(), kind)
            return
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        later = _core.expect_tensor(self._core, name, kind, _type_of(tensor), list(tensor.shape))
        producer = torch.cuda.current_stream(tensor.device)
        size = tensor.numel() * tensor.element_size()
        done = torch.cuda.Event()
        if not self._room.take(size):
            host.copy_(tensor, non_blocking=True)
            done.record(producer)
            self._courier.send(done, lambda: later.deliver(host.data_ptr()), later.fail)
            return
        clone = tensor.clone(memory_format=torch.contiguous_format)
        side = self._stream(tensor.device)
        side.wait_stream(producer)
        with torch.cuda.stream(side):
            host.copy_(clone, non_blocking=True)
            done.record(side)
        clone.record_stream(side)

        def deliver() -> None:
            self._room.give_back(size)
            later.deliver(host.data_ptr())

        self._courier.send(done, deliver, later.fail)

    def reduce(self, wanted: list[tuple[str, torch.Tensor, list[str]]]) -> None:
        """Queues reductions: (name, tensor, names of reductions), device by device."""
        by_device: dict[torch.device, list[tuple[str, torch.Tensor, list[str]]]] = {}
        for item in wanted:
            by_device.setdefault(item[1].device, []).append(item)
        for device, items in by_device.items():
            numbers = reduce_together([(tensor, names) for _, tensor, names in items])
            labels = [(name, _type_of(tensor), names) for name, tensor, names in items]
            if device.type == "cuda":
                self._send(numbers, labels)
            else:
                self._save_now(numbers, labels)

    def _send(self, numbers: torch.Tensor, labels: Labels) -> None:
        host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
        host.copy_(numbers, non_blocking=True)
        done = torch.cuda.Event()
        done.record(torch.cuda.current_stream(numbers.device))
        later = _core.expect_numbers(self._core, labels)
        self._courier.send(done, lambda: later.deliver(host.tolist()), later.fail)

    def _save_now(self, numbers: torch.Tensor, labels: Labels) -> None:
        values = iter(numbers.tolist())
        for name, dtype, reductions in labels:
            found = {label: next(values) for label in reductions}
            _core.save_reductions(self._core, name, found, dtype)

    def _stream(self, device: torch.device) -> Any:
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]


class _Room:
    """Bytes that may be in use. Thread-safe."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        with self._lock:
            self._left += size


def _type_of(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")
