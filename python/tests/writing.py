"""Writes runs file by file, in whatever order and state a test wants."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from smdebug import _core, modes
from smdebug.collection import CollectionManager


def step(
    out_dir: Path,
    number: int,
    worker: str = "worker_0",
    mode: modes = modes.TRAIN,
    mode_step: int | None = None,
    shapes: dict[str, tuple[int, ...]] | None = None,
    **tensors: Any,
) -> None:
    """One step of one worker; a tensor `a__b` is called `a/b`."""
    layout = os.environ.get("SMDEBUG_LAYOUT", "original")
    file = _core.StepFile(str(out_dir), number, worker, layout)
    at = number if mode_step is None else mode_step
    for name, value in (tensors or {"w": np.float32(number)}).items():
        file.tensor(name.replace("__", "/"), value, mode, at, 0.0)
    for name, shape in (shapes or {}).items():
        file.shape(name, f"original/{name}", list(shape), mode, at)
    file.close()


def collections(
    out_dir: Path, worker: str = "worker_0", num_workers: int = 1, **names: list[str]
) -> None:
    """The collections file of a worker."""
    manager = CollectionManager(create_default=True)
    for name, tensors in names.items():
        manager.create_collection(name)
        manager.get(name).tensor_names = tensors
    manager.num_workers = num_workers
    manager.export(str(out_dir), f"{_core.worker_to_file_name(worker)}_collections.json")


def end(out_dir: Path) -> None:
    """The job has ended."""
    (out_dir / _core.END_MARKER).touch()
