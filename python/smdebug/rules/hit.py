"""What is told of a rule whose condition was met: the same to actions, files and reports."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smdebug.exceptions import SMDebugValueError

SEVERITIES = ("info", "warning", "error", "critical")


def severity_argument(severity: Any) -> str:
    """Checks an argument that must be one of the severities."""
    if severity not in SEVERITIES:
        raise SMDebugValueError(
            f"A severity must be one of {', '.join(SEVERITIES)}, not {severity!r}."
        )
    return str(severity)


@dataclass(frozen=True)
class Hit:
    """One rule, one step. Immutable."""

    rule: str
    step: int  # global
    message: str = ""
    mode: str = "GLOBAL"
    mode_step: int | None = None
    severity: str = "error"
    time: float = field(default_factory=time.time)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    violations: Sequence[Mapping[str, Any]] = ()
    run: str = ""  # name of the run
    path: str = ""  # where the run is

    def record(self) -> dict[str, Any]:
        """Everything as values that JSON knows; numbers that it lacks become texts."""
        plain: dict[str, Any] = _plain(dataclasses.asdict(self))
        return plain

    def to_json(self) -> str:
        """The record as one line."""
        return json.dumps(self.record(), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | None):
        return value
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:  # a number of NumPy
        return _plain(value.item())
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Sequence):
        return [_plain(item) for item in value]
    return str(value)
