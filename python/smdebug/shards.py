"""Tensors that were recorded in parts, one per worker: the whole from its parts.

A worker that holds parts records, once per step, where they belong. Extrema, sums, means,
deviations, norms and products of the parts give those of the whole; a median does not.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from smdebug import _core
from smdebug.exceptions import TensorUnavailableForStep

# One record per step and worker: JSON, by tensor name.
SHARDS = "smdebug/shards"
SHARDS_COLLECTION = "shards"

GLOBAL = _core.ModeKeys.GLOBAL


@dataclass(frozen=True)
class Part:
    """What one worker holds of a tensor."""

    worker: str
    shape: tuple[int, ...]  # of the whole
    placements: tuple[str, ...]
    offset: tuple[int, ...] | None  # None: interleaved with other parts
    local_shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.local_shape)


def parts(trial: Any, name: str, step: int, mode: _core.ModeKeys = GLOBAL) -> list[Part]:
    """The parts of a tensor, each place once; empty for a tensor that was not recorded in parts."""
    if not trial.has_tensor(SHARDS):
        return []
    found: dict[Any, Part] = {}
    record = trial.tensor(SHARDS)
    for worker in record.workers(step, mode):
        described = json.loads(str(record.value(step, mode, worker).reshape(-1)[0])).get(name)
        if described is None:
            continue
        offset = described["offset"]
        part = Part(
            worker,
            tuple(described["shape"]),
            tuple(described["placements"]),
            None if offset is None else tuple(offset),
            tuple(described["local_shape"]),
        )
        place = worker if part.offset is None else (part.offset, part.local_shape)
        if part.size > 0 or not part.shape:
            found.setdefault(place, part)
    return list(found.values())


def value(trial: Any, name: str, step: int, mode: _core.ModeKeys = GLOBAL) -> np.ndarray[Any, Any]:
    """The whole tensor, put together from the parts of all workers."""
    found = parts(trial, name, step, mode)
    if not found:
        return trial.tensor(name).value(step, mode)
    whole: np.ndarray[Any, Any] | None = None
    filled = 0
    for part in found:
        if part.offset is None:
            raise TensorUnavailableForStep(name, step, mode)
        local = trial.tensor(name).value(step, mode, part.worker)
        if whole is None:
            whole = np.empty(part.shape, local.dtype)
        place = zip(part.offset, part.local_shape, strict=True)
        whole[tuple(slice(start, start + extent) for start, extent in place)] = local
        filled += part.size
    if whole is None or filled != whole.size:  # a worker is missing
        raise TensorUnavailableForStep(name, step, mode)
    return whole


def reduction_values(
    trial: Any, name: str, step: int, mode: _core.ModeKeys = GLOBAL
) -> dict[tuple[str, bool], float]:
    """(reduction, of absolute values) of the whole, from the recorded ones of the parts."""
    tensor = trial.tensor(name)
    found = parts(trial, name, step, mode)
    if not found:
        return dict(tensor.reduction_values(step, mode))
    stored = [tensor.reduction_values(step, mode, part.worker) for part in found]
    if sum(part.size for part in found) != math.prod(found[0].shape):
        raise TensorUnavailableForStep(name, step, mode, has_reductions=True)
    sizes = [part.size for part in found]
    merged: dict[tuple[str, bool], float] = {}
    for key in sorted(set.intersection(*(set(values) for values in stored))):
        name_, absolute = key
        values = [float(part[key]) for part in stored]
        means = [part.get(("mean", absolute)) for part in stored]
        result = _merge(name_, values, sizes, means)
        if result is not None:
            merged[key] = result
    return merged


def _merge(reduction: str, values: list[float], sizes: list[int], means: list[Any]) -> float | None:
    """One number for the whole; None where the parts do not tell."""
    count = sum(sizes)
    if reduction in ("min", "max"):
        if any(math.isnan(v) for v in values):
            return math.nan
        return min(values) if reduction == "min" else max(values)
    if reduction in ("sum", "l1"):
        return math.fsum(values)
    if reduction == "prod":
        return math.prod(values)
    if reduction == "mean":
        return math.fsum(v * n for v, n in zip(values, sizes, strict=True)) / count
    if reduction == "l2":
        return math.hypot(*values)
    if reduction in ("std", "variance") and all(mean is not None for mean in means):
        mean = math.fsum(float(m) * n for m, n in zip(means, sizes, strict=True)) / count
        variances = values if reduction == "variance" else [v * v for v in values]
        total = math.fsum(
            n * (v + (float(m) - mean) ** 2)
            for v, m, n in zip(variances, means, sizes, strict=True)
        )
        return total / count if reduction == "variance" else math.sqrt(total / count)
    return None
