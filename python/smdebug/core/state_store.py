"""The state of an interruptible job, for tools written for the original."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.core.config_constants import (
    LATEST_GLOBAL_STEP_SAVED,
    LATEST_GLOBAL_STEP_SEEN,
    LATEST_MODE_STEP,
    TRAINING_RUN,
)
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugRuntimeError


class StateStore:
    """metadata.json beside the checkpoints; does nothing in a job without checkpoints."""

    def __init__(self) -> None:
        folder = _core.checkpoint_folder()
        self._file = None if folder is None else _core.ResumeFile(folder)

    def is_checkpoint_updated(self) -> bool:
        """Whether the checkpoint files have changed since the last call."""
        return self._file is not None and self._file.has_new_checkpoint()

    def get_last_saved_state(self) -> dict[str, Any] | None:
        """The state that went furthest; None if there is none."""
        state = None if self._file is None else self._file.load()
        if state is None:
            return None
        return {
            TRAINING_RUN: state.training_run,
            LATEST_GLOBAL_STEP_SAVED: state.latest_step_saved,
            LATEST_GLOBAL_STEP_SEEN: state.latest_step_seen,
            LATEST_MODE_STEP: {mode.name: step for mode, step in state.mode_steps.items()},
        }

    def update_state(self, ts_state: dict[str, Any]) -> None:
        """Appends a state."""
        if self._file is None:
            raise SMDebugRuntimeError("This job has no folder for checkpoints.")
        state = _core.ResumeState()
        state.training_run = ts_state[TRAINING_RUN]
        state.latest_step_saved = ts_state[LATEST_GLOBAL_STEP_SAVED]
        state.latest_step_seen = ts_state[LATEST_GLOBAL_STEP_SEEN]
        state.mode_steps = {ModeKeys[n]: step for n, step in ts_state[LATEST_MODE_STEP].items()}
        self._file.append(state)


__all__ = ["StateStore"]
