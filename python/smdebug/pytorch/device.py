"""Tensors in the memory of a device: reduced there, or copied to the host without waiting.

Everything is queued on the stream that made the tensor, so that what the program does to it next
cannot change what is read. The results are collected when the step ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from smdebug.pytorch.batched import Batch, can_batch

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


@dataclass
class _Copy:
    """A tensor on its way to the host."""

    name: str
    kind: Any
    host: torch.Tensor
    done: Any  # event
    device_copy: torch.Tensor | None


@dataclass
class _Numbers:
    """Reductions on their way to the host: (tensor name, element type, reduction names)."""

    labels: list[tuple[str, str, list[str]]]
    host: torch.Tensor
    done: Any


class DeviceStage:
    """What a step has queued on devices. One thread at a time."""

    def __init__(self) -> None:
        self._copies: list[_Copy] = []
        self._numbers: list[_Numbers] = []
        self._copied_bytes = 0
        self._streams: dict[torch.device, Any] = {}

    @property
    def has_pending(self) -> bool:
        """Whether finish() has something to hand over."""
        return bool(self._copies or self._numbers)

    def is_capturing(self) -> bool:
        """Whether a CUDA graph is being captured: nothing may be queued."""
        return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()

    def copy(self, name: str, tensor: torch.Tensor, kind: Any) -> None:
        """Queues the copy of a tensor to the host."""
        tensor = tensor.detach()
        if tensor.device.type != "cuda":
            self._copies.append(_Copy(name, kind, tensor.cpu(), None, None))
            return
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        producer = torch.cuda.current_stream(tensor.device)
        size = tensor.numel() * tensor.element_size()
        done = torch.cuda.Event()
        if self._copied_bytes + size > DEVICE_COPY_BYTES:
            host.copy_(tensor, non_blocking=True)
            done.record(producer)
            self._copies.append(_Copy(name, kind, host, done, None))
            return
        clone = tensor.clone()
        side = self._stream(tensor.device)
        side.wait_stream(producer)
        with torch.cuda.stream(side):
            host.copy_(clone, non_blocking=True)
            done.record(side)
        clone.record_stream(side)
        self._copied_bytes += size
        self._copies.append(_Copy(name, kind, host, done, clone))

    def reduce(self, wanted: list[tuple[str, torch.Tensor, list[str]]]) -> None:
        """Queues reductions: (name, tensor, names of reductions), device by device."""
        by_device: dict[torch.device, list[tuple[str, torch.Tensor, list[str]]]] = {}
        for item in wanted:
            by_device.setdefault(item[1].device, []).append(item)
        for device, items in by_device.items():
            numbers = reduce_together([(tensor, names) for _, tensor, names in items])
            labels = [
                (name, str(tensor.dtype).removeprefix("torch."), names)
                for name, tensor, names in items
            ]
            done = None
            if device.type == "cuda":
                host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=True)
                host.copy_(numbers, non_blocking=True)
                done = torch.cuda.Event()
                done.record(torch.cuda.current_stream(device))
            else:
                host = numbers.cpu()
            self._numbers.append(_Numbers(labels, host, done))

    def finish(
        self,
        save_tensor: Callable[[str, torch.Tensor, Any], None],
        save_reductions: Callable[[str, dict[str, float], str], None],
    ) -> None:
        """Hands over what was queued, in its order, once it has arrived."""
        copies, self._copies = self._copies, []
        numbers, self._numbers = self._numbers, []
        self._copied_bytes = 0
        for batch in numbers:
            if batch.done is not None:
                batch.done.synchronize()
            values = iter(batch.host.tolist())
            for name, dtype, reductions in batch.labels:
                save_reductions(name, {label: next(values) for label in reductions}, dtype)
        for copy in copies:
            if copy.done is not None:
                copy.done.synchronize()
            save_tensor(copy.name, copy.host, copy.kind)

    def _stream(self, device: torch.device) -> Any:
        if device not in self._streams:
            self._streams[device] = torch.cuda.Stream(device)
        return self._streams[device]
