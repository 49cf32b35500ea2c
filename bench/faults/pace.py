"""The pace of a training: how long it took and its longest pause."""

from __future__ import annotations

import time


class Pace:
    """Begins when it is made; `tick` after every step."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._longest_secs = 0.0

    def tick(self) -> None:
        now = time.perf_counter()
        self._longest_secs = max(self._longest_secs, now - self._last)
        self._last = now

    def summary(self) -> dict[str, float]:
        return {"longest_pause_secs": self._longest_secs, "seconds": self._last - self._start}
