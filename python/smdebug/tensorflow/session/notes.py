"""What optimizers have said about the tensors of graphs.

Only names are kept: a tensor would keep its graph alive, and jobs with evaluations make many graphs.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from smdebug.logger import get_logger


@dataclass(frozen=True)
class GradientNote:
    """A gradient: one tensor, or the rows of a sparse one and where they belong."""

    tensors: tuple[str, ...]
    dense_shape: tuple[int, ...] | None = None


@dataclass
class GraphNotes:
    """Of one graph."""

    gradients: dict[str, GradientNote] = field(default_factory=dict)
    # The name of a variable → the tensor that is its value.
    optimizer_variables: dict[str, str] = field(default_factory=dict)


class Notes:
    """Of all graphs that are alive."""

    def __init__(self) -> None:
        self._graphs: weakref.WeakKeyDictionary[Any, GraphNotes] = weakref.WeakKeyDictionary()

    def of(self, graph: Any) -> GraphNotes:
        """What is known of a graph."""
        return self._graphs.setdefault(graph, GraphNotes())

    def note(self, optimizer: Any, gradients_and_variables: Iterable[tuple[Any, Any]]) -> None:
        """An optimizer has made its update of these pairs."""
        if tf.executing_eagerly():
            get_logger().warning(
                "The optimizer has applied gradients outside of a graph, where a SessionHook does "
                "not see them. Use a KerasHook."
            )
            return
        for gradient, variable in gradients_and_variables:
            if gradient is not None:
                noted = self.of(_first_tensor(gradient).graph)
                noted.gradients[gradient.name] = _note_of(gradient, variable)
        graph = tf.compat.v1.get_default_graph()
        noted = self.of(graph)
        for variable in optimizer.variables():
            noted.optimizer_variables[variable.name] = graph.as_graph_element(variable).name


def _first_tensor(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _note_of(gradient: Any, variable: Any) -> GradientNote:
    if not isinstance(gradient, tf.IndexedSlices):
        return GradientNote((gradient.name,))
    shape = variable.shape
    if not shape.is_fully_defined():
        return GradientNote((gradient.values.name, gradient.indices.name))
    return GradientNote((gradient.values.name, gradient.indices.name), tuple(shape.as_list()))
