"""The callback before each forward of a model, which begins a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smdebug.mxnet.arrays import is_array
from smdebug.mxnet.blocks import Root


class StepCallback:
    """Steps that save nothing stay in here; everything else is done by slow(block, args).

    `is_fast` says that nothing but counting is to be done before a forward, as far as the hook
    knows. Copies of it, which copies of a model hold, do nothing.
    """

    __slots__ = (
        "_begin",
        "_begun",
        "_core",
        "_failed",
        "_kinds",
        "_lock",
        "_root",
        "_slow",
        "is_fast",
    )

    def __init__(
        self,
        root: Root | None = None,
        core: Any = None,
        lock: Any = None,
        slow: Callable[..., None] | None = None,
        begun: Callable[[], None] | None = None,
        follow: Callable[[], None] | None = None,
        failed: Callable[[Exception], None] | None = None,
    ) -> None:
        self._root = root
        self._core = core
        self._begin = None if core is None else core.begin_step
        self._lock = lock
        self._slow = slow
        self._begun = begun
        self._follow = follow
        self._failed = failed
        self._kinds: set[type] = set()  # of first arguments: arrays, and no symbols
        self.is_fast = False
        self.follows_mode = False  # the mode of each step is that of its forward

    def __call__(self, block: Any, args: Any) -> None:
        if self._slow is None:
            return
        if self.is_fast and args and type(args[0]) in self._kinds and self._has_one_context():
            self._count()
            return
        if args and is_array(args[0]):
            self._kinds.add(type(args[0]))
        self._slow(block, args)

    def _count(self) -> None:
        with self._lock:
            try:
                if self.follows_mode:
                    self._follow()  # type: ignore[misc]
                self._begin()  # type: ignore[misc]
            except Exception as error:
                self._failed(error)  # type: ignore[misc]
                return
            if self._core.is_step_wanted:
                self._begun()  # type: ignore[misc]

    def _has_one_context(self) -> bool:
        parameter = self._root.first_parameter()  # type: ignore[union-attr]
        return parameter is None or len(parameter.list_ctx()) == 1

    def __copy__(self) -> StepCallback:
        return StepCallback()

    def __deepcopy__(self, memo: Any) -> StepCallback:
        return StepCallback()

    def __reduce__(self) -> Any:
        return (StepCallback, ())
