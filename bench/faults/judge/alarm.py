"""An alarm: what a detector says about a run. Plain value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Alarm:
    """One finding; those of a run are ordered, the one that matters most first."""

    rule: str
    # "info" is a report; the others are alarms.
    severity: str
    # Global step of the first hit.
    first_step: int
    tensors: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()

    @property
    def is_report(self) -> bool:
        return self.severity == "info"

    @staticmethod
    def from_json(document: dict[str, Any]) -> Alarm:
        """The inverse of `dataclasses.asdict`, through JSON."""
        lists = {name: tuple(document[name]) for name in ("tensors", "workers")}
        return Alarm(**{**document, **lists})
