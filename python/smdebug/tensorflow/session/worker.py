"""Which process of a job this is, and whether its graphs can be recorded."""

from __future__ import annotations

import tensorflow as tf

from smdebug import _core, horovod


def find_worker() -> tuple[str, str, int]:
    """(name, chief, number of workers). Asks the libraries that the program has set up."""
    launched = _core.process_rank() or (0, 1)
    rank, size = horovod.rank_and_size("horovod.tensorflow") or launched
    return f"worker_{rank}", "worker_0", size


def can_be_recorded() -> str | None:
    """Why nothing is recorded under the strategy in use; None if it can be."""
    if not tf.distribute.has_strategy():
        return None
    strategy = tf.distribute.get_strategy()
    # Those of tf.compat.v1 are classes of their own.
    known = [
        getattr(namespace, name)
        for namespace in (tf.distribute, tf.compat.v1.distribute)
        for name in ("MirroredStrategy", "OneDeviceStrategy")
        if hasattr(namespace, name)
    ]
    if isinstance(strategy, tuple(known)):
        return None
    return (
        f"Nothing is recorded: sessions under {type(strategy).__name__} cannot be. Known are "
        "MirroredStrategy and OneDeviceStrategy."
    )
