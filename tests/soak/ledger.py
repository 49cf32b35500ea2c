"""The side log of a recorder: which steps it reported as saved, and what they hold.

A file of JSON lines that survives the death of its writer: each line is written with one call before
the recorder goes on. One process at a time writes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Account:
    """What a ledger says: lives that began, the last report of each step, whether the run ended."""

    lives: int = 0
    steps: dict[int, int] = field(default_factory=dict)
    is_closed: bool = False

    @property
    def next_step(self) -> int:
        """The first step that nobody reported."""
        return max(self.steps, default=-1) + 1


def read_account(path: Path) -> Account:
    """The account of a ledger; a line without an end was never written completely."""
    account = Account()
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        entry = json.loads(line)
        if "life" in entry:
            account.lives = entry["life"]
        elif "closed" in entry:
            account.is_closed = True
        else:
            account.steps[entry["step"]] = entry["checksum"]
    return account


class Ledger:
    """Appends to the ledger of a run, on behalf of a new life of its recorder."""

    def __init__(self, path: Path) -> None:
        account = read_account(path)
        self.life = account.lives + 1
        self.next_step = account.next_step
        self.is_closed = account.is_closed
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        complete = path.read_bytes().rfind(b"\n") + 1
        os.ftruncate(self._file, complete)
        self._write({"life": self.life})

    def report(self, step: int, checksum: int) -> None:
        """The step is saved, and this is what it holds."""
        self._write({"step": step, "checksum": checksum})

    def close(self) -> None:
        """The run has ended, and everything of it is saved."""
        self._write({"closed": True})
        os.close(self._file)

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry).encode() + b"\n"
        written = os.write(self._file, line)
        assert written == len(line), "The ledger could not be written."


def losses(account: Account, read: Callable[[int], int]) -> list[str]:
    """What is wrong with the steps that were reported; `read` gives the checksum of a step."""
    problems = []
    for step, wanted in sorted(account.steps.items()):
        try:
            found = read(step)
        except Exception as error:
            problems.append(f"step {step} was reported, and cannot be read: {error}")
            continue
        if found != wanted:
            problems.append(f"step {step} was reported with other values")
    return problems
