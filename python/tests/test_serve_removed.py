"""A server lets go of runs that were removed."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import smdebug
from recorded import TIMEOUT_SECS
from served import Served, serving

STEPS = 8


def record(run: Path, layout: str) -> None:
    config = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(run, save_config=config, save_all=True, layout=layout) as hook:
        for step in range(STEPS):
            with hook.step():
                hook.save("w", np.full(4, step, np.float32))


def open_files(served: Served) -> list[str]:
    """What the server has open."""
    found = []
    for name in Path(f"/proc/{served.process.pid}/fd").iterdir():
        try:
            found.append(os.readlink(name))
        except OSError:
            continue  # closed meanwhile
    return found


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_removed_run_is_forgotten_and_its_files_are_closed(tmp_path: Path, layout: str) -> None:
    run = tmp_path / "passing"
    record(tmp_path / "staying", layout)
    record(run, layout)
    with serving(tmp_path) as served:
        served.eventually("/api/runs", lambda answer: len(answer["runs"]) == 2)
        for step in range(STEPS):
            served.json("/api/runs/passing/values", tensor="w", step=step)
        assert [path for path in open_files(served) if str(run) in path]
        before = served.json("/api/runs/passing")["revision"]
        shutil.rmtree(run)
        served.eventually("/api/runs/passing", lambda answer: answer["state"] == "gone")
        served.eventually("/api/runs", lambda answer: len(answer["runs"]) == 1)
        deadline = time.monotonic() + TIMEOUT_SECS
        while [path for path in open_files(served) if str(run) in path]:  # until the rules let go
            assert time.monotonic() < deadline, open_files(served)
            threading.Event().wait(0.05)
        assert served.get("/api/runs/passing").status == 404
        record(run, layout)
        served.eventually("/api/runs", lambda answer: len(answer["runs"]) == 2)
        assert served.json("/api/runs/passing")["revision"] > before
