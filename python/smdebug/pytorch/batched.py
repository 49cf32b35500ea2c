"""Statistics of many tensors of a device by a few of PyTorch's own operations over all of them.

For devices that have none of our kernels. Elements are put side by side, widened to float64, and
reduced in rows, whose results are joined tensor by tensor. Nothing here waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from itertools import pairwise

import torch

# Elements of a row: many enough to keep a device busy, few enough that the rest of a tensor is small.
ROW = 1024
# Elements that are widened at a time; each takes 8 bytes, and two or three times as much for a moment.
TOGETHER = 16 << 20

_EMPTY = {"sum": 0.0, "min": float("inf"), "max": float("-inf")}

# What is found of all elements, or of their absolute values: (absolute, what).
Total = tuple[bool, str]
_TOTALS: dict[str, list[str]] = {
    "min": ["min"],
    "max": ["max"],
    "sum": ["sum"],
    "mean": ["sum"],
    "l1": ["sum"],
    "l2": ["squares"],
    "std": ["sum", "deviations"],
    "variance": ["sum", "deviations"],
}


def can_batch(name: str) -> bool:
    """Whether this reduction is among those that are found here."""
    return name.removeprefix("abs_") in _TOTALS


def _totals_of(name: str) -> list[Total]:
    plain = name.removeprefix("abs_")
    absolute = plain == "l1" or (name.startswith("abs_") and plain != "l2")
    return [(absolute, total) for total in _TOTALS[plain]]


@lru_cache(maxsize=64)
def _on_device(numbers: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Numbers that lists of tensors have again and again, brought there without waiting."""
    host = torch.tensor(numbers, dtype=torch.int64)
    if device.type == "cuda":
        host = host.pin_memory()
    return host.to(device, non_blocking=True)


class _Stretches:
    """Values side by side, so many for each of some tensors."""

    def __init__(self, counts: tuple[int, ...], device: torch.device) -> None:
        self._sum = sum(counts)
        self._lengths = _on_device(counts, device)

    def join(self, values: torch.Tensor, how: str) -> torch.Tensor:
        """One number for each tensor; what changes nothing where it has no value."""
        return torch.segment_reduce(
            values, how, lengths=self._lengths, initial=_EMPTY[how], unsafe=True
        )

    def spread(self, numbers: torch.Tensor) -> torch.Tensor:
        """The number of its tensor for each value."""
        return numbers.repeat_interleave(self._lengths, output_size=self._sum)


class _Part:
    """Either the whole rows of some tensors, or what is left of each."""

    def __init__(self, flat: list[torch.Tensor], in_rows: bool) -> None:
        self._in_rows = in_rows
        cuts = [x.numel() // ROW * ROW for x in flat]
        taken = [x[:at] if in_rows else x[at:] for x, at in zip(flat, cuts, strict=True)]
        self.values = _side_by_side(taken)
        if in_rows:
            self.values = self.values.view(-1, ROW)
        counts = tuple(x.numel() // ROW if in_rows else x.numel() for x in taken)
        self._stretches = _Stretches(counts, flat[0].device)

    def join(self, values: torch.Tensor, how: str) -> torch.Tensor:
        """One number for each tensor."""
        if self._in_rows:
            values = {"sum": values.sum, "min": values.amin, "max": values.amax}[how](1)
        return self._stretches.join(values, how)

    def spread(self, numbers: torch.Tensor) -> torch.Tensor:
        """The number of its tensor for each value."""
        spread = self._stretches.spread(numbers)
        return spread.unsqueeze(1) if self._in_rows else spread


def _side_by_side(flat: list[torch.Tensor]) -> torch.Tensor:
    dtype = flat[0].dtype
    if dtype.itemsize > 1:
        return torch.cat(flat).double()
    bits = torch.cat([x.view(torch.uint8) for x in flat])  # as not all operations know such floats
    return bits.view(dtype).to(torch.float32).double()


class _Group:
    """Tensors of one type that are reduced together."""

    def __init__(self, flat: list[torch.Tensor]) -> None:
        self._parts = [_Part(flat, in_rows) for in_rows in (True, False)]
        counts = tuple(x.numel() for x in flat)
        self.counts = _on_device(counts, flat[0].device).double()
        self._known: dict[Total, torch.Tensor] = {}

    @cached_property
    def _absolutes(self) -> list[torch.Tensor]:
        return [part.values.abs() for part in self._parts]

    def _joined(self, how: str, values: list[torch.Tensor]) -> torch.Tensor:
        first, second = (part.join(x, how) for part, x in zip(self._parts, values, strict=True))
        both = {"sum": torch.add, "min": torch.minimum, "max": torch.maximum}[how]
        return both(first, second)

    def find(self, total: Total) -> torch.Tensor:
        """One number for each tensor."""
        if total not in self._known:
            self._known[total] = self._found(*total)
        return self._known[total]

    def _found(self, absolute: bool, what: str) -> torch.Tensor:
        values = self._absolutes if absolute else [part.values for part in self._parts]
        if what in _EMPTY:
            return self._joined(what, values)
        if what == "squares":
            return self._joined("sum", [x.square() for x in values])
        means = self.find((absolute, "sum")) / self.counts
        pairs = zip(self._parts, values, strict=True)
        return self._joined("sum", [(x - part.spread(means)).square_() for part, x in pairs])


def _pieces(flat: list[torch.Tensor]) -> list[list[tuple[int, torch.Tensor]]]:
    """(number of the tensor, elements) in groups of at most TOGETHER elements."""
    groups: list[list[tuple[int, torch.Tensor]]] = [[]]
    room = TOGETHER
    for number, x in enumerate(flat):
        cuts = [*range(0, x.numel(), TOGETHER), x.numel()]
        for begin, end in pairwise(cuts):
            if end - begin > room and groups[-1]:
                groups.append([])
                room = TOGETHER
            groups[-1].append((number, x[begin:end]))
            room -= end - begin
    return groups


class Batch:
    """Reductions of tensors of one device and one floating type, each of which has elements."""

    def __init__(self, tensors: list[torch.Tensor], names: list[str]) -> None:
        needed = list(dict.fromkeys(total for name in names for total in _totals_of(name)))
        found: dict[Total, list[torch.Tensor]] = {total: [] for total in needed}
        counts: list[torch.Tensor] = []
        pieces = [0] * len(tensors)
        for part in _pieces([tensor.detach().reshape(-1) for tensor in tensors]):
            group = _Group([x for _, x in part])
            counts.append(group.counts)
            for number, _ in part:
                pieces[number] += 1
            for total in needed:
                found[total].append(group.find(total))
        self._pieces = _Stretches(tuple(pieces), tensors[0].device)
        self._counts = torch.cat(counts)
        self._count = self._pieces.join(self._counts, "sum")
        self._found = {total: torch.cat(values) for total, values in found.items()}

    def _total(self, absolute: bool, what: str) -> torch.Tensor:
        how = what if what in _EMPTY else "sum"
        return self._pieces.join(self._found[absolute, what], how)

    def _variance(self, absolute: bool) -> torch.Tensor:
        mean = self._total(absolute, "sum") / self._count
        apart = self._found[absolute, "sum"] / self._counts - self._pieces.spread(mean)
        between = self._pieces.join(self._counts * apart.square(), "sum")
        return (self._total(absolute, "deviations") + between) / self._count

    def get(self, name: str) -> torch.Tensor:
        """The reduction of this name, which is among those that were asked for: one per tensor."""
        plain = name.removeprefix("abs_")
        absolute, what = _totals_of(name)[0]
        finish: dict[str, Callable[[], torch.Tensor]] = {
            "mean": lambda: self._total(absolute, "sum") / self._count,
            "l2": lambda: self._total(False, "squares").sqrt(),
            "variance": lambda: self._variance(absolute),
            "std": lambda: self._variance(absolute).sqrt(),
        }
        return finish.get(plain, lambda: self._total(absolute, what))()
