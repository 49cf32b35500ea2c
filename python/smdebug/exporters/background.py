"""Gives the numbers that a hook saves to exporters, on a thread of its own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable
from typing import Any

from smdebug import _core
from smdebug.exceptions import SMDebugTypeError
from smdebug.exporters import Exporter, StepNumbers, reduction_name
from smdebug.logger import get_logger

# How long closing a hook waits for exporters that are still sending.
DRAIN_SECS = 60.0
_POLL_SECS = 3600.0


class ExportThread:
    """Calls exporters step by step. Training never waits for them, and their failures end only them."""

    def __init__(self, exporters: Iterable[Exporter]) -> None:
        self._exporters: list[Exporter] = list(exporters)
        for exporter in self._exporters:
            if not isinstance(exporter, Exporter):
                raise SMDebugTypeError(
                    "exporters must be instances of smdebug.exporters.Exporter, such as "
                    f"create_exporter('mlflow'), not {exporter!r}."
                )
        wanted = dict.fromkeys(
            name for exporter in self._exporters for name in exporter.choice.reductions
        )
        self.feed = _core.NumberFeed(list(wanted))
        self._thread = threading.Thread(target=self._run, name="smdebug-exporters", daemon=True)
        self._thread.start()

    def close(self, timeout_secs: float = DRAIN_SECS) -> None:
        """Waits until everything was given to the exporters; the hook has ended the feed."""
        self._thread.join(timeout_secs)
        if self._thread.is_alive():
            get_logger().warning(
                "The exporters did not take everything within %g s; the rest is not exported.",
                timeout_secs,
            )
        if self.feed.dropped_steps:
            get_logger().warning(
                "The exporters were too slow: %d steps were not exported.", self.feed.dropped_steps
            )

    def _run(self) -> None:
        while not self.feed.ended:
            fed: Any = self.feed.take(_POLL_SECS)
            if fed is None:
                continue
            for exporter in list(self._exporters):
                self._guarded(exporter, functools.partial(self._export, fed))
        for exporter in list(self._exporters):
            self._guarded(exporter, type(exporter).close)

    @staticmethod
    def _export(fed: tuple[Any, ...], exporter: Exporter) -> None:
        step, mode, mode_step, wall_secs, worker, scalars, reductions = fed
        numbers = dict(scalars)
        for tensor, reduction, value in reductions:
            if reduction in exporter.choice.reductions_of(tensor):
                numbers[reduction_name(tensor, reduction)] = value
        if numbers:
            exporter.export(StepNumbers(step, mode, mode_step, wall_secs, worker, numbers))

    def _guarded(self, exporter: Exporter, call: Callable[[Exporter], None]) -> None:
        try:
            call(exporter)
        except Exception as error:  # whatever a tool raises must not reach training
            self._exporters.remove(exporter)
            get_logger().warning(
                "%s failed and is not used any more; the run itself is not harmed. %s: %s",
                type(exporter).__name__,
                type(error).__name__,
                error,
            )
