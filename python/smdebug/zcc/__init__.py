"""Recording without a change of the script: what is patched in frameworks, and how it is undone.

Each `<framework>.py` beside this file has a function patch(), which is called when the framework has
been imported, and returns an object whose undo() takes it back. `smdebug_activation` finds these
files.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import smdebug_activation

__all__ = ["disable", "enable", "is_enabled"]

_MISSING: Any = object()


def enable(json_file_path: str | os.PathLike[str] | None = None) -> bool:
    """Records models from now on, as the JSON file says or what the environment names.

    False: there is no configuration, or USE_SMDEBUG switches recording off.
    """
    if json_file_path is not None:
        path = os.path.abspath(os.path.expanduser(os.fspath(json_file_path)))
        os.environ["SMDEBUG_CONFIG_FILE_PATH"] = path
    smdebug_activation.activate()
    return is_enabled()


def is_enabled() -> bool:
    """Whether models of this process are recorded by themselves."""
    return smdebug_activation.find_finder() is not None


def disable() -> None:
    """Undoes everything: frameworks are as they were, and the hook is closed. May be repeated."""
    finder = smdebug_activation.find_finder()
    if finder is None:
        return
    sys.meta_path.remove(finder)
    while finder.smdebug_patches:
        _, patches = finder.smdebug_patches.popitem()
        patches.undo()


def patched(framework: str) -> Any:
    """What patch() of a framework has returned; None: it is not patched."""
    finder = smdebug_activation.find_finder()
    return None if finder is None else finder.smdebug_patches.get(framework)


class Patches:
    """Replaced attributes and how they were. In a `with` block, an error undoes them."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Sets an attribute of a module or a class until undo()."""
        before = vars(owner).get(name, _MISSING)
        setattr(owner, name, new)
        self.add(lambda: self._restore(owner, name, new, before))

    def add(self, undo: Callable[[], object]) -> None:
        """Something else that undo() is to call."""
        self._undo.append(undo)

    def undo(self) -> None:
        """Takes everything back, the last first. The second call does nothing."""
        while self._undo:
            self._undo.pop()()

    @staticmethod
    def _restore(owner: Any, name: str, new: Any, before: Any) -> None:
        if vars(owner).get(name) is not new:
            return  # somebody has replaced it after us, and calls ours
        if before is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.undo()
