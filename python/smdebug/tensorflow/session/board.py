"""What goes to TensorBoard beside numbers and histograms: graphs, and summaries of the program."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from smdebug.logger import get_logger

# The folder in the directory for TensorBoard, which shows it as a run.
FOLDER = "graph"


class Board:
    """A file of graphs and summaries, made with the first of them. One thread at a time."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._writer: Any = None
        if folder is not None and "://" in folder:
            self._folder = None
            get_logger().warning(
                "Graphs and summaries for TensorBoard are written to local directories only, not to "
                f"{folder}"
            )

    @property
    def is_on(self) -> bool:
        """Whether there is a place to write to."""
        return self._folder is not None

    def add_graph(self, graph: Any) -> None:
        """Shows the operations of a graph."""
        if self.is_on:
            self._open(graph).add_graph(graph)

    def add_summary(self, graph: Any, summary: bytes, step: int) -> None:
        """What an operation of tf.compat.v1.summary gave."""
        if self.is_on:
            self._open(graph).add_summary(summary, step)

    def _open(self, graph: Any) -> Any:
        if self._writer is None:
            assert self._folder is not None
            with graph.as_default():  # refused where operations run at once
                self._writer = tf.compat.v1.summary.FileWriter(os.path.join(self._folder, FOLDER))
        return self._writer

    def flush(self) -> None:
        """Everything is in the file."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """The file is complete."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
