"""Reads a run back, and runs scripts in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smdebug import _core, run_control

# Where the package lies that is tested: in the checkout, or where a wheel was installed.
PACKAGE = Path(_core.__file__).resolve().parents[1]
TIMEOUT_SECS = 60


def steps(out_dir: Path, worker: str = "worker_0") -> list[int]:
    """The steps that a reader sees."""
    found = [_core.parse_step_file_name(str(p)) for p in out_dir.glob("index/*/*.json")]
    return sorted(step for step, by in filter(None, found) if by == worker)


def index(out_dir: Path, step: int, worker: str = "worker_0") -> dict[str, Any]:
    """The index of a step."""
    path = out_dir / _core.index_file_name(step, worker)
    return _core.parse_index(path.read_text(encoding="utf-8"), str(path))


def tensors(out_dir: Path, step: int = 0, worker: str = "worker_0") -> dict[str, _core.EventRecord]:
    """The records of a step by name, found through the index."""
    listed = index(out_dir, step, worker)
    return {
        name: _core.read_record(str(out_dir / listed["event_file"]), offset, length)
        for name, offset, length in listed["tensors"]
    }


def value(out_dir: Path, name: str, step: int = 0, worker: str = "worker_0") -> Any:
    """The value of one tensor."""
    return tensors(out_dir, step, worker)[name].value


def names(out_dir: Path, step: int = 0, worker: str = "worker_0") -> list[str]:
    """The names of the tensors of a step, sorted; reductions and scalars included."""
    return sorted(tensors(out_dir, step, worker))


def wait_for(path: Path) -> None:
    """Returns once the file is there; fails after a while."""
    deadline = time.monotonic() + TIMEOUT_SECS
    never = threading.Event()
    while not path.exists():
        assert time.monotonic() < deadline, path
        never.wait(0.005)


def wait_until(condition: Callable[[], object]) -> None:
    """Until another thread has done its part."""
    deadline = time.monotonic() + TIMEOUT_SECS
    ready = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, condition
        ready.wait(0.01)


def wait_until_heard(hook: Any, *requests: str) -> None:
    """Until the next step of the hook will answer these requests, which somebody leaves."""

    def are_heard() -> bool:
        found = {request: run_control.asked(hook.out_dir, request) for request in requests}
        seen = hook._rule_watch._requests._seen
        return all(left and seen.get(name) == left["time"] for name, left in found.items())

    wait_until(are_heard)


def start(code: str, *args: object, **variables: str) -> subprocess.Popen[str]:
    """Starts a script with the package on its path."""
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **variables}
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(code: str, *args: object, **variables: str) -> str:
    """What the script printed; fails if the script does."""
    process = start(code, *args, **variables)
    out, err = process.communicate(timeout=TIMEOUT_SECS)
    assert process.returncode == 0, err
    return out
