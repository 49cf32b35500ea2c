"""Scripts that do not know of smdebug, run in processes of their own with and without recording."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from smdebug.open_trial import create_trial

PACKAGE = str(Path(__file__).resolve().parents[1])
Done = subprocess.CompletedProcess[str]


class Scripts:
    """Runs the scripts of one framework; `variables` are added to the environment."""

    def __init__(self, **variables: str) -> None:
        self._variables = variables
        self._unrecorded: dict[tuple[object, ...], Done] = {}

    def start(self, *words: object, **variables: str) -> Done:
        """Runs Python with these words."""
        kept = {k: v for k, v in os.environ.items() if k != "SMDEBUG_LOG_LEVEL"}
        strict = {"PYTHONPATH": PACKAGE, "SMDEBUG_STRICT": "1"}
        return subprocess.run(
            [sys.executable, *map(str, words)],
            env={**kept, **strict, **self._variables, **variables},
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )

    def unrecorded(self, *words: object) -> Done:
        """What a script does without recording; found out once."""
        if words not in self._unrecorded:
            self._unrecorded[words] = self.start(*words)
        return self._unrecorded[words]

    def recorded(self, out: Path, *words: object, code: int = 0) -> Any:
        """The run of a script, which printed the same and learnt the same as without recording."""
        script = words[[str(word).endswith(".py") for word in words].index(True) :]
        plain = self.unrecorded(*script)
        done = self.start("-m", "smdebug.run", "--out", out, *words)
        assert done.returncode == plain.returncode == code, done.stderr
        assert done.stdout == plain.stdout
        return create_trial(str(out))
