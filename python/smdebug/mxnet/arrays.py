"""Arrays of MXNet, known by the names of their classes: MXNet itself is never imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_CPU = (1, 0)


_known: dict[tuple[type, str], bool] = {}


def _has_base(kind: type, name: str) -> bool:
    found = _known.get((kind, name))
    if found is None:
        found = _known[kind, name] = any(base.__name__ == name for base in kind.__mro__)
    return found


def is_array(value: Any) -> bool:
    """An NDArray, an array of mxnet.np, or a sparse one."""
    return _has_base(type(value), "NDArray")


def is_sparse(array: Any) -> bool:
    """Whether the values are not all there."""
    return _has_base(type(array), "BaseSparseNDArray")


def leaves_of(value: Any) -> Iterator[Any]:
    """What is in nested tuples, lists and mappings, in order."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from leaves_of(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves_of(item)
    else:
        yield value


def arrays_in(value: Any) -> list[Any]:
    """The arrays in nested tuples, lists and mappings, in order."""
    if is_array(value):
        return [value]
    return [leaf for leaf in leaves_of(value) if is_array(leaf)]


def is_symbolic(value: Any) -> bool:
    """Whether a call only builds a graph: no value is there, and none will be."""
    return any(_has_base(type(leaf), "Symbol") for leaf in leaves_of(value))


class ArrayView:
    """The memory of an array, for whoever reads it before the program goes on."""

    __slots__ = ("_array",)

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.to_dlpack_for_read()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


def view_of(array: Any) -> Any:
    """What the core can read: the memory itself, or a dense copy of a sparse array."""
    return array.asnumpy() if is_sparse(array) else ArrayView(array)
