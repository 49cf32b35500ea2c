"""Which process of a job this is."""

from __future__ import annotations

import os
import sys

from smdebug import _core, horovod


def find_worker() -> tuple[str, str, int]:
    """(name, chief, number of workers). Asks the libraries that the program has set up."""
    rank, size = rank_and_size()
    return f"worker_{rank}", "worker_0", size


def rank_and_size() -> tuple[int, int]:
    """Of this process, as far as the program has set it up."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return horovod.rank_and_size("horovod.torch") or _core.process_rank() or (0, 1)


def out_dir_of_attempt(out_dir: str) -> str:
    """A directory of its own for each attempt that an elastic launcher restarts.

    A resumable job, which has a checkpoint configuration, continues its numbers in one directory.
    """
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    if not attempt.isdigit() or int(attempt) == 0:
        return out_dir
    config = os.environ.get("CHECKPOINT_CONFIG_FILE_PATH", "")
    if config and os.path.exists(config):
        return out_dir
    return f"{out_dir.rstrip('/')}/restart_{int(attempt)}"
