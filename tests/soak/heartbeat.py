"""A counter in a file, by which a process shows that it makes progress."""

from __future__ import annotations

import os
from pathlib import Path


class Heartbeat:
    """Counts in a file; several lives of a process may use it one after the other."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
        self._count = 0

    def beat(self) -> None:
        """There was progress."""
        self._count += 1
        os.pwrite(self._file, f"{os.getpid()} {self._count:12}\n".encode(), 0)
