"""Where the values of names come from in one graph. Nothing is ever added to a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from smdebug.collection import CollectionKeys
from smdebug.tensorflow.session.notes import GraphNotes

KEYS = tf.compat.v1.GraphKeys
# Types whose values cannot be saved.
OPAQUE = frozenset({tf.resource, tf.variant, tf.string})


@dataclass(frozen=True, slots=True)
class Source:
    """The tensors to fetch for one value: one, or rows and indices of a sparse gradient."""

    tensors: tuple[Any, ...]
    dense_shape: tuple[int, ...] | None = None
    # A variable, a gradient or a loss, at which no graph is rewritten.
    is_known: bool = False

    @property
    def is_sparse(self) -> bool:
        """Whether there are rows and indices."""
        return len(self.tensors) > 1


class GraphSources:
    """The variables, gradients and losses of a graph, and any other of its tensors on demand."""

    def __init__(self, graph: Any, notes: GraphNotes) -> None:
        self._graph = graph
        self._known: dict[str, Source] = {}
        self._everything: dict[str, Source] | None = None
        # Which of them belong to built-in collections.
        self.members: dict[str, list[str]] = {}
        self._add_variables()
        self._add_notes(notes)
        self._add_tensors(CollectionKeys.LOSSES, graph.get_collection(KEYS.LOSSES))
        self._add_tensors(CollectionKeys.TENSORFLOW_SUMMARIES, graph.get_collection(KEYS.SUMMARIES))

    def __iter__(self) -> Iterable[str]:
        return iter(self._known)

    def find(self, name: str) -> Source | None:
        """The source of a name, whether it is known or the name of a tensor in the graph."""
        known = self._known.get(name)
        if known is not None:
            return known
        try:
            tensor = self._graph.as_graph_element(name, allow_operation=False)
        except (KeyError, TypeError, ValueError):
            return None
        return Source((tensor,)) if self._can_be_saved(tensor) else None

    def everything(self) -> dict[str, Source]:
        """All tensors that can be saved, by name; made when it is asked for."""
        if self._everything is None:
            # The value of a variable has the variable's name, and no other.
            values = {id(source.tensors[0]) for source in self._known.values()}
            found = dict(self._known)
            for operation in self._graph.get_operations():
                for tensor in operation.outputs:
                    if id(tensor) not in values and self._can_be_saved(tensor):
                        found.setdefault(tensor.name, Source((tensor,)))
            self._everything = found
        return self._everything

    def _can_be_saved(self, tensor: Any) -> bool:
        return tensor.dtype.base_dtype not in OPAQUE and self._graph.is_fetchable(tensor)

    def _add(self, collection: str | None, name: str, source: Source) -> None:
        self._known.setdefault(name, source)
        if collection is not None:
            members = self.members.setdefault(collection, [])
            if name not in members:
                members.append(name)

    def _add_variables(self) -> None:
        get = self._graph.get_collection
        for variable in [*get(KEYS.GLOBAL_VARIABLES), *get(KEYS.LOCAL_VARIABLES)]:
            if isinstance(variable, tf.Variable):
                tensor = self._graph.as_graph_element(variable)
                if self._can_be_saved(tensor):
                    self._add(None, variable.name, Source((tensor,), is_known=True))
        for variable in get(KEYS.TRAINABLE_VARIABLES):
            # One that is not initialised with the others may have no value.
            if isinstance(variable, tf.Variable) and variable.name in self._known:
                is_bias = "bias" in variable.name
                kind = CollectionKeys.BIASES if is_bias else CollectionKeys.WEIGHTS
                self._add(kind, variable.name, self._known[variable.name])

    def _add_notes(self, notes: GraphNotes) -> None:
        element = self._graph.as_graph_element
        for name, gradient in notes.gradients.items():
            tensors = tuple(element(tensor) for tensor in gradient.tensors)
            self._add(CollectionKeys.GRADIENTS, name, Source(tensors, gradient.dense_shape, True))
        for name, tensor_name in notes.optimizer_variables.items():
            source = Source((element(tensor_name),), is_known=True)
            self._add(CollectionKeys.OPTIMIZER_VARIABLES, name, source)

    def _add_tensors(self, collection: str, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            if isinstance(tensor, tf.Tensor) and self._graph.is_fetchable(tensor):
                is_loss = collection == CollectionKeys.LOSSES
                self._add(collection, tensor.name, Source((tensor,), is_known=is_loss))
