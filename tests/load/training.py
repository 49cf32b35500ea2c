"""A small training that records, and writes how long its steps took.

    training.py RUN STEPS_FILE [--until FILE] [--steps N]

Ends when the file is there or the steps are over. A step multiplies matrices for some milliseconds and
saves statistics of 200 tensors.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import smdebug

TENSORS = 200
SIZE = 384


def main() -> None:
    """Trains until it is told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("times", type=Path)
    parser.add_argument("--until", type=Path)
    parser.add_argument("--steps", type=int, default=1 << 30)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    weight = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
    gradients = rng.standard_normal((TENSORS, 256)).astype(np.float32)
    names = [f"gradient/layers.{i // 4}.part{i % 4}.weight" for i in range(TENSORS)]
    times = []
    with smdebug.Hook(
        args.run,
        layout="packed",
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=smdebug.ReductionConfig(reductions=["mean"], norms=["l2"]),
    ) as hook:
        for step in range(args.steps):
            begin = time.perf_counter()
            with hook.step():
                for _ in range(4):
                    weight = weight @ weight
                    weight /= np.abs(weight).max()
                for name, gradient in zip(names, gradients, strict=True):
                    hook.save_tensor(name, gradient, "gradients")
                hook.save_scalar("loss", 1 / (step + 1))
            times.append(time.perf_counter() - begin)
            if args.until is not None and args.until.exists():
                break
    args.times.write_text(json.dumps(times))


if __name__ == "__main__":
    main()
