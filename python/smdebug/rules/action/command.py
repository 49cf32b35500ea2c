"""Runs a program of yours."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Any

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.rules.action.base import Action, ActionFailed, number
from smdebug.rules.hit import Hit

_SHOWN_CHARACTERS = 500
_LONGEST_VARIABLE = 10_000  # characters; the kernel refuses very long ones


class Command(Action):
    """Runs `argv` without a shell, with the record of the hit as JSON on its standard input.

    SMDEBUG_RULE, SMDEBUG_STEP, SMDEBUG_MESSAGE and SMDEBUG_RUN are set for it. After `timeout_s`
    seconds it is killed, together with what it started.
    """

    def __init__(self, argv: Sequence[str], timeout_s: float | str = 60, **options: Any) -> None:
        super().__init__(**options)
        if isinstance(argv, str) or not isinstance(argv, Sequence):
            raise SMDebugTypeError(
                f"argv must be a list of the program and its arguments, not {argv!r}."
            )
        if not argv:
            raise SMDebugValueError("argv must name a program.")
        self.argv = [os.fspath(part) for part in argv]
        self.timeout_s = number(timeout_s, "timeout_s")

    def intent(self, hit: Hit) -> str:
        return f"run {self.argv}"

    def perform(self, hit: Hit) -> str:
        environment = {
            **os.environ,
            "SMDEBUG_RULE": hit.rule,
            "SMDEBUG_STEP": str(hit.step),
            "SMDEBUG_MESSAGE": hit.message.replace("\0", " ")[:_LONGEST_VARIABLE],
            "SMDEBUG_RUN": hit.run,
        }
        # A file, not a pipe: a program that does not read must not raise SIGPIPE in ours.
        with tempfile.TemporaryFile() as record:
            record.write(hit.to_json().encode() + b"\n")
            record.seek(0)
            # The program starts with the signals that programs are used to.
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPIPE})
            process = subprocess.Popen(
                self.argv,
                env=environment,
                stdin=record,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                text=True,
                errors="replace",
            )
        try:
            output, _ = process.communicate(timeout=self.timeout_s)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise ActionFailed(
                    f"{self.argv[0]} was killed after {self.timeout_s:g} s."
                ) from error
            raise
        said = output.strip()[-_SHOWN_CHARACTERS:]
        text = f"{self.argv[0]} exited with {process.returncode}.{' ' if said else ''}{said}"
        if process.returncode != 0:
            raise ActionFailed(text)
        return text
