"""Which process of a job this is, as strategies and launchers tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from smdebug import _core, horovod
from smdebug.tensorflow.keras.engine import Engine

# Devices of this kind are workers of their own under MirroredStrategy.
KIND = "GPU"


@dataclass(frozen=True)
class Place:
    """The rank of this process; `unsupported` names a strategy that cannot be recorded."""

    rank: int = 0
    size: int = 1
    unsupported: str = ""
    devices: tuple[str, ...] = ()  # workers of this process, by replica; empty: it is one worker

    @property
    def chief(self) -> str:
        """The worker that saves if only one does."""
        return min(self.devices, default="worker_0")

    def worker(self) -> tuple[str, str, int]:
        """(name, chief, number of workers)"""
        if self.devices:
            return self.chief, self.chief, len(self.devices)
        return f"worker_{self.rank}", self.chief, self.size


def find_place(model: Any, engine: Engine | None) -> Place:
    """Asks the libraries that the program has set up."""
    for name in ("horovod.tensorflow.keras", "horovod.tensorflow", "horovod.keras"):
        found = horovod.rank_and_size(name)
        if found is not None:
            return Place(*found)
    if engine is not None and engine.backend == "tensorflow":
        return _place_in_strategy(model.distribute_strategy, engine.framework.distribute)
    if engine is not None and engine.backend == "torch":
        distributed = engine.framework.distributed
        if distributed.is_available() and distributed.is_initialized():
            return Place(distributed.get_rank(), distributed.get_world_size())
    if engine is not None and engine.backend == "jax" and engine.framework.process_count() > 1:
        return Place(engine.framework.process_index(), engine.framework.process_count())
    return Place(*(_core.process_rank() or (0, 1)))


def _place_in_strategy(strategy: Any, distribute: Any) -> Place:
    if isinstance(strategy, distribute.MultiWorkerMirroredStrategy):
        return _place_in_cluster(strategy.cluster_resolver)
    if isinstance(strategy, distribute.MirroredStrategy):
        return Place(devices=_named_devices(strategy.extended.worker_devices))
    if isinstance(strategy, distribute.OneDeviceStrategy):
        return Place()
    if type(strategy).__name__.startswith("_Default"):
        return Place(*(_core.process_rank() or (0, 1)))
    return Place(unsupported=type(strategy).__name__)


def _named_devices(devices: Iterable[str]) -> tuple[str, ...]:
    """Names of workers, such as `/replica:0/task:0/device:GPU:0`; empty: one name does for all."""
    names = tuple(re.sub("^/job:[^/]*", "", device) for device in devices)
    return names if all(f"device:{KIND}:" in name for name in names) else ()


def _place_in_cluster(resolver: Any) -> Place:
    cluster = resolver.cluster_spec().as_dict()
    chiefs = len(cluster.get("chief", ()))
    size = chiefs + len(cluster.get("worker", ()))
    rank = resolver.task_id or 0
    if resolver.task_type == "worker":
        rank += chiefs
    return Place(rank, max(size, 1))
