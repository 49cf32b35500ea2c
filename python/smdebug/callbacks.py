"""Callbacks that a program can hold without risk: they never fail and stand still in children."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from smdebug.guard import Guard


class BaseCallbacks:
    """Makes the callbacks of one hook; a failure in any of them goes through its guard."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._guard = Guard(core.is_strict)
        self._pid = os.getpid()

    @property
    def in_owner(self) -> bool:
        """False in forked children."""
        return os.getpid() == self._pid

    @property
    def are_off(self) -> bool:
        """Whether callbacks have nothing to do any more, or are in a forked child."""
        return self._guard.disabled or not self.in_owner

    def safe(self, site: str, function: Callable[..., None]) -> Callable[..., None]:
        """The function as a callback that never fails and does nothing in forked children."""

        def call(*args: Any) -> None:
            if not self.are_off:
                self.run(site, function, *args)

        return call

    def run(self, site: str, function: Callable[..., object], *args: Any) -> None:
        """Calls the function now; `site` names what is being done."""
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)
