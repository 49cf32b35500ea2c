"""The names of blocks and parameters, and the models that a hook knows."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from smdebug.mxnet.arrays import arrays_in

_SURFACE = ("register_forward_hook", "register_forward_pre_hook", "collect_params", "_children")


def is_block(value: Any) -> bool:
    """Whether it can be used as a gluon Block; a class cannot."""
    return not isinstance(value, type) and all(hasattr(value, name) for name in _SURFACE)


def is_loss(block: Any) -> bool:
    """Whether it is one of gluon's losses, or derives from them."""
    return any(
        base.__name__ == "Loss" and base.__module__.endswith("gluon.loss")
        for base in type(block).__mro__
    )


def name_of(block: Any) -> str:
    """The name that gluon gave it; that of the class if it is empty."""
    return getattr(block, "name", "") or type(block).__name__.lower()


def blocks_in(block: Any) -> Iterator[Any]:
    """The block and everything in it, each one once."""
    seen: set[int] = set()
    waiting = [block]
    while waiting:
        found = waiting.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        waiting += reversed(found._children.values())


class ParameterNames:
    """Gives every parameter a name of its own, though gluon gives some twice."""

    def __init__(self) -> None:
        self._owners: dict[str, weakref.ref[Any]] = {}

    def find(self, name: str, parameter: Any) -> str:
        """`name`, or `name_1` and so on if another parameter has it."""
        found, count = name, 0
        while True:
            owner = self._owners.get(found)
            owner = None if owner is None else owner()
            if owner is None or owner is parameter:
                self._owners[found] = weakref.ref(parameter)
                return found
            count += 1
            found = f"{name}_{count}"


class Root:
    """A registered model: what it consists of, under which names."""

    def __init__(self, block: Any, names: ParameterNames) -> None:
        self._block = weakref.ref(block)
        self._names = names
        self._parts: tuple[tuple[int, int], ...] = ()
        self._first: weakref.ref[Any] | None = None
        self.prefix = name_of(block)
        self.begins_step: Any = None  # the callback before its forward
        self.handles: list[Any] = []
        self.callbacks: dict[str, Any] = {}  # by name of the block
        self.revision = 0  # grows when the model may have other parts

    def module(self) -> Any:
        """The model; None if it is gone."""
        return self._block()

    def refresh(self, block: Any) -> None:
        """Brings `revision` up to date."""
        parts = tuple((id(b), len(getattr(b, "_reg_params", ()))) for b in blocks_in(block))
        if parts != self._parts:
            self._parts = parts
            self.revision += 1

    def parameters(self, block: Any) -> Iterator[tuple[str, Any]]:
        """(name, parameter)."""
        for name, parameter in block.collect_params().items():
            yield self._names.find(name, parameter), parameter

    def modules(self, block: Any) -> Iterator[tuple[str, Any]]:
        """(name, block) of the model and everything in it; names need not be unique."""
        for inner in blocks_in(block):
            yield name_of(inner), inner

    def first_parameter(self) -> Any:
        """Stands for all of them where they agree; None: there is none."""
        found = None if self._first is None else self._first()
        if found is None:
            block = self._block()
            found = None if block is None else next(iter(block.collect_params().values()), None)
            self._first = None if found is None else weakref.ref(found)
        return found

    def is_on_first_context(self, args: Any) -> bool:
        """Whether this call is the first of those that a step makes, one on each context."""
        parameter = self.first_parameter()
        if parameter is None:
            return True
        try:
            contexts = parameter.list_ctx()
        except RuntimeError:  # not initialised
            return True
        if len(contexts) < 2:
            return True
        arrays = arrays_in(args)
        return not arrays or arrays[0].context == contexts[0]
