"""A fault as the bench knows it: what is injected, when, where, and who should notice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from faults.injection import Injection


@dataclass(frozen=True)
class Form:
    """One way to inject a fault into one kind of trainer."""

    trainers: tuple[str, ...]
    settings: dict[str, Any] = field(default_factory=dict)
    # Settings that are the trainer's own, multiplied.
    factors: dict[str, float] = field(default_factory=dict)
    injection: Callable[[], Injection] = Injection
    # What the name of the tensor must contain that a finding blames first; "" if none is at fault.
    tensor: str = ""
    # The rank at fault, −1 if none.
    rank: int = -1
    onset: int = 0
    name: str = ""
    symptom: str = ""


@dataclass(frozen=True)
class Fault:
    """A fault, the rules that name it rightly, and its forms."""

    number: int
    name: str
    family: str
    expected: tuple[str, ...]
    symptom: str
    forms: tuple[Form, ...]
    # A finding of any severity will do, and an alarm is more than is wanted.
    is_report_only: bool = False
