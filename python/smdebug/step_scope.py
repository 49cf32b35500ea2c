"""What `hook.step` is: a number that begins steps when it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smdebug.hook import BaseHook


class StepNumber(int):
    """The number of the current step; calling it begins the next one."""

    _hook: BaseHook

    def __call__(self, step: int | None = None) -> StepScope:
        return self._hook.begin_step(step)

    def __reduce__(self) -> Any:
        return (int, (int(self),))


class StepScope:
    """Ends the step when a `with` block ends, so that readers see it at once."""

    __slots__ = ("_hook",)

    def __init__(self, hook: BaseHook) -> None:
        self._hook = hook

    def __enter__(self) -> StepNumber:
        return self._hook.step

    def __exit__(self, *exc: object) -> None:
        self._hook.end_step()
