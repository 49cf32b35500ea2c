"""The runs that are broken: a small one that our hook records, and one of the original's."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
from smdebug import Hook, ReductionConfig, SaveConfig, _core, modes

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "hook"
STEPS = (0, 1, 2)
# Stands in files outside of the run, where no reader may look.
SECRET = 31337.25
SECRET_NAME = "S3CRET"


def weights(step: int) -> np.ndarray:
    """The value of `w` at a step."""
    return (np.arange(6, dtype=np.float32) + 100 * step).reshape(2, 3)


def record(out_dir: Path, layout: str = "original") -> None:
    """Three steps in two modes: values small and large, words, reductions, a shape."""
    hook = Hook(
        out_dir,
        save_config=SaveConfig(save_interval=1),
        export_tensorboard=False,
        layout=layout,
    )
    hook.get_collection("reduced").reduction_config = ReductionConfig(
        ["min", "mean"], ["max"], ["l2"]
    )
    hook.get_collection("shapes").reduction_config = ReductionConfig(save_shape=True)
    for step in STEPS:
        hook.set_mode(modes.EVAL if step == 1 else modes.TRAIN)
        hook.step()
        hook.save_tensor("w", weights(step))
        hook.save_tensor("words", ["a", "ü", ""])
        hook.save_tensor("r", weights(step), "reduced")
        hook.save_tensor("s", weights(step), "shapes")
        hook.save_scalar("loss", 1.0 / (1 + step))
        if step == 2:
            hook.save_tensor("large", np.arange(20_000, dtype=np.float32))
    hook.close()


def plant_secret(folder: Path) -> None:
    """A folder beside the run with files that a reader would understand."""
    for name, layout in (("secret_run", "original"), ("secret_packed", "packed")):
        every = SaveConfig(save_interval=1)
        with Hook(folder / name, save_config=every, layout=layout) as hook:
            for _ in STEPS:
                hook.step()
                hook.save_tensor("w", np.full((2, 3), SECRET, np.float32))
                hook.save_tensor(SECRET_NAME, np.full(3, SECRET, np.float32))
    shutil.copy(event_file(folder / "secret_run", 1), folder / "secret.tfevents")


def event_file(run: Path, step: int = 1) -> Path:
    return run / _core.event_file_name(step, "worker_0")


def index_file(run: Path, step: int = 1) -> Path:
    return run / _core.index_file_name(step, "worker_0")


def collections_file(run: Path) -> Path:
    return run / _core.collections_file_name("worker_0")


def end_marker(run: Path) -> Path:
    return run / _core.END_MARKER
