"""Runs tasks on a Dask cluster. The workers must see the runs and have smdebug."""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError


def dask_executor(client: Any = None) -> Executor:
    """An executor for a client of Dask, for the address of a scheduler, or for the current client.

    The client stays open when the executor is shut down.
    """
    try:
        from distributed import Client, default_client
    except ModuleNotFoundError as error:
        raise SMDebugNotImplementedError(
            'Running rules on Dask needs its package; install it with: pip install "dask[distributed]"'
        ) from error
    if client is None:
        client = default_client()
    elif not isinstance(client, Client):
        client = Client(client)
    # Not pure: the same question about a growing run may have another answer later.
    executor: Executor = client.get_executor(pure=False)
    return executor
