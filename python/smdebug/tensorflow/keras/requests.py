"""What rules and people ask of a training: it is answered where a step is about to begin."""

from __future__ import annotations

import weakref

from smdebug.hook import BaseHook


class Requests:
    """The requests to the training of one hook. One thread at a time."""

    def __init__(self, hook: BaseHook) -> None:
        self._hook = weakref.ref(hook)
        self._watch = hook._rule_watch

    @property
    def are_there(self) -> bool:
        """Whether something was asked and not answered."""
        return self._watch is not None and bool(self._watch.requests)

    def answer(self) -> None:
        """Does what was asked for. Raises TrainingStopRequested if that was it."""
        hook = self._hook()
        if hook is not None and self._watch is not None:
            self._watch.answer(hook)
