"""Tensors in the memory of a device: reduced there, or copied to the host without waiting.

Everything is queued on the stream that made the tensor, so that what the program does to it next
cannot change what is read. The results are collected when the step ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

# Copies on the device that wait for their way to the host. Beyond it the stream that made the
# tensor copies it to the host itself.
DEVICE_COPY_BYTES = 256 << 20


# From this many elements on, statistics come from a few sums that the device forms in one pass each,
# without a copy of the tensor. Smaller tensors are widened first, which is exact.
MANY_ELEMENTS = 1 << 16
_ROW = 4096


def _median(x: torch.Tensor) -> torch.Tensor:
    ordered = x.sort().values
    middle = (ordered[(x.numel() - 1) // 2].double() + ordered[x.numel() // 2].double()) / 2
    return torch.where(x.isnan().any(), torch.full_like(middle, float("nan")), middle)


# In float64, so that one vector carries all results.
_REDUCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "min": lambda x: x.amin().double(),
    "max": lambda x: x.amax().double(),
    "mean": lambda x: x.mean(dtype=torch.float64),
    "std": lambda x: x.double().std(correction=0),
    "variance": lambda x: x.double().var(correction=0),
    "sum": lambda x: x.sum(dtype=torch.float64),
    "prod": lambda x: x.prod(dtype=torch.float64),
    "median": _median,
    "l1": lambda x: torch.linalg.vector_norm(x, 1, dtype=torch.float64),
    "l2": lambda x: torch.linalg.vector_norm(x, 2, dtype=torch.float64),
}


class _Sums:
    """Statistics of a large tensor, each sum formed once and only if something needs it.

    Rows of elements are summed in float32 (float64 if the tensor is), their sums in float64. A
    standard deviation below a hundredth of the mean loses digits; a square beyond float32 is lost.
    """

    def __init__(self, flat: torch.Tensor) -> None:
        self._x = flat
        self._type = torch.float64 if flat.dtype == torch.float64 else torch.float32
        whole = flat.numel() // _ROW * _ROW
        self._rows = flat[:whole].view(-1, _ROW)
        self._rest = flat[whole:].double()

    @cached_property
    def _ends(self) -> tuple[torch.Tensor, torch.Tensor]:
        least, most = self._x.aminmax()
        return least.double(), most.double()

    @cached_property
    def _sum(self) -> torch.Tensor:
        return self._rows.sum(1, dtype=self._type).double().sum() + self._rest.sum()

    @cached_property
    def _l1(self) -> torch.Tensor:
        rows = torch.linalg.vector_norm(self._rows, 1, 1, dtype=self._type)
        return rows.double().sum() + self._rest.abs().sum()

    @cached_property
    def _l2(self) -> torch.Tensor:
        rows = torch.linalg.vector_norm(self._rows, 2, 1, dtype=self._type)
        return (rows.double().square().sum() + self._rest.square().sum()).sqrt()

    def _variance(self, total: torch.Tensor) -> torch.Tensor:
        count = self._x.numel()
        return ((self._l2 / count) * self._l2 - (total / count) ** 2).clamp_min(0)

    def get(self, name: str) -> torch.Tensor:
        """The reduction of this name, on the device."""
        absolute, plain = name.startswith("abs_"), name.removeprefix("abs_")
        if plain in ("min", "max") and not absolute:
            return self._ends[0 if plain == "min" else 1]
        if name == "abs_max":
            return torch.maximum(self._ends[0].abs(), self._ends[1].abs())
        if plain in ("l1", "l2"):
            return self._l1 if plain == "l1" else self._l2
        if plain in ("min", "prod", "median"):
            return _REDUCTIONS[plain](self._x.abs() if absolute else self._x)
        total = self._l1 if absolute else self._sum
        if plain == "sum":
            return total
        if plain == "mean":
            return total / self._x.numel()
        variance = self._variance(total)
        return variance if plain == "variance" else variance.sqrt()


def can_reduce(tensor: torch.Tensor, names: list[str]) -> bool:
    """Whether `reduce_together` has these reductions for tensors of this type."""
    known = all(name.removeprefix("abs_") in _REDUCTIONS for name in names)
    return known and tensor.dtype.is_floating_point and tensor.numel() > 0


def reduce_together(wanted: list[tuple[torch.Tensor, list[str]]]) -> torch.Tensor:
    """All reductions of all tensors of one device as one vector of float64, without waiting."""
    results: list[torch.Tensor] = []
    for tensor, names in wanted:
        flat = tensor.detach().reshape(-1)
        if flat.numel() >= MANY_ELEMENTS and flat.dtype.itemsize > 1:
            sums = _Sums(flat)
            results += [sums.get(name) for name in names]
            continue
        if flat.dtype.itemsize < 4:
            flat = flat.float()
        magnitude = flat.abs() if any(name.startswith("abs_") for name in names) else flat
        for name in names:
            source = magnitude if name.startswith("abs_") else flat
            results.append(_REDUCTIONS[name.removeprefix("abs_")](source))
    return torch.stack(results)


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
