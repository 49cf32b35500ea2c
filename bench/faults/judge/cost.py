"""What recording costs a training: time per step and bytes per step, for each trainer."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faults.case import plain_case
from faults.recorder import NoRecorder, Recorder
from faults.settings import TRAINERS
from faults.training import Training

REPEATS = 5


@dataclass(frozen=True)
class Cost:
    """Of one trainer: what the training thread spends, writing happens on another."""

    trainer: str
    step_micros: float
    recording_micros: float
    bytes_per_step: float


def measure(trainer: str) -> Cost:
    """The fastest of a few trainings with and without recording, in time of the training thread."""
    case = plain_case(trainer, 1)
    steps = case.settings.steps
    size = 0

    def seconds(make: Callable[..., Recorder]) -> float:
        nonlocal size
        best = float("inf")
        for _ in range(REPEATS):
            training = case.make_training()
            assert isinstance(training, Training)
            with tempfile.TemporaryDirectory() as folder:
                start = time.thread_time()
                training.run(Path(folder) / "run", make)
                best = min(best, time.thread_time() - start)
                size = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
        return best

    without = seconds(NoRecorder)
    recorded = seconds(Recorder)
    return Cost(trainer, 1e6 * without / steps, 1e6 * (recorded - without) / steps, size / steps)


def measure_all() -> list[Cost]:
    """Of all trainers that share the loop; boosted trees record for themselves."""
    return [measure(trainer) for trainer in TRAINERS if trainer != "trees"]
