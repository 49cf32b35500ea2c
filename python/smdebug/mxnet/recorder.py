"""Hands arrays to the core: in lists, and without copies where their memory can be read."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.callbacks import BaseCallbacks
from smdebug.mxnet.arrays import view_of
from smdebug.recorder import BaseRecorder


class FailureOfProgram(BaseException):
    """A computation of the program has failed, and we are the first who wait for its result.

    MXNet tells of it once, so it must pass our guard.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Callbacks(BaseCallbacks):
    """Callbacks of blocks. Failures of the program's own computations are the program's."""

    def of_block(self, site: str, function: Any, only_wanted: bool = True) -> _core.Callback:
        """A callback of a block; it does nothing in copies of the block.

        With `only_wanted` it runs in steps that save something alone.
        """
        return _core.Callback(self.safe(site, function), None, self._core, only_wanted)

    def counted(self, site: str, function: Any, *args: Any) -> None:
        """Calls the function now, unless callbacks are off; its time is a cost of recording."""
        if self.are_off:
            return
        self._core.enter_cost()
        try:
            self.run(site, function, *args)
        finally:
            self._core.leave_cost()

    def run(self, site: str, function: Any, *args: Any) -> None:
        """Calls the function now; `site` names what is being done."""
        try:
            super().run(site, function, *args)
        except FailureOfProgram as failure:
            raise failure.error from None


class Recorder(BaseRecorder):
    """What happens to the arrays of one step after another. One thread at a time."""

    def save(self, names: list[str], arrays: list[Any], kind: _core.Kind) -> None:
        """Saves what is wanted. The values are those of now, whatever happens to the arrays."""
        wanted = [i for i, name in enumerate(names) if self._is_wanted(name, kind)]
        if not wanted:
            return
        names = [names[i] for i in wanted]
        arrays = [arrays[i] for i in wanted]
        self.wait_for(arrays)
        refused = _core.save_all(self._core, names, [view_of(array) for array in arrays], kind)
        for i, reason in refused:
            self._save_copy(names[i], arrays[i], kind, reason)

    def wait_for(self, arrays: list[Any]) -> None:
        """Until they are computed. That is the time of the training, not a cost of recording."""
        self._core.leave_cost()
        try:
            for array in arrays:
                array.wait_to_read()
        except Exception as error:
            raise FailureOfProgram(error) from error
        finally:
            self._core.enter_cost()

    def _is_wanted(self, name: str, kind: _core.Kind) -> bool:
        return kind != _core.Kind.automatic or self._core.wants(name)

    def _save_copy(self, name: str, array: Any, kind: _core.Kind, reason: str) -> None:
        """An array whose memory cannot be read, such as that of a GPU."""
        for _, still in _core.save_all(self._core, [name], [array.asnumpy()], kind):
            self.drop(name, f"{still} {reason}")
