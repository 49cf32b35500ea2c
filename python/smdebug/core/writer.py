"""Writes the files of one step by hand, for tools written for the original."""

from __future__ import annotations

import os
import time
from types import TracebackType
from typing import Any

from smdebug import _core
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugValueError,
)
from smdebug.logger import get_logger


class FileWriter:
    """One step of one worker. Its files appear at close(), the index last.

    A step has one mode: that of the first tensor or shape.
    With `wtype="tensorboard"` it is a file that TensorBoard shows, for scalars and histograms.
    """

    def __init__(
        self,
        trial_dir: str,
        worker: str,
        step: int = 0,
        wtype: str = "events",
        mode: ModeKeys = ModeKeys.GLOBAL,
        max_queue: int = 10,
        flush_secs: int = 120,
        verbose: bool = False,
        write_checksum: bool = False,
    ) -> None:
        if wtype not in ("events", "tensorboard"):
            raise SMDebugValueError(f"wtype must be 'events' or 'tensorboard', not {wtype!r}.")
        self.trial_dir = trial_dir
        self.worker = worker
        self.step = step
        self.wtype = wtype
        self.mode = mode
        self._file = _core.StepFile(trial_dir, step, worker)
        self._summaries = _core.SummaryFile(trial_dir, worker, mode, step)
        self._has_tensors = False
        self._indexed: bool | None = None

    def write_tensor(
        self,
        tdata: Any,
        tname: str,
        write_index: bool = True,
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        timestamp: float | None = None,
    ) -> None:
        """Adds a tensor: an array, a number, strings or a list of these."""
        if self._indexed is not None and self._indexed != write_index:
            raise SMDebugNotImplementedError(
                "A step has an index for all of its tensors or for none of them."
            )
        self._file.tensor(tname, tdata, *self._place(mode, mode_step), _time(timestamp))
        self._indexed = write_index
        self._has_tensors = True

    def write_shape(
        self,
        name: str,
        shape: tuple[int, ...],
        mode: ModeKeys | None = ModeKeys.GLOBAL,
        mode_step: int | None = None,
        original_name: str | None = None,
    ) -> None:
        """Adds the shape of a tensor."""
        original = name if original_name is None else original_name
        self._file.shape(name, original, list(shape), *self._place(mode, mode_step))

    def write_scalar_summary(
        self, name: str, value: Any, global_step: int, timestamp: float | None = None
    ) -> None:
        """Adds a number to the curve that TensorBoard shows under this name."""
        self._check_tensorboard()
        self._summaries.scalar(name, value, global_step, _time(timestamp))

    def write_histogram_summary(
        self, tdata: Any, tname: str, global_step: int, bins: str = "default"
    ) -> None:
        """Adds a histogram of a tensor, in the buckets that every TensorBoard can show."""
        self._check_tensorboard()
        if bins != "default":
            raise SMDebugNotImplementedError(f"bins must be 'default', not {bins!r}.")
        if not self._summaries.histogram(tname, tdata, global_step, time.time()):
            get_logger().warning(
                "'%s' holds no number that a histogram could show; it is left out.", tname
            )

    def _check_tensorboard(self) -> None:
        if self.wtype != "tensorboard":
            raise SMDebugRuntimeError("Summaries need a FileWriter with wtype='tensorboard'.")

    def name(self) -> str:
        """The path of the event file, once there is something in it."""
        if self.wtype == "tensorboard":
            return os.path.join(
                self.trial_dir, self.mode.name, f"{self.step:012}_{self.worker}.tfevents"
            )
        if not self._has_tensors:
            raise SMDebugRuntimeError(
                "There is no event file yet; it comes into being with the first tensor."
            )
        return os.path.join(self.trial_dir, _core.event_file_name(self.step, self.worker))

    def flush(self) -> None:
        """Shows summaries; the files of a step appear whole, at close()."""
        self._summaries.flush()

    def close(self) -> None:
        """Publishes the step."""
        self._summaries.close()
        self._file.close()
        if self._indexed is False:
            os.remove(os.path.join(self.trial_dir, _core.index_file_name(self.step, self.worker)))
            self._indexed = None

    def _place(self, mode: ModeKeys | None, mode_step: int | None) -> tuple[ModeKeys, int]:
        mode = ModeKeys.GLOBAL if mode is None else mode
        if not isinstance(mode, ModeKeys):
            raise SMDebugValueError(f"{mode!r} is not a mode; expected one of {list(ModeKeys)}.")
        return mode, self.step if mode_step is None else mode_step

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _time(timestamp: float | None) -> float:
    return time.time() if timestamp is None else timestamp


__all__ = ["FileWriter"]
