"""What a run can give beside what the user asks for, without doing anything that it would not do."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import tensorflow as tf

# Operations that TensorFlow calls stateful, although they only look.
READING = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd"})
LOOKING = READING | {
    "IsVariableInitialized",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
}
# Operations that only end a run that goes wrong.
CHECKING = frozenset({"Assert", "CheckNumerics", "CheckNumericsV2"})
PLACEHOLDERS = frozenset({"Placeholder", "PlaceholderV2"})
# Types whose values cannot leave a session.
HANDLES = frozenset({tf.resource, tf.variant})


class Reach:
    """Of one kind of run: the same fetches, and values for the same tensors.

    A run does what its fetches need. Another tensor may be fetched along with it if what that needs
    beyond changes no state, draws no random number, takes no batch, and waits for no placeholder.

    But TensorFlow rewrites a graph for each set of fetches, so fetching an inner tensor can change
    the last bits of everything after it. Such tensors are computed afterwards, in a run of their
    own: what the user's run read, drew and took is fetched with it, which is no reason to rewrite
    anything, and given to the second run instead of doing it again.
    """

    def __init__(self, graph: Any, fetches: Any, fed: Any) -> None:
        self._graph = graph
        self._fed = {_place(element) for element in elements_in(graph, fed) if _has_value(element)}
        asked = list(elements_in(graph, fetches))
        self._asked = {_place(element) for element in asked if _has_value(element)}
        self._done: set[Any] = set()
        stack = [e.op if _has_value(e) else e for e in asked if not self._is_fed(e)]
        while stack:
            operation = stack.pop()
            if operation not in self._done:
                self._done.add(operation)
                stack.extend(tensor.op for tensor in operation.inputs if not self._is_fed(tensor))
                stack.extend(operation.control_inputs)

    def is_outer(self, tensor: Any) -> bool:
        """Whether fetching the tensor leaves the rest of the run as it is."""
        return _place(tensor) in self._asked or self._is_fed(tensor) or is_source(tensor.op)

    def allowed(self, tensors: Collection[Any]) -> Iterator[bool]:
        """For each tensor, whether it may be fetched along with the user's run."""
        out = _refused(tensors, self._is_given, self._done, self._is_refused)
        return (self._is_given(tensor) or tensor.op not in out for tensor in tensors)

    def replayed(self, tensors: Collection[Any]) -> tuple[list[bool], list[Any]]:
        """For each tensor, whether a second run can compute it; the tensors to give to that run."""
        given: dict[int, Any] = {}

        def is_given(tensor: Any) -> bool:
            if self._is_fed(tensor):
                return True
            is_cut = tensor.op in self._done and is_source(tensor.op) and self._can_leave(tensor)
            if is_cut:
                given[id(tensor)] = tensor
            return is_cut

        out = _refused(tensors, is_given, (), self._is_not_replayed)
        allowed = [is_given(tensor) or tensor.op not in out for tensor in tensors]
        return allowed, list(given.values())

    def _can_leave(self, tensor: Any) -> bool:
        return tensor.dtype.base_dtype not in HANDLES and self._graph.is_fetchable(tensor)

    def _is_fed(self, element: Any) -> bool:
        return bool(self._fed) and _has_value(element) and _place(element) in self._fed

    def _is_given(self, tensor: Any) -> bool:
        return tensor.op in self._done or self._is_fed(tensor)

    @staticmethod
    def _is_refused(operation: Any) -> bool:
        kind = operation.type
        return kind in PLACEHOLDERS or kind in CHECKING or has_effect(operation)

    def _is_not_replayed(self, operation: Any) -> bool:
        kind = operation.type
        if kind in CHECKING:
            return operation not in self._done
        return kind in PLACEHOLDERS or has_effect(operation)

    def does(self, tensor: Any) -> bool:
        """Whether the user's run computes the tensor anyway."""
        return tensor.op in self._done


def _refused(
    tensors: Collection[Any],
    is_given: Callable[[Any], bool],
    done: Collection[Any],
    refuses: Callable[[Any], bool],
) -> set[Any]:
    """The operations that refuse, and those that need them, among what the tensors need."""
    needed_by: dict[Any, list[Any]] = {}
    refused: list[Any] = []
    seen: set[Any] = set()
    more = [tensor.op for tensor in tensors if not is_given(tensor)]
    while more:
        operation = more.pop()
        if operation in seen:
            continue
        seen.add(operation)
        if refuses(operation):
            refused.append(operation)
        needs = [tensor.op for tensor in operation.inputs if not is_given(tensor)]
        needs += [control for control in operation.control_inputs if control not in done]
        for needed in needs:
            needed_by.setdefault(needed, []).append(operation)
        more += needs
    out: set[Any] = set()
    while refused:
        operation = refused.pop()
        if operation not in out:
            out.add(operation)
            refused.extend(needed_by.get(operation, ()))
    return out


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


def _has_value(element: Any) -> bool:
    return not isinstance(element, tf.Operation)


def _place(tensor: Any) -> tuple[Any, int]:
    return tensor.op, tensor.value_index


def is_source(operation: Any) -> bool:
    """Whether values enter a graph here: they are read, drawn, taken or computed with effects."""
    return operation.type in READING or has_effect(operation) or reads_reference(operation)


def reads_reference(operation: Any) -> bool:
    """Whether it reads a variable of the old kind, whose memory others change at any time."""
    return any(tensor.dtype != tensor.dtype.base_dtype for tensor in operation.inputs)


_effects: dict[str, bool] = {}


def has_effect(operation: Any) -> bool:
    """Whether running the operation once more than the program does could be noticed."""
    kind = operation.type
    known = _effects.get(kind)
    if known is None:
        known = kind not in LOOKING and kind not in CHECKING and _may_change_state(operation)
        _effects[kind] = known
    return known


def _may_change_state(operation: Any) -> bool:
    definition = operation.op_def
    if definition is None or definition.is_stateful:
        return True
    return any(argument.is_ref for argument in definition.input_arg)
