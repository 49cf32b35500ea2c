"""What `stop_training_on_fire` of a rule means: stop a training that hangs."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Mapping
from typing import Any

from smdebug import run_control
from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.rules.action.base import Action
from smdebug.rules.action.stop_training import StopTraining
from smdebug.rules.action.stop_training_action import StopTrainingAction
from smdebug.rules.hit import Hit


class StopStalled(StopTraining):
    """StopTraining that inside of the training signals its own process, too.

    A training that hangs never comes to the step at which it would hear the request. Once it has
    heard it, or its hook is closed, its own process gets no signal.
    """

    def perform(self, hit: Hit) -> str:
        run, running = self._target(hit)
        if self.mode != "cooperative" and any(record.pid == os.getpid() for record in running):
            threading.Thread(
                target=self._end_own_process, args=(str(run),), name="smdebug-stop", daemon=True
            ).start()
        return super().perform(hit)

    def _end_own_process(self, run: str) -> None:
        steps = [(self.grace_s, signal.SIGTERM), (self.kill_s, signal.SIGKILL)]
        for wait_secs, number in steps[self.mode == "signal" :]:
            if run_control.is_answered(run, wait_secs):
                return
            get_logger().error(
                f"The training does not stop as it was asked to; {number.name}: {run}"
            )
            os.kill(os.getpid(), number)


def stop_on_fire(rule: str, parameters: Mapping[str, Any], path: str) -> Action | None:
    """The action that the parameters of a rule ask for; None: they ask for none.

    `path` is the run: one in an object store is stopped as a job of SageMaker.
    """
    if not parameters.get("stop_training_on_fire"):
        return None
    prefix = parameters.get("training_job_name_prefix") or ""
    if "://" not in path:
        return StopStalled(prefix)
    prefix = prefix or os.environ.get("TRAINING_JOB_NAME", "")
    if not prefix:
        raise SMDebugValueError(
            "stop_training_on_fire needs training_job_name_prefix for a run in an object store: "
            f"{path}"
        )
    return StopTrainingAction(rule, prefix)
