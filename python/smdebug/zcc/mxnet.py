"""MXNet: finds the model and the loss of a script while it trains.

A call that no other block makes is that of a model or a loss. Nothing is made before the first one
of a model, so data loaders stay silent; a server or scheduler of a distributed store never gets
here, since MXNet serves while it is being imported.
"""

from __future__ import annotations

import functools
import os
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import smdebug_activation
from mxnet import gluon

from smdebug import singleton
from smdebug.zcc import Patches

if TYPE_CHECKING:
    from smdebug.mxnet.automatic import AutomaticHook

# Forwards of the first model after which no more models and losses are looked for.
MOST_FORWARDS = 16


def patch() -> Discovery:
    """Looks for models from now on."""
    with Patches() as patches:
        discovery = Discovery(patches)
        patches.replace(gluon.Trainer, "__init__", _init(discovery, gluon.Trainer.__init__))
        discovery.begin()
    return discovery


class Discovery:
    """What is known of the script: its models, its trainers, and whether it has computed a loss."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._calls = Patches()  # of blocks; undone as soon as enough is known
        self._local = threading.local()
        self._pid: int | None = None  # of the process whose hook it is
        self._forwards = 0
        self._loss_known = False
        self._trained: weakref.WeakSet[Any] = weakref.WeakSet()
        self.hook: AutomaticHook | None = None

    def begin(self) -> None:
        """Looks at the calls of all blocks."""
        self._calls.replace(gluon.Block, "__call__", _call(self, gluon.Block.__call__))
        self._patches.add(self._calls.undo)

    def stand_aside(self) -> None:
        """MXNet is as it was."""
        self._patches.undo()

    def undo(self) -> None:
        """The same, and what was recorded is complete."""
        self.stand_aside()
        hook, self.hook = self.hook, None
        if hook is not None:
            hook.close()

    def add_trainer(self, trainer: Any) -> None:
        """Parameters that are trained."""
        for parameter in getattr(trainer, "_params", ()):
            self._trained.add(parameter)

    @property
    def is_inside(self) -> bool:
        """Whether a block of this thread is being called."""
        return getattr(self._local, "is_inside", False)

    @is_inside.setter
    def is_inside(self, is_inside: bool) -> None:
        self._local.is_inside = is_inside

    def before_call(self, block: Any) -> None:
        """Before a call that no other block makes."""
        if self._pid not in (None, os.getpid()):
            return
        try:
            self._look(block)
        except Exception as error:
            self.stand_aside()
            smdebug_activation.report(error)

    def _look(self, block: Any) -> None:
        if self.hook is not None and self.hook.knows(block):
            self._count(block)
        elif isinstance(block, gluon.loss.Loss):
            if self.hook is not None:
                self._loss_known = True
                self.hook.register_block(block)
        elif self._is_trained(block):
            self._found(block)

    def _found(self, block: Any) -> None:
        if self.hook is None and singleton.current_hook() is not None:
            self.stand_aside()  # the script records by itself
            return
        if self.hook is None:
            from smdebug.mxnet.automatic import make_hook

            self.hook = make_hook()
            self._pid = os.getpid()
            self.hook.on_replaced = self.stand_aside
        self.hook.register_block(block)

    def _count(self, block: Any) -> None:
        """The first model runs again: what belongs to a step has been seen."""
        if self.hook is None or not self.hook.is_first(block):
            return
        self._forwards += 1
        if self._loss_known or self._forwards >= MOST_FORWARDS:
            self._calls.undo()

    def _is_trained(self, block: Any) -> bool:
        """Whether a trainer owns some of its parameters; without a trainer, whether it could."""
        learned = [p for p in block.collect_params().values() if p.grad_req != "null"]
        return any(p in self._trained for p in learned) if self._trained else bool(learned)


def _call(discovery: Discovery, original: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def call(block: Any, *args: Any) -> Any:
        if discovery.is_inside:
            return original(block, *args)
        discovery.before_call(block)
        discovery.is_inside = True
        try:
            return original(block, *args)
        finally:
            discovery.is_inside = False

    return call


def _init(discovery: Discovery, original: Callable[..., Any]) -> Any:
    @functools.wraps(original)
    def init(trainer: Any, *args: Any, **kwargs: Any) -> None:
        original(trainer, *args, **kwargs)
        discovery.add_trainer(trainer)

    return init
