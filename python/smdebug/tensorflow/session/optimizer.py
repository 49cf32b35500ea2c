"""Optimizers that tell a hook which gradients they apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from smdebug.exceptions import SMDebugTypeError

# What is told: the optimizer, and its pairs of gradient and variable.
Listener = Callable[[Any, list[tuple[Any, Any]]], None]

_LISTENER = "_smdebug_listener"


def tell_gradients(optimizer: Any, listener: Listener) -> None:
    """From now on the listener hears of every apply_gradients() of this optimizer.

    The optimizer gets a class of its own, which derives from its old one, so other optimizers of
    that class stay as they are.
    """
    if not isinstance(optimizer, tf.compat.v1.train.Optimizer):
        raise SMDebugTypeError(
            "A SessionHook can wrap optimizers of tf.compat.v1.train only, not "
            f"{type(optimizer).__module__}.{type(optimizer).__qualname__}."
        )
    known = _LISTENER in vars(optimizer)
    setattr(optimizer, _LISTENER, listener)
    if not known:
        optimizer.__class__ = _telling(type(optimizer))


def _telling(base: Any) -> Any:
    class Telling(base):
        def apply_gradients(self, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            update = super().apply_gradients(pairs, *args, **kwargs)
            getattr(self, _LISTENER)(self, pairs)
            return update

    Telling.__name__ = base.__name__
    Telling.__qualname__ = base.__qualname__
    Telling.__module__ = base.__module__
    return Telling
