"""Runs in an object store: one to read, what reading it costs, and waiting for what arrives."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import smdebug
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.trials import Trial

PATIENCE_SECS = 60
STEPS, TENSORS = 6, 20


def record(out_dir: object, offset: int = 0, **options: Any) -> None:
    """Reductions of many tensors and one large value at each step; `options` are of the hook."""
    hook = smdebug.Hook(
        out_dir,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean", "max"]),
        include_collections=["small", "large"],
        **options,
    )
    hook.get_collection("small").include("^layer")
    hook.get_collection("large").include("^large$")
    hook.get_collection("large").reduction_config = ReductionConfig(save_raw_tensor=True)
    for number in range(STEPS):
        hook.set_mode(modes.EVAL if number == 3 else modes.TRAIN)
        with hook.step():
            for i in range(TENSORS):
                hook.save_tensor(f"layer{i}", np.full(4, number + i + offset, np.float32))
            hook.save_tensor("large", np.full(100_000, number + offset, np.float32))
            hook.save_scalar("loss", 1.0 / (number + 1))
    hook.close()


@contextmanager
def requests_of(trial: Trial) -> Iterator[Counter[str]]:
    """Counts what is sent meanwhile."""
    before = Counter(trial._storage.requests)
    counted: Counter[str] = Counter()
    yield counted
    counted.update(Counter(trial._storage.requests) - before)


def until(condition: Callable[[], Any]) -> None:
    """Returns once it is so; fails after a while."""
    deadline = time.monotonic() + PATIENCE_SECS
    while not condition():
        assert time.monotonic() < deadline, "It did not happen in time."
        time.sleep(0.02)


def spooled(folder: Path) -> list[Path]:
    """What has not been sent yet."""
    return [path for path in (folder / "spool").rglob("*") if path.is_file()]
