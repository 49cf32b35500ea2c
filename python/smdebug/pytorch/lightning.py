"""A callback for Lightning, whose training does not call the model's forward.

`Trainer(callbacks=[RecordingCallback(hook)])`: each batch is a step, its mode is TRAIN or EVAL, and
the loss of each training batch is saved as `loss_output_0`. The sanity check is not recorded. When a
rule asks for a stop, the trainer is told and ends after the batch.
"""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch.callbacks import Callback

from smdebug import modes
from smdebug.exceptions import TrainingStopRequested
from smdebug.logger import get_logger
from smdebug.pytorch.hook import Hook


class RecordingCallback(Callback):
    """Registers the model with a hook and begins a step per batch."""

    def __init__(self, hook: Hook) -> None:
        super().__init__()
        self.hook = hook

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Registers the model, once."""
        if self.hook._names.find(pl_module) is None:
            self.hook.register_module(pl_module)

    def on_train_batch_start(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """A step of training."""
        self._begin(trainer, modes.TRAIN)

    def on_validation_batch_start(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """A step of evaluation, unless it only tries whether evaluation works."""
        if not trainer.sanity_checking:
            self._begin(trainer, modes.EVAL)

    def on_test_batch_start(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """A step of evaluation."""
        self._begin(trainer, modes.EVAL)

    def on_predict_batch_start(self, trainer: Any, pl_module: Any, *args: Any) -> None:
        """A step of prediction."""
        self._begin(trainer, modes.PREDICT)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, *args: Any) -> None:
        """Saves the loss that training_step() returned."""
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        if isinstance(loss, torch.Tensor):
            self.hook.record_tensor_value("loss", loss)

    def _begin(self, trainer: Any, mode: modes) -> None:
        self.hook.set_mode(mode)
        try:
            self.hook._guarded("Beginning a step", self.hook.begin_step)
        except TrainingStopRequested as stop:
            get_logger().warning(str(stop))
            trainer.should_stop = True
            self.hook._guarded("Beginning a step", self.hook.begin_step)  # a stop is asked for once
