"""Things that are sent together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from smdebug.exceptions import SMDebugValueError

Item = TypeVar("Item")


class Batch(Generic[Item]):
    """Keeps items until there are enough of them or they have waited long enough. One thread.

    `send` gets at most `max_items`. Items wait for `max_secs`, as far as `add` or `flush` is called:
    nothing happens in the background.
    """

    def __init__(
        self,
        send: Callable[[list[Item]], None],
        max_items: int,
        max_secs: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._send = send
        self._max_items = max_items
        self._max_secs = _seconds(max_secs)
        self._clock = clock
        self._items: list[Item] = []
        self._sent_at = -math.inf

    def add(self, items: Iterable[Item]) -> None:
        self._items.extend(items)
        if self._clock() - self._sent_at >= self._max_secs:
            self.flush()
        while len(self._items) >= self._max_items:
            self._send_some()

    def flush(self) -> None:
        """Sends everything."""
        while self._items:
            self._send_some()

    def _send_some(self) -> None:
        items, self._items = self._items[: self._max_items], self._items[self._max_items :]
        self._send(items)
        self._sent_at = self._clock()


def _seconds(value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise SMDebugValueError(f"batch_secs must be a number of seconds from 0 on, not {value!r}.")
    return number
