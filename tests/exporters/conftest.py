"""A run with everything that makes carrying it over difficult."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from smdebug import _core, modes
from smdebug.collection import CollectionManager
from smdebug.exporters import StepNumbers

BEGIN_SECS = 1_700_000_000.0
WORKERS = ("worker_0", "worker_1")
# Global step: mode and its own step.
STEPS = {0: (modes.TRAIN, 0), 1: (modes.TRAIN, 1), 2: (modes.EVAL, 0), 5: (modes.TRAIN, 2)}
LOSSES = {0: 2.0, 1: math.nan, 2: math.inf, 5: 0.5}


def wall_secs(step: int, worker: str) -> float:
    return BEGIN_SECS + step + (0.25 if worker == "worker_1" else 0)


def loss(step: int, worker: str) -> float:
    return LOSSES[step] + (10 if worker == "worker_1" else 0)


def weight(step: int) -> np.ndarray:
    return np.array([[-1.0, 2.0], [-3.0, 4.0 + step]], np.float32)


def write_run(folder: Path, layout: str) -> Path:
    """Two workers, two modes, NaN and infinity, steps that were left out."""
    for number, (mode, mode_step) in STEPS.items():
        for worker in WORKERS:
            file = _core.StepFile(str(folder), number, worker, layout)
            secs = wall_secs(number, worker)
            file.tensor("scalar/loss", np.float64(loss(number, worker)), mode, mode_step, secs)
            file.tensor("fc/weight", weight(number), mode, mode_step, secs)
            file.tensor("fc/bias", np.full(3, number, np.float32), mode, mode_step, secs)
            file.close()
    for worker in WORKERS:
        manager = CollectionManager(create_default=True)
        manager.num_workers = len(WORKERS)
        manager.export(str(folder), f"{worker}_collections.json")
    (folder / _core.END_MARKER).touch()
    return folder


@pytest.fixture(params=["original", "packed"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The run in each layout."""
    return write_run(tmp_path / "run", request.param)


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store of MLflow for all tests, since making one takes seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/store.db"


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's settings reaches the tools."""
    for name in list(os.environ):
        if name.startswith(("SMDEBUG_", "MLFLOW_", "WANDB_", "OTEL_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


@pytest.fixture
def in_thread() -> Callable[[Callable[[], object]], None]:
    """Runs a function as a hook does: on one thread that is not the main one."""

    def call(function: Callable[[], object]) -> None:
        errors: list[BaseException] = []

        def body() -> None:
            try:
                function()
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]

    return call


@pytest.fixture
def step() -> Callable[..., StepNumbers]:
    """Numbers of a step as keywords; `a__b` is called `a/b`."""

    def make(
        number: int,
        mode: modes = modes.TRAIN,
        worker: str = "worker_0",
        numbers: dict[str, float] | None = None,
        **named: float,
    ) -> StepNumbers:
        found = {name.replace("__", "/"): value for name, value in named.items()}
        secs = wall_secs(number, worker)
        return StepNumbers(number, mode, number, secs, worker, {**found, **(numbers or {})})

    return make
