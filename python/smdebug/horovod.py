"""The place of a process in a job of Horovod, which has a package for each framework."""

from __future__ import annotations

import sys


def rank_and_size(package: str) -> tuple[int, int] | None:
    """Of this process; None if the program has not imported the package, or not set it up."""
    horovod = sys.modules.get(package)
    if horovod is None:
        return None
    try:
        return horovod.rank(), horovod.size()
    except ValueError:  # not initialised
        return None
