"""What the SageMaker SDK asks for, and a process without leftovers of other tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import smdebug
from container import ROOT
from smdebug import singleton

SDK = ROOT / ".venvs/sagemaker/bin/python"
OURS = (
    "SMDEBUG_",
    "USE_SMDEBUG",
    "TRAINING_JOB_NAME",
    "TENSORBOARD_CONFIG_",
    "CHECKPOINT_CONFIG_",
    "SAGEMAKER_",
    "SM_",
    "RANK",
    "WORLD_SIZE",
)


@pytest.fixture(scope="session")
def sdk_requests() -> dict[str, dict[str, Any]]:
    """The requests of sdk_requests.py, made by the SDK itself."""
    assert SDK.exists(), "Run tools/venv.sh sagemaker first."
    script = Path(__file__).with_name("sdk_requests.py")
    done = subprocess.run(
        [SDK, "-W", "ignore", script], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable and no hook of another test is left."""
    for name in list(os.environ):
        if name.startswith(OURS):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    yield
    smdebug.del_hook()
    singleton.reset_enabled()


@pytest.fixture
def child_environment() -> dict[str, str]:
    """The environment for a script that imports smdebug."""
    paths = [str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@pytest.fixture
def python() -> str:
    return sys.executable
