"""The processes of a soak: how they are started, killed, watched and measured.

One thread, the conductor's, uses all of this.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gauge

Token = Callable[["Member"], Any]
Measure = Callable[["Member"], "tuple[float, int] | None"]


def heartbeat_token(member: Member) -> Any:
    """Progress is what the process writes into its heartbeat file."""
    path = member.folder / f"{member.name}.heartbeat"
    return path.read_bytes() if path.exists() else b""


def output_token(member: Member) -> Any:
    """Progress is another line of output."""
    return member.output.stat().st_size


def cpu_token(member: Member) -> Any:
    """Progress is that it used the processor at all."""
    return gauge.cpu_ticks(member.pid)


def process_size(member: Member) -> tuple[float, int] | None:
    """Resident memory in MiB and open files of the process."""
    return gauge.measure(member.pid)


def told_size(member: Member) -> tuple[float, int] | None:
    """The memory in MiB that the process tells last in its heartbeat: that of a page, and not of
    the program that drives the browser."""
    words = heartbeat_token(member).split()
    return (float(words[2]), 0) if len(words) > 2 else None


@dataclass
class Life:
    """One process of a member, and how it ended."""

    process: subprocess.Popen[bytes]
    samples: gauge.Samples = field(default_factory=gauge.Samples)
    was_killed: bool = False


class Member:
    """One role; its processes follow each other."""

    def __init__(
        self,
        name: str,
        command: list[str],
        folder: Path,
        *,
        token: Token = heartbeat_token,
        measure: Measure = process_size,
        is_spared: bool = False,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.name = name
        self.folder = folder
        self.is_spared = is_spared
        self.lives: list[Life] = []
        self.output = folder / f"{name}.out"
        self.log = folder / f"{name}.log"
        self._command = command
        self._environment = {**os.environ, **(environment or {})}
        self._token = token
        self._measure = measure
        self._beat_at_start: Any = None
        self._seen: Any = None
        self._seen_at = time.monotonic()

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def pid(self) -> int:
        return self.life.process.pid

    @property
    def is_running(self) -> bool:
        return bool(self.lives) and self.life.process.poll() is None

    @property
    def is_stopped(self) -> bool:
        """Whether somebody else has stopped the process."""
        return self.is_running and gauge.is_stopped(self.pid)

    @property
    def kills(self) -> int:
        return sum(life.was_killed for life in self.lives)

    def start(self) -> None:
        """Begins a life; its output is appended to that of the lives before."""
        beat = heartbeat_token(self)
        with self.output.open("ab") as out, self.log.open("ab") as log:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=self._environment,
                cwd=self.folder,
            )
        self.lives.append(Life(process))
        self._beat_at_start = beat
        self._seen_at = time.monotonic()

    def has_begun(self) -> bool:
        """Whether this life has had a heartbeat."""
        return heartbeat_token(self) != self._beat_at_start

    def kill(self) -> None:
        """Ends the life without a warning."""
        self.life.was_killed = True
        self.life.process.send_signal(signal.SIGKILL)
        self.life.process.wait()

    def sample(self, now: float) -> None:
        """Measures the process, if there is one."""
        measured = self._measure(self) if self.is_running else None
        if measured is not None:
            self.life.samples.add(now, *measured)

    def silent_secs(self) -> float:
        """How long there was no progress."""
        token = self._token(self)
        now = time.monotonic()
        if token != self._seen or self.is_stopped:
            self._seen, self._seen_at = token, now
        return now - self._seen_at

    def forgive(self, secs: float) -> None:
        """So much of the silence was not its fault."""
        self._seen_at += secs

    def ended_by_itself(self) -> str:
        """What to say of a process that has ended and was not killed; nothing if it runs."""
        if self.is_running or not self.lives or self.life.was_killed:
            return ""
        return f"ended with {self.life.process.returncode}: {self.last_words()}"

    def last_words(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-800:].strip()

    def wait(self, secs: float) -> int | None:
        """The exit code; None, and the end of the process, if it does not end in time."""
        try:
            return self.life.process.wait(secs)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def leaks(self) -> list[str]:
        """What grew in any life that was long enough."""
        judged = [life.samples for life in self.lives if gauge.is_judged(life.samples)]
        return [f"{self.name}: {problem}" for samples in judged for problem in gauge.leaks(samples)]


def stuck(members: list[Member], patience_secs: float) -> list[str]:
    """Members that run and make no progress."""
    return [
        f"{member.name} made no progress for {member.silent_secs():.0f} s"
        for member in members
        if member.is_running and member.silent_secs() > patience_secs
    ]
