#!/usr/bin/env python3
"""Times histograms of large tensors for TensorBoard, ours and PyTorch's SummaryWriter.

    histograms.py ours|theirs COUNT ELEMENTS DIR

Prints JSON: seconds of the training thread per step of COUNT tensors, the best of a few steps, and
what closing took. `theirs` runs in an environment with torch and tensorboard.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

STEPS = 4


def ours(
    tensors: list[np.ndarray], out_dir: Path
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """A hook that saves nothing but histograms."""
    import smdebug

    hook = smdebug.Hook(
        out_dir=str(out_dir),
        tensorboard_dir=str(out_dir / "board"),
        include_collections=["weights"],
        save_config=smdebug.SaveConfig(save_interval=1),
        reduction_config=smdebug.ReductionConfig(save_shape=True),
    )
    hook.set_mode(smdebug.modes.TRAIN)

    def save(step: int) -> None:
        hook.begin_step()
        for i, tensor in enumerate(tensors):
            hook.save(f"layer{i}/weight", tensor)
        hook.end_step()

    return save, hook.close


def theirs(
    tensors: list[np.ndarray], out_dir: Path
) -> tuple[Callable[[int], None], Callable[[], None]]:
    """What PyTorch users call."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(log_dir=str(out_dir / "board"))

    def save(step: int) -> None:
        for i, tensor in enumerate(tensors):
            writer.add_histogram(f"layer{i}/weight", tensor, step)

    return save, writer.close


def main() -> None:
    who, count, elements, out_dir = (
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        Path(sys.argv[4]),
    )
    random = np.random.default_rng(1)
    tensors = [random.normal(scale=0.02, size=elements).astype(np.float32) for _ in range(count)]
    save, close = (ours if who == "ours" else theirs)(tensors, out_dir)
    seconds = []
    for step in range(STEPS):
        begin = time.perf_counter()
        save(step)
        seconds.append(time.perf_counter() - begin)
    begin = time.perf_counter()
    close()
    print(json.dumps({"step": min(seconds[1:]), "close": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
