"""When trials look for news."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def _refreshing(trials: Any, on: bool) -> Iterator[Any]:
    several = trials if isinstance(trials, (list, tuple, set)) else [trials]
    before = [(trial, trial.dynamic_refresh) for trial in several]
    for trial in several:
        trial.dynamic_refresh = on
    try:
        yield trials
    finally:
        for trial, value in before:
            trial.dynamic_refresh = value


def no_refresh(trials: Any) -> Any:
    """Within `with no_refresh(trial):` the trial, or each of a list, looks at no new files."""
    return _refreshing(trials, False)


def refresh(trials: Any) -> Any:
    """Within `with refresh(trial):` the trial, or each of a list, looks for new files again."""
    return _refreshing(trials, True)
