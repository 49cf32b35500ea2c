"""Asks the hook of a run for more evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from smdebug import run_control
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.rules.action.base import Action, ActionFailed, number
from smdebug.rules.hit import Hit


class SaveNow(Action):
    """Asks to save the named collections in full for the next `steps` steps."""

    def __init__(
        self, collections: str | Sequence[str], steps: int | str = 1, **options: Any
    ) -> None:
        super().__init__(**options)
        names = collections.split(",") if isinstance(collections, str) else list(collections)
        if not all(isinstance(name, str) for name in names):
            raise SMDebugTypeError(f"collections must be names, not {collections!r}.")
        self.collections = [name.strip() for name in names if name.strip()]
        self.steps = int(number(steps, "steps"))
        if not self.collections or self.steps < 1:
            raise SMDebugValueError("SaveNow needs at least one collection and one step.")

    def intent(self, hit: Hit) -> str:
        return f"ask for {', '.join(self.collections)} of the next {self.steps} steps"

    def perform(self, hit: Hit) -> str:
        leave(hit, "save_now", collections=self.collections, steps=self.steps)
        return f"The run was asked to save {', '.join(self.collections)}: {hit.path}"


def leave(hit: Hit, request: str, **fields: Any) -> None:
    """Leaves a request in the directory of the run that was hit."""
    if not hit.path or "://" in hit.path:
        raise ActionFailed(f"A request can be left in a local run only, not in {hit.path!r}.")
    run_control.ask(hit.path, request, rule=hit.rule, step=hit.step, message=hit.message, **fields)
