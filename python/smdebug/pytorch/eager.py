"""Runs the saved steps of compiled models without compilation, so that inner modules are seen.

Whether a forward is compiled is settled before our callbacks run, so it is switched one forward
earlier. The switch is one of the whole process; compiled code stays and is used again afterwards.
"""

from __future__ import annotations

from typing import Any

import torch

from smdebug import _core


class EagerSteps:
    """Switches compilation off before forwards that are saved. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.is_active = False

    def prepare(self) -> None:
        """Between two forwards: off if the next one is to be saved, else on."""
        if self._next_is_saved():
            self.begin()
        else:
            self.end()

    def begin(self) -> None:
        """Forwards run without compilation."""
        if not self.is_active:
            torch.compiler.set_stance("force_eager")
            self.is_active = True

    def end(self) -> None:
        """Forwards run compiled again."""
        if self.is_active:
            torch.compiler.set_stance("default")
            self.is_active = False

    def _next_is_saved(self) -> bool:
        known = self._core.is_next_step_saved
        if known is not None:
            return bool(known)
        # Before the first step: what the configs say.
        mode = self._core.mode
        step = self._core.mode_step(mode) + 1
        included = self._core.include_collections
        for collection in self._core.collections.all():
            if self._core.save_all or collection.name in included:
                own = _core.Collection.save_config.__get__(collection)  # type: ignore[attr-defined]
                if (own or self._core.save_config).should_save_step(mode, step):
                    return True
        return False
