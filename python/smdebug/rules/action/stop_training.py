"""Stops a training job that runs on this host: asks first, then sends signals."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from smdebug import run_control
from smdebug.exceptions import SMDebugValueError
from smdebug.logger import get_logger
from smdebug.rules.action.base import Action, ActionFailed, number, text
from smdebug.rules.hit import Hit
from smdebug.run_control import RunRecord

MODES = ("cooperative", "signal", "both")


class StopTraining(Action):
    """Asks the processes of a run to stop; those that run after `grace_s` seconds get SIGTERM.

    `kill_s` seconds later, SIGKILL. `mode` is "cooperative" (ask only), "signal" (SIGTERM at once) or
    "both". Without a prefix it is the run of the rule; otherwise the only running one under `root`
    whose name begins with it, where `root` is the folder that holds the run of the rule.

    Only processes that announced themselves are signalled, and only while process number, start
    time, host and user are the announced ones. It waits until they have ended; inside of the
    training it does not wait, and other processes get signals only as long as this one runs.
    """

    default_max_fires: ClassVar[int] = 1

    def __init__(
        self,
        training_job_prefix: str | None = None,
        mode: str = "both",
        grace_s: float | str = 30,
        kill_s: float | str = 30,
        root: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        if mode not in MODES:
            raise SMDebugValueError(f"mode must be one of {', '.join(MODES)}, not {mode!r}.")
        if training_job_prefix and not re.fullmatch(r"[A-Za-z0-9-]+", training_job_prefix):
            raise SMDebugValueError(
                "training_job_prefix may hold letters, digits and hyphens only, not "
                f"{training_job_prefix!r}."
            )
        self.training_job_prefix = training_job_prefix or None
        self.mode = mode
        self.grace_s = number(grace_s, "grace_s")
        self.kill_s = number(kill_s, "kill_s")
        self.root = None if root is None else text(os.fspath(root), "root")

    def intent(self, hit: Hit) -> str:
        run, running = self._target(hit)
        pids = ", ".join(str(record.pid) for record in running)
        return f"stop the processes {pids} of the run {run}"

    def perform(self, hit: Hit) -> str:
        run, running = self._target(hit)
        if self.mode != "signal":
            run_control.ask(run, "stop", rule=hit.rule, step=hit.step, message=hit.message)
        others = [record for record in running if record.pid != os.getpid()]
        is_inside = len(others) < len(running)
        if others and self.mode != "cooperative" and not is_inside:
            return self._end(run, others)
        if others and self.mode != "cooperative":
            # Who evaluates a rule inside of the training cannot wait: others may wait for its end.
            threading.Thread(
                target=self._end_and_log, args=(run, others), name="smdebug-stop", daemon=True
            ).start()
        return f"The run was asked to stop: {run}"

    def _end(self, run: Path, running: Sequence[RunRecord]) -> str:
        with _watched(running) as processes:
            return f"{self._stop(processes)}: {run}"

    def _end_and_log(self, run: Path, running: Sequence[RunRecord]) -> None:
        try:
            get_logger().info(self._end(run, running))
        except (ActionFailed, OSError) as error:
            get_logger().error(f"Other processes of the run could not be stopped. {error}: {run}")

    def _stop(self, processes: list[_Process]) -> str:
        if self.mode == "both" and _ended(processes, self.grace_s):
            return "The run stopped as it was asked to"
        for process in processes:
            process.send(signal.SIGTERM)
        if _ended(processes, self.kill_s):
            return "The run ended after SIGTERM"
        for process in processes:
            process.send(signal.SIGKILL)
        # The kernel needs a moment; longer only if a process hangs in it.
        if _ended(processes, self.kill_s + 1):
            return "The run ended after SIGKILL"
        raise ActionFailed("A process of the run does not end even after SIGKILL.")

    def _target(self, hit: Hit) -> tuple[Path, list[RunRecord]]:
        """The run to stop and its processes here."""
        if not hit.path:
            raise ActionFailed("The run of the rule is not known.")
        if "://" in hit.path:
            raise ActionFailed(f"A run in an object store has no processes here: {hit.path}")
        own = Path(hit.path)
        if self.training_job_prefix is None:
            return own, self._running(own)
        root = Path(own.absolute().parent if self.root is None else self.root)
        found = []
        for run in run_control.runs_under(root):
            names = {record.run for record in run_control.records(run) if record.is_running}
            if any(name.startswith(self.training_job_prefix) for name in names):
                found.append(run)
        if len(found) != 1:
            names_found = ", ".join(map(str, found)) or "none"
            raise ActionFailed(
                f"Exactly one running run must have a name that begins with "
                f"{self.training_job_prefix!r}, but these were found: {names_found}."
            )
        return found[0], self._running(found[0])

    @staticmethod
    def _running(run: Path) -> list[RunRecord]:
        running = [record for record in run_control.records(run) if record.is_running]
        if not running:
            raise ActionFailed(
                f"No process that announced this run runs on this host under this user: {run}"
            )
        return running


class _Process:
    """A process by a handle that no later process can get."""

    def __init__(self, record: RunRecord) -> None:
        self.handle = os.pidfd_open(record.pid)
        # Between the look at the record and the handle the number may have got another owner.
        if not record.is_running:
            os.close(self.handle)
            raise ProcessLookupError(record.pid)

    def send(self, number_of_signal: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, number_of_signal)


@contextlib.contextmanager
def _watched(running: Sequence[RunRecord]) -> Iterator[list[_Process]]:
    processes: list[_Process] = []
    try:
        for record in running:
            with contextlib.suppress(ProcessLookupError):
                processes.append(_Process(record))
        yield processes
    finally:
        for process in processes:
            os.close(process.handle)


def _ended(processes: list[_Process], timeout_secs: float) -> bool:
    """Whether all of them end in this time; those that did leave the list."""
    deadline = time.monotonic() + timeout_secs
    while processes:
        poll = select.poll()
        for process in processes:
            poll.register(process.handle, select.POLLIN)
        left_secs = deadline - time.monotonic()
        ready = {handle for handle, _ in poll.poll(max(0, left_secs) * 1000)}
        for process in [process for process in processes if process.handle in ready]:
            processes.remove(process)
            os.close(process.handle)
        if not ready and left_secs <= 0:
            return False
    return True
