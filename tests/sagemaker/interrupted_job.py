"""A training script that can be killed at any moment and goes on from its last checkpoint.

    interrupted_job.py OUT_DIR CHECKPOINTS STEPS EVERY LAYOUT

Prints each step as it begins, after the first line `ready`. What it saves follows from the number of
the step and from how often the job was started.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import smdebug
from smdebug import modes

TRAIN_PER_EVAL = 4


def mode_of(step: int) -> modes:
    return modes.EVAL if step % (TRAIN_PER_EVAL + 1) == TRAIN_PER_EVAL else modes.TRAIN


def weights(step: int, start: int) -> np.ndarray:
    return np.full(2000, step * 1000 + start, np.float64)


def checkpoints(folder: Path) -> list[int]:
    """The steps of which there is a checkpoint."""
    return sorted(int(path.stem) for path in folder.glob("deep/*.json"))


def main() -> None:
    out_dir, folder, steps, every, layout = sys.argv[1:]
    starts = Path(folder).parent / "starts"
    start = len(starts.read_text()) if starts.exists() else 0
    with starts.open("a") as file:
        file.write("x")
    done = max(checkpoints(Path(folder)), default=-1)
    hook = smdebug.Hook(out_dir, save_all=True, save_config={"save_interval": 1}, layout=layout)
    print("ready", int(hook.step), hook.training_run, flush=True)
    for step in range(done + 1, int(steps)):
        hook.set_mode(mode_of(step))
        hook.step()
        print(step, int(hook.step), hook.mode_steps[hook.mode], flush=True)
        hook.save_tensor("w", weights(step, start))
        hook.save_scalar("step", step, sm_metric=True)
        time.sleep(0.002)
        if step % int(every) == int(every) - 1:
            path = Path(folder) / "deep" / f"{step}.json"
            path.parent.mkdir(exist_ok=True)
            path.with_suffix(".part").write_text(json.dumps({"step": step}))
            os.replace(path.with_suffix(".part"), path)
    hook.close()


if __name__ == "__main__":
    main()
