"""The rows of the table about training with Keras, beside its TensorBoard callback.

Times are those of the processor, of all threads. What a step that saves nothing costs is far below
what can be seen in the time of steps; so the calls of the hook are measured alone. The function that
runs in such a step is the one of Keras, which the tests show.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20

Line = tuple[str, str, str, str, str]


def lines(base: Path, quick: bool, text: Callable[[float], str]) -> list[Line]:
    """All rows; `text` shows seconds."""
    done = subprocess.run(
        [
            str(ROOT / ".venvs/tf/bin/python"),
            str(ROOT / "bench/keras_training.py"),
            str(base / "keras"),
            *(["--quick"] if quick else []),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1])
    steps, epochs, calls = found["steps"], found["epochs"], found["calls"]
    bare = steps["bare"]
    board = epochs["tensorboard"]
    limit = 3 * bare + found["copy"]
    return [
        (
            f"Keras CNN: hook with defaults, of a step of {text(bare)}",
            f"{calls['defaults'] / bare:.3%} ({text(calls['defaults'])} in its calls)",
            "",
            "",
            "≤ 0.5 %",
        ),
        (
            "Keras CNN: a step that a save-all hook does not save",
            f"{calls['idle'] / bare:.3%} ({text(calls['idle'])} in its calls)",
            "",
            "",
            "≤ 0.5 %",
        ),
        (
            f"Keras CNN: a step with all weights, gradients and layer outputs, "
            f"{found['bytes'] / MIB:.0f} MiB",
            f"{text(steps['everything'])}, {steps['everything'] / bare:.2f} of a bare step",
            f"{text(board)} (TensorBoard, histogram_freq=1, weights alone)",
            f"{board / steps['everything']:.1f}×",
            f"≤ {text(limit)} (3 bare steps and the copy)",
        ),
    ]
