"""The hook of scripts that do not know of it: sessions get it when they are made."""

from __future__ import annotations

import os
from typing import Any

from smdebug import _core, automatic
from smdebug.tensorflow.session.hook import SessionHook
from smdebug.tensorflow.session.notes import Notes

# FrameworkParameters of the JSON file, with their types.
OPTIONS: dict[str, type] = {"auto_mode": bool}


class AutomaticSessionHook(automatic.GivingWay, SessionHook):
    """A script that asks for the hook of the process may use it, too."""

    auto_mode = False  # whether Estimators set the mode

    def set_option(self, name: str, value: Any) -> None:
        """Sets what a JSON file has given."""
        setattr(self, name, value)

    def use(self, notes: Notes) -> None:
        """What optimizers have said before there was a hook."""
        self._notes = notes

    @property
    def is_closed(self) -> bool:
        """Whether nothing is recorded any more."""
        return self._core.is_closed

    def follow(self, mode: _core.ModeKeys) -> None:
        """An Estimator begins to train, evaluate or predict."""
        if self.auto_mode and self._is_on:
            self.set_mode(mode)


def make_hook() -> AutomaticSessionHook:
    """The hook that the job's JSON file describes; its messages keep off the script's output."""
    kind: type[AutomaticSessionHook] = AutomaticSessionHook
    if "SMDEBUG_PLAN" in os.environ:
        from smdebug.tensorflow.session.rehearsal import RehearsalSessionHook

        kind = RehearsalSessionHook
    hook = automatic.make_hook(kind, OPTIONS)
    automatic.rename_patterns(hook, {})  # objects say what a tensor is
    return hook
