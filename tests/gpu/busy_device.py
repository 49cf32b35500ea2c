"""A device that is far behind, so that whoever waits for it is found out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def a_busy_device() -> Iterator[None]:
    """The device is two seconds behind; whoever waits for it is found out."""
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        torch.cuda._sleep(4_000_000_000)
        yield
        done = torch.cuda.Event()
        done.record()
        assert not done.query(), "Somebody has waited for the device."
    finally:
        torch.cuda.set_sync_debug_mode("default")
