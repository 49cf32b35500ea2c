"""Carries numbers to Weights & Biases as the history of one of its runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from smdebug import _core
from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.exporters import Exporter, StepNumbers, import_package

_MODES = ("offline", "online", "disabled")


class WandbExporter(Exporter):
    """The history of a run of Weights & Biases: one row per global step, at the time of recording.

    Names begin with the mode, and with the worker unless it is `worker_0`: `train/scalar/loss`.
    Workers share the row of a step. The run is ours alone: one that the program has open for itself
    goes on beside it.

    Offline, the default, everything goes to a folder below `dir`, and `wandb sync` sends it later.
    """

    def __init__(
        self,
        project: str = "smdebug",
        name: str | None = None,
        dir: str | os.PathLike[str] | None = None,
        mode: str = "offline",
        *,
        reductions: str | Iterable[str] = (),
        include_regex: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(reductions=reductions, include_regex=include_regex)
        if mode not in _MODES:
            raise SMDebugValueError(
                f"{mode!r} is no mode of Weights & Biases; there are {', '.join(_MODES)}."
                f"{_core.did_you_mean(str(mode), list(_MODES))}"
            )
        self._project = project
        self._name = name
        self._dir = None if dir is None else os.fspath(dir)
        self._mode = mode
        self._wandb = import_package("wandb", "wandb", "wandb")
        self._run: Any = None
        self._last_step = -1
        self._is_closed = False

    @property
    def run_dir(self) -> str | None:
        """Where the files of the run are; None before the first step."""
        return None if self._run is None else os.path.dirname(self._run.dir)

    def export(self, step: StepNumbers) -> None:
        if self._is_closed:
            raise SMDebugRuntimeError("The exporter to Weights & Biases is closed.")
        if step.step < self._last_step:
            # It would be dropped there without a word.
            raise SMDebugValueError(
                f"Weights & Biases takes steps in their order only: {step.step} came after "
                f"{self._last_step}."
            )
        if self._run is None:
            self._run = self._start()
        self._last_step = step.step
        prefix = step.prefix
        row: dict[str, float] = {prefix + name: number for name, number in step.numbers.items()}
        row["_timestamp"] = step.wall_secs
        self._run.log(row, step=step.step)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._run is not None:
            self._run.finish()

    def _start(self) -> Any:
        if self._dir is not None:
            os.makedirs(self._dir, exist_ok=True)  # otherwise a temporary folder would be taken
        # It is about numbers: nothing of the machine or of the program is collected.
        settings = self._wandb.Settings(
            silent=True,
            console="off",
            disable_code=True,
            disable_git=True,
            x_disable_meta=True,
            x_disable_stats=True,
        )
        return self._wandb.init(
            project=self._project,
            name=self._name,
            dir=self._dir,
            mode=self._mode,
            reinit="create_new",
            settings=settings,
        )
