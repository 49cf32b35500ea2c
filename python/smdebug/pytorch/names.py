"""The names of modules and parameters, and the modules that a hook knows."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import nn

from smdebug import _core
from smdebug.exceptions import SMDebugValueError

if TYPE_CHECKING:
    from smdebug.pytorch.collection import Collection

# Parts of a path that come from wrappers and not from the model.
WRAPPER_PARTS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})
# Wrappers that hold the model as `module`.
PARALLEL_WRAPPERS = frozenset({"DistributedDataParallel", "DataParallel"})


def is_sharded(tensor: Any) -> bool:
    """A DTensor: each process holds a part. Does not import torch.distributed."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(tensor, module.DTensor)


def class_name(module: nn.Module, canonical: bool) -> str:
    """The name of the module's class; without what fully_shard() adds if `canonical`."""
    kind = type(module)
    if canonical and len(kind.__mro__) > 2 and kind.__mro__[1].__name__ == "FSDPModule":
        kind = kind.__mro__[2]
    return kind.__name__


def _lists_plainly(kind: type[nn.Module]) -> bool:
    return (
        kind.named_parameters is nn.Module.named_parameters
        and kind.named_modules is nn.Module.named_modules
    )


class Root:
    """A registered model: how its parameters and submodules are called."""

    def __init__(self, module: nn.Module, prefix: str, canonical: bool) -> None:
        self._module = weakref.ref(module)
        self.prefix = prefix
        self.canonical = canonical
        self.begins_step: Any = None  # the callback before its forward
        self.handles: list[Any] = []
        self.callbacks: dict[str, Any] = {}
        self.revision = 0  # grows when the model may have other parts
        # Models that list their parts in a way of their own are looked at every time.
        self._tree = _core.ModuleTree() if _lists_plainly(type(module)) else None
        # As they were at registration: during forward and after evaluation the model shows
        # gathered ones.
        self._sharded = {
            path: parameter
            for path, parameter in module.named_parameters()
            if is_sharded(parameter)
        }

    def module(self) -> nn.Module | None:
        """The model, unless it is gone."""
        return self._module()

    def refresh(self, module: nn.Module) -> None:
        """Brings `revision` up to date."""
        if self._tree is None or not self._tree.is_same(module):
            self.revision += 1

    def _shorten(self, path: str, module: nn.Module) -> str:
        if not self.canonical:
            return path
        parts = path.split(".")
        while type(module).__name__ in PARALLEL_WRAPPERS and parts[:1] == ["module"]:
            parts = parts[1:]
            module = module.module  # type: ignore[assignment]
        return ".".join(part for part in parts if part not in WRAPPER_PARTS)

    def parameters(self, module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
        """(name, parameter); a shared one once, under its first path."""
        for path, parameter in module.named_parameters():
            if self._sharded and not is_sharded(parameter):
                parameter = self._sharded.get(path, parameter)
            yield f"{self.prefix}_{self._shorten(path, module)}", parameter

    def modules(self, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
        """(name, module) of the model and everything in it; of wrappers only what they wrap."""
        if not self.canonical:
            for path, inner in module.named_modules():
                yield path or self.prefix, inner
            return
        # A wrapper and what it wraps have one name: the inner one comes later and stays.
        found = {self._shorten(path, module): inner for path, inner in module.named_modules()}
        for path, inner in found.items():
            yield path or self.prefix, inner


def innermost(module: nn.Module) -> nn.Module:
    """The model inside wrappers."""
    while True:
        children = dict(module.named_children())
        kind = type(module).__name__
        inner = next((children[part] for part in WRAPPER_PARTS if part in children), None)
        if inner is None and kind in PARALLEL_WRAPPERS:
            inner = children.get("module")
        if inner is None:
            return module
        module = inner


class ModuleNames:
    """Which module has which name, and which collections wait for one."""

    def __init__(self) -> None:
        self._names: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._prefixes: dict[str, int] = {}
        self._losses: weakref.WeakKeyDictionary[nn.Module, str] = weakref.WeakKeyDictionary()
        self._waiting: list[Collection] = []

    def find(self, module: nn.Module) -> str | None:
        """The name of a registered module."""
        return self._names.get(module) or self._losses.get(module)

    def add(self, module: nn.Module, canonical: bool) -> Root:
        """Registers a model. SMDebugValueError: a part of it is registered already."""
        for inner in module.modules():
            known = self._names.get(inner)
            if known is not None:
                raise SMDebugValueError(
                    f"The module '{known}' ({type(inner).__name__}) is registered already; "
                    "a module can be registered once."
                )
        kind = class_name(innermost(module) if canonical else module, canonical)
        count = self._prefixes.get(kind, 0)
        self._prefixes[kind] = count + 1
        root = Root(module, f"{kind}_{count}" if count else kind, canonical)
        for name, inner in root.modules(module):
            self._names[inner] = name
        self._resolve_waiting()
        return root

    def remove(self, module: nn.Module) -> None:
        """Forgets a model and everything in it."""
        for inner in module.modules():
            self._names.pop(inner, None)
            self._losses.pop(inner, None)

    def add_loss(self, module: nn.Module) -> str:
        """Registers a loss under the name of its class; several may share it."""
        if module in self._losses:
            raise SMDebugValueError(
                f"The loss '{self._losses[module]}' is registered already; a loss can be "
                "registered once."
            )
        self._losses[module] = type(module).__name__
        self._resolve_waiting()
        return self._losses[module]

    def wait(self, collection: Collection) -> None:
        """Tells the collection when a module becomes known."""
        if not any(known is collection for known in self._waiting):
            self._waiting.append(collection)

    def _resolve_waiting(self) -> None:
        self._waiting = [c for c in self._waiting if not c._resolve(self)]
