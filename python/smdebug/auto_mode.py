"""The mode of a step, taken from the model unless the program has chosen one."""

from __future__ import annotations

from typing import Any

from smdebug import _core


class AutoMode:
    """Follows the model of a hook. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._training: tuple[bool, ...] | None = None  # of the last forward
        self._chosen_at: tuple[bool, ...] | None = None

    def chosen(self) -> None:
        """The program has set a mode: it holds until the model changes."""
        self._chosen_at = self._training

    def follow(self, training: tuple[bool, ...]) -> None:
        """Before a forward; it trains if all of `training` are true."""
        if training == self._training and self._chosen_at is not None:
            return
        if self._training is None and self._core.mode != _core.ModeKeys.GLOBAL:
            self._chosen_at = training  # chosen before the first forward
        else:
            self._chosen_at = None
            self._core.mode = _core.ModeKeys.TRAIN if all(training) else _core.ModeKeys.EVAL
        self._training = training
