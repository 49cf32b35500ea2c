"""The steps that a reader is limited to."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

from smdebug.exceptions import SMDebugValueError


def step_range(range_steps: Sequence[int | None] | None) -> tuple[int | None, int | None]:
    """(begin, end), half open; either may be None."""
    if range_steps is None:
        return None, None
    valid = isinstance(range_steps, Sequence) and len(range_steps) == 2
    if valid:
        begin, end = range_steps
        whole = all(
            isinstance(n, Integral) and not isinstance(n, bool) and int(n) >= 0
            for n in (begin, end)
            if n is not None
        )
        if whole and not (begin is not None and end is not None and begin >= end):
            return (
                None if begin is None else int(begin),
                None if end is None else int(end),
            )
    raise SMDebugValueError(
        "range_steps must be (begin, end) with 0 <= begin < end, either of which may be None, "
        f"not {range_steps!r}."
    )
