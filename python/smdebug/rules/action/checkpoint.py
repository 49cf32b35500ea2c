"""Asks the training for a checkpoint."""

from __future__ import annotations

from smdebug.rules.action.base import Action
from smdebug.rules.action.save_now import leave
from smdebug.rules.hit import Hit


class Checkpoint(Action):
    """Asks the hook to have a checkpoint written; put it before StopTraining."""

    def intent(self, hit: Hit) -> str:
        return "ask for a checkpoint"

    def perform(self, hit: Hit) -> str:
        leave(hit, "checkpoint")
        return f"The run was asked for a checkpoint: {hit.path}"
