"""Reads an event file from its beginning to its end, for tools written for the original."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from smdebug import _core
from smdebug.core.modes import ModeKeys
from smdebug.core.utils import match_inc
from smdebug.exceptions import SMDebugNotImplementedError, SMDebugValueError


class FileReader:
    """One event file. `check` is accepted; checksums are always verified where there are any."""

    def __init__(self, fname: str, wtype: str = "tfevent") -> None:
        if wtype != "tfevent":
            raise SMDebugNotImplementedError(f"wtype must be 'tfevent', not {wtype!r}.")
        self.fname = fname

    def read_tensors(self, check: Any = "minimal") -> Iterator[tuple[str, int, Any, ModeKeys, int]]:
        """(name, step, value, mode, mode step) of every tensor."""
        for record in self._records():
            yield record.name, record.step, record.value, record.mode, record.mode_step

    def read_events(
        self, check: Any = "minimal", regex_list: Iterable[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """timestamp, step, name and value of every tensor that one of the patterns matches."""
        for record in self._records():
            if regex_list is None or match_inc(record.name, regex_list):
                yield {
                    "timestamp": record.wall_secs,
                    "step": record.step,
                    "name": record.name,
                    "value": record.value,
                }

    def _records(self) -> list[_core.EventRecord]:
        try:
            records = _core.read_event_file(self.fname)
        except FileNotFoundError as error:
            raise SMDebugValueError(str(error)) from error
        return [record for record in records if record.value is not None]


__all__ = ["FileReader"]
