"""Runs tasks on a Dask cluster. The workers must see the runs and have smdebug."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError


def dask_executor(client: Any = None) -> Executor:
    """An executor for a client of Dask, or for the current one; the client stays open."""
    try:
        from distributed import default_client
    except ModuleNotFoundError as error:
        raise SMDebugNotImplementedError(
            'Running rules on Dask needs its package; install it with: pip install "dask[distributed]"'
        ) from error
    # Not pure: the same question about a growing run may have another answer later.
    chosen = default_client() if client is None else client
    executor: Executor = chosen.get_executor(pure=False)
    return executor
