"""Lightning, whose training does not call the model's forward: every trainer gets our callback."""

from __future__ import annotations

import functools
from typing import Any

from lightning.pytorch import Trainer

from smdebug.pytorch.automatic import AutomaticHook
from smdebug.pytorch.lightning import RecordingCallback
from smdebug.zcc import Patches, patched
from smdebug.zcc.torch import Discovery


class AutomaticCallback(RecordingCallback):
    """Finds the model of a trainer; each batch is a step. The loss is found as in other scripts."""

    hook: AutomaticHook

    def __init__(self) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self._is_off = False

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Records the model, unless the script records by itself or recording was stopped."""
        discovery = patched("torch")
        if not isinstance(discovery, Discovery):
            self._is_off = True
            return
        if discovery.hook is None or not discovery.hook.knows(pl_module):
            discovery.found_by_trainer(pl_module)
        hook = discovery.hook
        self._is_off = hook is None
        if hook is not None:
            self.hook = hook

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *args: Any) -> None:
        """The loss was saved when it was computed."""

    def _begin(self, trainer: Any, mode: Any) -> None:
        if not self._is_off and not self.hook.is_closed:
            super()._begin(trainer, mode)

    def state_dict(self) -> dict[str, Any]:
        """Nothing of it goes into checkpoints."""
        return {}


def patch() -> Patches:
    """Gives the callback to trainers that are made from now on."""
    original = Trainer.__init__

    @functools.wraps(original)
    def init(trainer: Any, *args: Any, **kwargs: Any) -> None:
        original(trainer, *args, **kwargs)
        if patched("lightning") is patches:
            trainer.callbacks.insert(0, AutomaticCallback())

    with Patches() as patches:
        patches.replace(Trainer, "__init__", init)
    return patches
