"""Which process of a job this is."""

from __future__ import annotations

import sys
from typing import Any

from smdebug import _core


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
        horovod = sys.modules.get("horovod.mxnet")
        if horovod is not None:
            try:
                return horovod.rank(), horovod.size()
            except ValueError:  # not initialised
                pass
        return _core.process_rank() or (0, 1)
