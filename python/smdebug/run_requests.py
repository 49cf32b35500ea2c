"""What others ask of the training of one hook, by the files of `run_control`.

A thread looks for them; the training thread answers when its next step begins. Each process of a run
looks by itself, so processes may answer at steps that differ by one.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smdebug import run_control
from smdebug.exceptions import SMDebugValueError, TrainingStopRequested
from smdebug.logger import get_logger

if TYPE_CHECKING:
    from smdebug.hook import BaseHook

# How often requests are looked for: one look at a folder.
POLL_SECS = 0.1
# How often files are read after their folder has changed. A folder tells the time by ticks of some
# milliseconds, so what is written after the first look may not show in it.
LOOKS_AFTER_A_CHANGE = 2


class RunRequests:
    """The requests of one hook. `pending` are answered by the training thread, in their order."""

    def __init__(self, hook: BaseHook, out_dir: str) -> None:
        """Announces the process; raises OSError or SMDebugValueError if that is impossible."""
        self.pending: deque[dict[str, Any]] = deque()
        self._hook = weakref.ref(hook)
        self._out_dir = out_dir
        self._record = run_control.announce(out_dir, *hook._rank_and_size())
        self._seen: dict[str, float] = {}
        self._incidents: set[tuple[Any, ...]] = set()
        self._folder_state: tuple[int, int] | None = None
        self._looks_due = 0
        self._has_stopped = False
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="smdebug-requests", daemon=True)
        self._thread.start()

    # ---- the training's side

    def answer(self, hook: BaseHook) -> None:
        """Does what was asked for. Raises TrainingStopRequested if that was it, once."""
        while self.pending:
            request = self.pending.popleft()
            if request["request"] == "stop":
                self._stop(request)
            elif request["request"] == "checkpoint":
                _write_checkpoint(hook, request)
            else:
                _save_more(hook, request)

    def close(self) -> None:
        """Nothing is answered any more."""
        self._closed.set()
        run_control.note_answer(self._out_dir)

    def _stop(self, request: dict[str, Any]) -> None:
        if self._has_stopped:  # what follows is the end of the training, which is not disturbed
            return
        self._has_stopped = True
        run_control.note_answer(self._out_dir)
        raise TrainingStopRequested(
            str(request.get("rule", "")),
            _whole(request.get("step"), -1),
            str(request.get("message", "")),
        )

    # ---- the thread's side

    def _run(self) -> None:
        while not self._closed.wait(POLL_SECS):
            try:
                self._look()
            except Exception as error:  # nothing of this may end the thread
                get_logger().error(f"Looking for requests failed. {type(error).__name__}: {error}")

    def _look(self) -> None:
        hook = self._hook()
        if hook is None:
            self._closed.set()
            return
        news = self._news() if self._folder_may_have_changed() else []
        self.pending.extend(filter(self._is_first_of_incident, news))
        if self.pending:
            hook._has_request()
        self._seen.update((request["request"], request["time"]) for request in news)

    def _news(self) -> list[dict[str, Any]]:
        """The requests that were not seen yet, in the order in which they are answered."""
        news: list[dict[str, Any]] = []
        # Who asks for both asks for the checkpoint first, so whoever sees the stop sees both.
        for kind in ("stop", "checkpoint", "save_now"):
            found = run_control.asked(self._out_dir, kind, self._record.started)
            if found is not None and self._seen.get(kind) != found["time"]:
                news.insert(0, {**found, "request": kind})
        return news

    def _is_first_of_incident(self, request: dict[str, Any]) -> bool:
        """A rule may run in every process of the training, and each of them asks."""
        if request["request"] == "save_now" or not request.get("rule"):
            return True
        incident = (request["request"], request["rule"], request.get("step"))
        is_first = incident not in self._incidents
        self._incidents.add(incident)
        return is_first

    def _folder_may_have_changed(self) -> bool:
        try:
            found = os.stat(Path(self._out_dir, run_control.FOLDER))
        except OSError:
            return False
        state = (found.st_ino, found.st_mtime_ns)
        if state != self._folder_state:
            self._folder_state = state
            self._looks_due = LOOKS_AFTER_A_CHANGE
        self._looks_due = max(self._looks_due - 1, -1)
        return self._looks_due >= 0


def _write_checkpoint(hook: BaseHook, request: dict[str, Any]) -> None:
    logger, rule = get_logger(), request.get("rule", "")
    if hook._checkpoint is None:
        logger.warning(
            f"Rule {rule} asks for a checkpoint, and nobody writes one: give the hook a function "
            "with hook.on_checkpoint(function)."
        )
        return
    try:
        hook._checkpoint()
    except Exception as error:
        if hook._core.is_strict:
            raise
        logger.error(
            f"The checkpoint that rule {rule} asked for failed. {type(error).__name__}: {error}"
        )
    else:
        logger.info(f"A checkpoint was written, as rule {rule} asked for.")


def _save_more(hook: BaseHook, request: dict[str, Any]) -> None:
    names = request.get("collections")
    try:
        hook._core.save_more(
            [str(name) for name in names] if isinstance(names, list) else [],
            _whole(request.get("steps"), 1),
        )
    except SMDebugValueError as error:
        get_logger().warning(f"More cannot be saved as it was asked for. {error}")


def _whole(value: Any, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default
