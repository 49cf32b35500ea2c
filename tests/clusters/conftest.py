"""Runs to judge, and where the workers of clusters find the package and the rules."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from smdebug import Hook, SaveConfig, singleton

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "python/tests"
# Set before a cluster starts: its processes inherit it.
sys.path.insert(0, str(RULES))
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "python"), str(RULES), os.environ.get("PYTHONPATH", "")]
)
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Four finished runs with a tensor `w` that grows from different numbers."""
    made = []
    for first in (0, 3, -9, 1):
        out_dir = tmp_path_factory.mktemp("runs") / f"from_{first}"
        hook = Hook(out_dir, save_all=True, save_config=SaveConfig(save_interval=1))
        for step in range(6):
            hook.step()
            hook.save("w", np.full(2, first + step, np.float32))
        hook.close()
        singleton.del_hook()
        made.append(out_dir)
    return made
