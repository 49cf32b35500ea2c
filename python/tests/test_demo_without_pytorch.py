"""The demo where there is no PyTorch: a network in NumPy, and the same end."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_trains_in_numpy_says_so_and_names_the_sick_layer(tmp_path):
    assert importlib.util.find_spec("torch") is None  # what this environment is for
    run = tmp_path / "run"
    paths = os.pathsep.join([str(ROOT / "python"), os.getenv("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, ROOT / "examples/demo/run.py", "--out", run, "--steps", "60"],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("PyTorch is not installed")
    assert "block3 has learned nothing since step 20" in done.stdout
    assert re.search(r"^warning: LayerStopped: .*block3", done.stdout, re.M)
    assert "block3" in (run / "report.html").read_text(encoding="utf-8")
    assert re.search(r"^See it on a live page: \S+ serve --open ", done.stdout, re.M)
