"""Trainers with a distributed store, whose update leaves weights where gradients were."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any

# Methods that send gradients to the store.
SENDING = ("step", "allreduce_grads")


def trainer_of(parameter: Any) -> Any:
    """The trainer that updates a parameter, if it is known."""
    return getattr(parameter, "_trainer", None)


def distributed_store(trainer: Any) -> Any:
    """The store of a trainer, made now if it would be made later; None if it is not distributed."""
    store = getattr(trainer, "_kvstore", None)
    config = getattr(trainer, "_kvstore_params", None)
    if store is None and isinstance(config, dict):
        store = config.get("kvstore")
        if isinstance(store, str) and store.startswith("dist"):
            # The trainer would make it at its first update; the rank is needed before.
            store = config["kvstore"] = sys.modules["mxnet"].kv.create(store)
    is_distributed = str(getattr(store, "type", "")).startswith("dist")
    return store if is_distributed else None


class TrainerWatch:
    """Tells when trainers with a distributed store are about to send gradients.

    Keeps neither them nor their stores alive: a store must end before the interpreter does.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._trainers: list[weakref.ref[Any]] = []

    def knows(self, trainer: Any) -> bool:
        """Whether it is watched."""
        return any(known() is trainer for known in self._trainers)

    def watch(self, trainer: Any) -> None:
        """Calls before() whenever the trainer sends gradients from now on."""
        self._trainers.append(weakref.ref(trainer))
        for name in SENDING:
            setattr(trainer, name, _Sending(trainer, name, self._before))

    def remove(self) -> None:
        """Stops watching."""
        trainers, self._trainers = self._trainers, []
        for trainer in filter(None, (known() for known in trainers)):
            for name in SENDING:
                sending = vars(trainer).get(name)
                if isinstance(sending, _Sending):
                    sending.undo(trainer)


class _Sending:
    """A method of one trainer; before() runs first."""

    def __init__(self, trainer: Any, name: str, before: Callable[[], None]) -> None:
        self._trainer = weakref.ref(trainer)
        self._name = name
        self._own = vars(trainer).get(name)  # somebody has replaced it already
        self._before = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._before()
        if self._own is not None:
            return self._own(*args, **kwargs)
        trainer = self._trainer()
        return getattr(type(trainer), self._name)(trainer, *args, **kwargs)

    def undo(self, trainer: Any) -> None:
        """The trainer is as it was."""
        if self._own is not None:
            setattr(trainer, self._name, self._own)
        else:
            delattr(trainer, self._name)
