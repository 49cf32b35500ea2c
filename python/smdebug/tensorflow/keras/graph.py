"""The graph of a model's step for TensorBoard: one per mode, written by TensorFlow itself."""

from __future__ import annotations

import os
from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.capture import Capture

Modes = _core.ModeKeys


class GraphExport:
    """Writes graphs where TensorBoard looks for them. Models on other backends have none."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._written: set[Modes] = set()

    def is_due(self, mode: Modes, capture: Capture) -> bool:
        """Whether the graph of this mode is still to be written, and can be had."""
        place = self._core.tensorboard_dir
        return bool(
            place is not None
            and "://" not in place
            and mode not in self._written
            and capture.engine.backend == "tensorflow"
            and not capture.model.run_eagerly
            and self._core.worker == self._core.chief_worker
        )

    def write(self, mode: Modes, capture: Capture) -> None:
        """Writes the graph in which a step of this mode was traced last."""
        graph = capture.wrappers.last_graph
        if graph is None or not self.is_due(mode, capture):
            return
        self._written.add(mode)
        tf = capture.engine.framework
        # Beside the curves of the mode.
        writer = tf.summary.create_file_writer(os.path.join(self._core.tensorboard_dir, mode.name))
        with tf.init_scope(), writer.as_default():
            tf.summary.graph(graph.as_graph_def())
        writer.close()
