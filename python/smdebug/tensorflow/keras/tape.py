"""Tapes and optimizers that tell the hook: the same objects, with a class of their own.

The class has the name of the one it derives from, so that a model which holds such an optimizer is
saved and loaded as ever; other tapes and optimizers keep their class.
"""

from __future__ import annotations

import functools
from typing import Any

from smdebug.tensorflow.keras.loop import Owner
from smdebug.tensorflow.keras.traced import TracedSteps

OWNER = "_smdebug_owner"


def wrap_tape(tape: Any, owner: Owner, traced: TracedSteps) -> Any:
    """The same tape; entering it begins a step, and its gradient() saves."""
    object.__setattr__(tape, OWNER, (owner, traced))
    if not hasattr(type(tape), "smdebug_base"):
        base: Any = type(tape)
        tape.__class__ = _tape_class(base)
    return tape


@functools.cache
def _tape_class(base: type) -> type:
    def enter(tape: Any) -> Any:
        owner, traced = getattr(tape, OWNER)
        is_free = owner.is_free()
        if is_free:  # before the tape records: a stop leaves it as it was
            owner.run("Beginning a step", traced.before_step)
        result = base.__enter__(tape)  # type: ignore[attr-defined]
        if is_free:
            owner.run("Beginning a step", traced.enter)
        return result

    def leave(tape: Any, *exc: Any) -> Any:
        owner, _ = getattr(tape, OWNER)
        owner.run("Leaving a tape", owner.loop.leave)
        return base.__exit__(tape, *exc)  # type: ignore[attr-defined]

    def gradient(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
        result = base.gradient(tape, target, sources, *args, **kwargs)  # type: ignore[attr-defined]
        owner, traced = getattr(tape, OWNER)
        if owner.is_free():
            owner.run("Saving gradients", traced.save, target, sources, result)
        return result

    return _derived(base, {"__enter__": enter, "__exit__": leave, "gradient": gradient})


def wrap_optimizer(optimizer: Any, owner: Owner) -> Any:
    """The same optimizer; what it applies outside of fit is saved."""
    object.__setattr__(optimizer, OWNER, owner)
    if not hasattr(type(optimizer), "smdebug_base"):
        base: Any = type(optimizer)
        optimizer.__class__ = _optimizer_class(base)
    return optimizer


@functools.cache
def _optimizer_class(base: type) -> type:
    def note(optimizer: Any, gradients: Any, variables: Any) -> None:
        owner: Owner = getattr(optimizer, OWNER)
        if owner.is_free():
            owner.run(
                "Saving gradients", owner.loop.save_gradients, optimizer, gradients, variables
            )

    def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        if trainable_variables is not None:
            note(optimizer, list(grads), list(trainable_variables))
        return base.apply(optimizer, grads, trainable_variables)  # type: ignore[attr-defined]

    def apply_gradients(optimizer: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        note(optimizer, [g for g, _ in pairs], [v for _, v in pairs])
        return base.apply_gradients(optimizer, pairs, *args, **kwargs)  # type: ignore[attr-defined]

    # The apply_gradients() of Keras 3 ends in apply().
    method = apply if hasattr(base, "apply") else apply_gradients
    return _derived(base, {method.__name__: method})


def _derived(base: type, methods: dict[str, Any]) -> type:
    about = {"__module__": base.__module__, "__qualname__": base.__qualname__, "smdebug_base": base}
    return type(base.__name__, (base,), {**about, **methods})
