"""Runs a program in our place: its streams are ours, and signals that reach us reach it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TextIO

FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_child(
    command: Sequence[str], environment: dict[str, str], stdout: TextIO | None = None
) -> int:
    """The exit code, and -n after signal n. OSError: the program cannot be started.

    With `stdout`, what the program prints goes there.
    """
    process: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before there was a process
    # Ctrl-C reaches everything that shares the terminal; once more would be twice.
    shares_terminal = sys.stdin is not None and sys.stdin.isatty()

    def forward(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and shares_terminal:
            return
        if process is None:
            early.append(number)
        else:
            process.send_signal(number)

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        process = subprocess.Popen(command, env=environment, stdout=stdout)
        for number in early:
            process.send_signal(number)
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
