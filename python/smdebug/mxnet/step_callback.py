"""The callback before each forward of a model, which begins a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from smdebug.mxnet.arrays import is_array
from smdebug.mxnet.blocks import Root


@dataclass(frozen=True)
class StepCalls:
    """What a hook does about a step. None of it fails, except follow()."""

    slow: Callable[..., None]  # slow(block, args): everything
    begun: Callable[[], None]  # the step that has begun saves something
    follow: Callable[[], None]  # sets the mode of the step that is going to begin
    failed: Callable[[Exception], None]


class StepCallback:
    """Steps that save nothing stay in here.

    `is_fast` says that nothing but counting is to be done before a forward, as far as the hook
    knows; `follows_mode` that the mode of each step is that of its forward. Copies of it, which
    copies of a model hold, do nothing.
    """

    def __init__(self, root: Root, core: Any, lock: Any, calls: StepCalls) -> None:
        self._root = root
        self._core = core
        self._lock = lock
        self._calls = calls
        self._kinds: set[type] = set()  # of first arguments: arrays, and no symbols
        self.is_fast = self.follows_mode = False

    def __call__(self, block: Any, args: Any) -> None:
        if self.is_fast and args and type(args[0]) in self._kinds and self._has_one_context():
            self._count(self._calls)
            return
        if args and is_array(args[0]):
            self._kinds.add(type(args[0]))
        self._calls.slow(block, args)

    def _count(self, calls: StepCalls) -> None:
        with self._lock:
            try:
                if self.follows_mode:
                    calls.follow()
                self._core.begin_step()
            except Exception as error:
                calls.failed(error)
                return
            if self._core.is_step_wanted:
                calls.begun()

    def _has_one_context(self) -> bool:
        parameter = self._root.first_parameter()
        return parameter is None or len(parameter.list_ctx()) == 1

    def __copy__(self) -> Callable[..., None]:
        return do_nothing

    def __deepcopy__(self, memo: Any) -> Callable[..., None]:
        return do_nothing

    def __reduce__(self) -> Any:
        return (_nothing, ())


def do_nothing(block: Any, args: Any) -> None:
    """The callback of copies."""


def _nothing() -> Callable[..., None]:
    return do_nothing
