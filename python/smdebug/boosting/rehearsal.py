"""The hook of `smdebug plan` for boosted trees: does the work of the first rounds, writes nothing.

The hook of a framework is put behind `Rehearsing`, and tells when a round begins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from smdebug import _core
from smdebug.boosting.hook import BoostingHook
from smdebug.boosting.rounds import Round
from smdebug.rehearsal import Measurements


class Trees:
    """The model of a plan; it has no parts that could be listed."""

    prefix = "Booster"

    @staticmethod
    def module() -> None:
        """Parts have no names."""


class Rehearsing(BoostingHook):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    _measurements: Measurements
    _noted: list[tuple[str, list[int], str, int]] | None = None  # by the function that runs

    def _set_up(self) -> None:
        super()._set_up()
        self._measurements = Measurements(self._core, is_boosting=True)

    def begin_measuring(self) -> None:
        """A round begins: the one before it is over. Ends the script after enough of them."""
        self._measurements.begin_step([Trees()])

    def _begin_training(self, rounds: Callable[[], int]) -> None:
        super()._begin_training(rounds)
        self._offset = self._core.step + 1

    def _begin_again(self) -> None:
        """Another training goes on with the plan."""

    def _guarded(self, site: str, function: Callable[..., None], *args: Any) -> None:
        """As for other hooks; tensors share the time of the function that saves them."""
        begin = time.perf_counter()
        outer, self._noted = self._noted, []
        try:
            self._measurements.timed(super()._guarded, site, function, *args)
        finally:
            noted, self._noted = self._noted, outer
        secs = (time.perf_counter() - begin) / max(len(noted), 1)
        for name, shape, dtype, size_bytes in noted:
            self._measurements.note(name, secs, shape, dtype, size_bytes)

    def _save_model(self, told: Round) -> None:
        super()._save_model(told)
        if self._names is not None:
            names = self._names
            known = [*names.full, *names.average, *names.mean, *names.importance]
            trees = [f"trees/{column}" for column in told.tree_columns]
            self._measurements.known_names.update(known, trees, ("predictions", "labels"))

    # ---- what would go to the core

    def _put(self, names: list[str], values: list[Any]) -> None:
        super()._put(names, values)
        for name, value in zip(names, values, strict=True):
            self._note(name, np.array(value))  # a writer copies it, too

    def _put_any(self, name: str, value: Any) -> None:
        super()._put_any(name, value)
        self._note(name, np.array(value))

    def _put_shared(self, names: list[str], value: Any) -> None:
        super()._put_shared(names, value)
        for name in names:
            self._note(name, np.array(value), is_stored=name == names[0])

    def _note(self, name: str, value: Any, is_stored: bool = True) -> None:
        self._measurements.known_names.add(name)
        if self._noted is None or not _core.wanted(self._core, name)[0]:
            return
        is_text = value.dtype.kind == "U"
        texts = [len(text.encode()) for text in value.ravel()] if is_text else []
        size_bytes = sum(texts) if is_text else value.nbytes
        dtype = "str" if is_text else value.dtype.name
        self._noted.append((name, list(value.shape), dtype, size_bytes * is_stored))

    def _end_training(self) -> None:
        super()._end_training()
        self._measurements.end_step()

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._measurements.end_step()
            self._guarded("Closing", self._measurements.write, [Trees()])
        super()._close(at_exit)
