"""The workers of one process: one for each device of a strategy whose devices have names.

The first of them is the hook's own core. The others are twins of it, which make the same steps and
get the tensors of their own replica; numbers of the host are saved by all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smdebug.logger import get_logger
from smdebug.tensorflow.keras.offers import Offers
from smdebug.tensorflow.keras.worker import Place


class Crew:
    """The cores of one hook. It is used as the first of them where steps begin and end."""

    def __init__(self, core: Any, offers: Offers) -> None:
        self._core = core
        self._offers = offers
        self._twins: list[Any] = []
        # (offers, number of the replica)
        self._others: list[tuple[Offers, int]] = []
        self._first = 0  # number of the replica of the first worker

    def __getattr__(self, name: str) -> Any:
        return getattr(self._core, name)

    @property
    def is_split(self) -> bool:
        """Whether replicas are workers of their own."""
        return bool(self._twins)

    def man(self, place: Place) -> None:
        """Makes the workers that a strategy needs; once, before the first step."""
        if self._twins or not place.devices or self._core.step >= 0:
            return
        self._first = place.devices.index(place.chief)
        if not self._core.save_all_workers:
            return
        for replica, device in enumerate(place.devices):
            if device != place.chief:
                twin = self._core.create_twin(device, place.chief, len(place.devices))
                twin.mode = self._core.mode
                self._twins.append(twin)
                self._others.append((Offers(twin), replica))

    def offers(self) -> Iterator[tuple[Offers, int]]:
        """(offers, number of the replica) of all workers."""
        yield self._offers, self._first
        yield from self._others

    # ---- steps, which all workers make

    @property
    def mode(self) -> Any:
        """The mode of the steps that begin from now on."""
        return self._core.mode

    @mode.setter
    def mode(self, mode: Any) -> None:
        self._core.mode = mode
        for twin in self._twins:
            twin.mode = mode

    def begin_step(self) -> None:
        """The next step."""
        self._core.begin_step()
        for twin in self._twins:
            twin.begin_step()

    def begin_steps(self, count: int) -> None:
        """The next steps, as one."""
        self._core.begin_steps(count)
        for twin in self._twins:
            twin.begin_steps(count)

    def cancel_step(self) -> None:
        """The step that began did not happen."""
        self._core.cancel_step()
        for twin in self._twins:
            twin.cancel_step()

    def end_step(self) -> None:
        """The step is over."""
        self._core.end_step()
        for twin in self._twins:
            twin.end_step()

    def close(self, at_exit: bool) -> None:
        """The twins have nothing left to write; the hook closes its own core."""
        twins, self._twins = self._twins, []
        self._others = []
        for twin in twins:
            error = twin.close(at_exit)
            if error is not None:
                get_logger().error(error)
