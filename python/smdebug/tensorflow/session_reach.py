"""What a run can give beside what the user asks for, without doing anything that it would not do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

# Operations that TensorFlow calls stateful, although they only look.
LOOKING = frozenset(
    {
        "IsVariableInitialized",
        "ReadVariableOp",
        "ResourceGather",
        "ResourceGatherNd",
        "VarHandleOp",
        "VarIsInitializedOp",
        "Variable",
        "VariableShape",
        "VariableV2",
    }
)
# Operations without state that end a run when they do not like a value.
CHECKING = frozenset({"CheckNumerics", "CheckNumericsV2"})
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})


class Reach:
    """Of one kind of run: the same fetches, and values for the same tensors.

    A run does what its fetches need. A further tensor may be fetched if what it needs beyond that
    changes no state, draws no random number, takes no batch, and waits for no placeholder.
    """

    def __init__(self, graph: Any, fetches: Any, fed: Iterable[Any]) -> None:
        self._fed = {
            (element.op, element.value_index)
            for element in elements_in(graph, fed)
            if not isinstance(element, tf.Operation)
        }
        self._done: set[Any] = set()
        stack = [
            element if isinstance(element, tf.Operation) else element.op
            for element in elements_in(graph, fetches)
            if not self._is_fed(element)
        ]
        while stack:
            operation = stack.pop()
            if operation not in self._done:
                self._done.add(operation)
                stack.extend(self._needs(operation))

    def allowed(self, tensors: Iterable[Any]) -> Iterator[bool]:
        """For each tensor, whether it may be fetched."""
        tensors = list(tensors)
        more = [tensor.op for tensor in tensors if not self._is_given(tensor)]
        needed_by: dict[Any, list[Any]] = {}
        refused: list[Any] = []
        seen: set[Any] = set()
        while more:
            operation = more.pop()
            if operation in seen:
                continue
            seen.add(operation)
            if operation.type in PLACEHOLDERS or has_effect(operation):
                refused.append(operation)
            for needed in self._needs(operation):
                if needed not in self._done:
                    needed_by.setdefault(needed, []).append(operation)
                    more.append(needed)
        out: set[Any] = set()
        while refused:
            operation = refused.pop()
            if operation not in out:
                out.add(operation)
                refused.extend(needed_by.get(operation, ()))
        return (self._is_given(tensor) or tensor.op not in out for tensor in tensors)

    def _is_fed(self, element: Any) -> bool:
        if not self._fed or isinstance(element, tf.Operation):
            return False
        return (element.op, element.value_index) in self._fed

    def _is_given(self, tensor: Any) -> bool:
        return tensor.op in self._done or self._is_fed(tensor)

    def _needs(self, operation: Any) -> Iterator[Any]:
        for tensor in operation.inputs:
            if not self._is_fed(tensor):
                yield tensor.op
        yield from operation.control_inputs


def elements_in(graph: Any, structure: Any) -> Iterator[Any]:
    """The tensors and operations in what a session accepts; those that are strange are left out."""
    try:
        leaves = tf.nest.flatten(structure)
    except (TypeError, ValueError):
        return
    for leaf in leaves:
        try:
            yield graph.as_graph_element(leaf)
            continue
        except (KeyError, TypeError, ValueError):
            pass
        for part in tf.nest.flatten(leaf, expand_composites=True):
            if isinstance(part, tf.Tensor) and part.graph is graph:
                yield part


_effects: dict[str, bool] = {}


def has_effect(operation: Any) -> bool:
    """Whether running the operation once more than the program does could be noticed."""
    kind = operation.type
    known = _effects.get(kind)
    if known is None:
        known = _effects[kind] = kind not in LOOKING and _may_change_state(operation)
    return known


def _may_change_state(operation: Any) -> bool:
    definition = operation.op_def
    return (
        operation.type in CHECKING
        or definition is None
        or definition.is_stateful
        or any(argument.is_ref for argument in definition.input_arg)
    )
