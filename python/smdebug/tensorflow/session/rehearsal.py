"""The hook of `smdebug plan` for sessions: does the work of the first runs, and ends the script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from smdebug.tensorflow.rehearsal import TensorMeasurements
from smdebug.tensorflow.session.automatic import AutomaticSessionHook


class RehearsalSessionHook(AutomaticSessionHook):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    _measurements: TensorMeasurements

    def _set_up(self) -> None:
        self._measurements = TensorMeasurements(self._core)
        super()._set_up()

    def _guarded(self, site: str, function: Callable[..., object], *args: Any) -> None:
        self._measurements.timed(super()._guarded, site, function, *args)

    def _begin_run(self, run_context: Any) -> None:
        graph = run_context.session.graph
        self._measurements.add_model("graph", lambda: _names_in(graph))
        self._measurements.begin()
        super()._begin_run(run_context)

    def _save(self, values: Iterable[tuple[str, Any]]) -> None:
        found = list(values)
        super()._save(found)
        for name, value in found:
            if not isinstance(value, bytes):
                self._measurements.measure(name, value)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._guarded("Closing", self._measurements.finish)
        super()._close(at_exit)


def _names_in(graph: Any) -> list[str]:
    return [tensor.name for operation in graph.get_operations() for tensor in operation.outputs]
