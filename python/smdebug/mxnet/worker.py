"""Which process of a job this is."""

from __future__ import annotations

from typing import Any

from smdebug import _core, horovod


class Job:
    """The processes that train together: those of a distributed store, or of Horovod."""

    def __init__(self) -> None:
        self._of_store: tuple[int, int] | None = None

    def use_store(self, store: Any) -> None:
        """Takes rank and size from a distributed kvstore, and does not keep it alive."""
        self._of_store = (store.rank, store.num_workers)

    def find_worker(self) -> tuple[str, str, int]:
        """(name, chief, number of workers)."""
        rank, size = self._rank_and_size()
        return f"worker_{rank}", "worker_0", size

    def _rank_and_size(self) -> tuple[int, int]:
        if self._of_store is not None:
            return self._of_store
        return horovod.rank_and_size("horovod.mxnet") or _core.process_rank() or (0, 1)
