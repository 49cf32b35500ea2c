"""Waits for devices on a thread of its own, and brings what they have made to the core.

For devices that have none of our kernels: those that have them need no Python for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

# The thread ends when nothing was sent for so long, and begins again with the next.
IDLE_SECS = 2.0


@dataclass
class _Parcel:
    done: Any  # event
    deliver: Callable[[], None]
    fail: Callable[[str], None]


class Courier:
    """What is sent arrives in its order. Thread-safe."""

    def __init__(self) -> None:
        self._parcels: SimpleQueue[_Parcel] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_running = False  # with the lock

    def send(self, done: Any, deliver: Callable[[], None], fail: Callable[[str], None]) -> None:
        """Calls `deliver` when the event `done` has come; `fail` with the reason if it cannot."""
        self._parcels.put(_Parcel(done, deliver, fail))
        with self._lock:
            if not self._is_running:
                self._is_running = True
                threading.Thread(target=self._run, name="smdebug-courier", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                parcel = self._parcels.get(timeout=IDLE_SECS)
            except Empty:
                with self._lock:
                    if self._parcels.empty():
                        self._is_running = False
                        return
                continue
            try:
                parcel.done.synchronize()
                parcel.deliver()
            except Exception as error:  # the device has failed
                parcel.fail(str(error))
            del parcel  # and what it holds
