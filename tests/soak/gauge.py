"""Memory and open files of a process over time, and whether they grow."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

# Lives that are shorter than this are not judged: everything grows at first.
LEAST_SECS = 240.0
# Fitted to the second half of a life. What a reader knows of a run grows with its steps, and caches
# fill in jumps; a leak of one record per step is many times more.
MOST_RSS_MIB_PER_MINUTE = 1.5
MOST_FILES_PER_MINUTE = 0.5


@dataclass
class Samples:
    """Seconds, resident memory in MiB and open file descriptors of one life of a process."""

    secs: list[float] = field(default_factory=list)
    rss_mib: list[float] = field(default_factory=list)
    files: list[int] = field(default_factory=list)

    def add(self, secs: float, rss_mib: float, files: int) -> None:
        self.secs.append(secs)
        self.rss_mib.append(rss_mib)
        self.files.append(files)

    @property
    def duration_secs(self) -> float:
        return self.secs[-1] - self.secs[0] if self.secs else 0.0


def measure(pid: int) -> tuple[float, int] | None:
    """(resident MiB, open files) of a process that runs; None if it does not."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        files = len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, files


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def cpu_ticks(pid: int) -> int | None:
    """Processor time that a process has used; None if it does not run."""
    fields = _stat(pid)
    return int(fields[11]) + int(fields[12]) if fields else None


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped the process, as SIGSTOP does."""
    return _stat(pid)[:1] in (["T"], ["t"])


def growth_per_minute(secs: list[float], values: list[float]) -> float:
    """The slope of a line through the second half."""
    middle = (secs[0] + secs[-1]) / 2
    half = [(at, value) for at, value in zip(secs, values, strict=True) if at >= middle]
    slope = np.polyfit(*np.array(half).T, 1)[0]
    return float(slope) * 60


def is_judged(samples: Samples) -> bool:
    """Whether a life was long enough to say anything."""
    return samples.duration_secs >= LEAST_SECS


def leaks(samples: Samples) -> list[str]:
    """What grows in a life that is judged."""
    problems = []
    memory = growth_per_minute(samples.secs, samples.rss_mib)
    if memory > MOST_RSS_MIB_PER_MINUTE:
        problems.append(f"memory grows by {memory:.2f} MiB a minute")
    files = growth_per_minute(samples.secs, [float(count) for count in samples.files])
    if files > MOST_FILES_PER_MINUTE:
        problems.append(f"open files grow by {files:.2f} a minute")
    return problems
