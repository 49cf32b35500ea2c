"""What a script shows that runs with the released package or with ours."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


def shown(python: Path | str, script: str, folder: Path, **variables: str) -> list[Any]:
    """The values that it writes to stderr, a line of JSON each; it must succeed."""
    done = subprocess.run(
        [str(python), "-W", "ignore", "-c", script, str(folder)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )
    lines = done.stderr.splitlines()
    assert done.returncode == 0, "\n".join(lines[-5:])
    return [json.loads(line) for line in lines]
