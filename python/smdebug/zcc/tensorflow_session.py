"""Monitored sessions of TensorFlow: each gets our hook, unless the script records by itself.

Nothing is made before the first session, so programs that only import TensorFlow stay silent.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import smdebug_activation
import tensorflow as tf

from smdebug import _core, singleton
from smdebug.hook import BaseHook
from smdebug.zcc import Patches

if TYPE_CHECKING:
    from smdebug.tensorflow.session.automatic import AutomaticSessionHook
    from smdebug.tensorflow.session.notes import Notes


def patch() -> Sessions:
    """Gives the hook to sessions that are made from now on."""
    train = tf.compat.v1.train
    with Patches() as patches:
        sessions = Sessions(patches)
        for kind in (train.MonitoredSession, train.SingularMonitoredSession):
            patches.replace(kind, "__init__", _with_hook(sessions, kind.__init__))
        original = train.Optimizer.apply_gradients
        patches.replace(train.Optimizer, "apply_gradients", _noting(sessions, original))
    return sessions


class Sessions:
    """The hook of the sessions of a script, and what its optimizers have said."""

    def __init__(self, patches: Patches) -> None:
        self._patches = patches
        self._notes: Notes | None = None
        self._mode: _core.ModeKeys | None = None  # until there is a hook
        self.hook: AutomaticSessionHook | None = None

    def undo(self) -> None:
        """TensorFlow is as it was, and what was recorded is complete."""
        self._patches.undo()
        hook, self.hook = self.hook, None
        if hook is not None:
            hook.close()

    def hook_for(self, hooks: list[Any]) -> AutomaticSessionHook | None:
        """The hook for a session that is being made with these hooks; None: the script has its own."""
        if any(isinstance(hook, BaseHook) for hook in hooks):
            return None
        current = singleton.current_hook()
        if current is not None and current is not self.hook:
            return None
        if self.hook is None:
            from smdebug.tensorflow.session.automatic import make_hook

            self.hook = make_hook()
            self.hook.on_replaced = self._patches.undo
            self.hook.use(self.notes)
            if self._mode is not None:
                self.hook.follow(self._mode)
        return None if self.hook.is_closed else self.hook

    @property
    def notes(self) -> Notes:
        """Of all graphs."""
        if self._notes is None:
            from smdebug.tensorflow.session.notes import Notes

            self._notes = Notes()
        return self._notes

    @contextmanager
    def mode(self, mode: _core.ModeKeys) -> Iterator[None]:
        """What an Estimator does meanwhile."""
        before, self._mode = self._mode, mode
        if self.hook is not None:
            self.hook.follow(mode)
        try:
            yield
        finally:
            self._mode = before
            if self.hook is not None:
                self.hook.follow(_core.ModeKeys.GLOBAL if before is None else before)


def _with_hook(sessions: Sessions, original: Callable[..., None]) -> Callable[..., None]:
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init(session: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(session, *args, **kwargs)
            hooks = list(given.arguments.get("hooks") or [])
            hook = sessions.hook_for(hooks)
            if hook is not None:
                given.arguments["hooks"] = [hook, *hooks]
                args, kwargs = given.args[1:], given.kwargs
        except Exception as error:
            smdebug_activation.report(error)
        original(session, *args, **kwargs)

    return init


def _noting(sessions: Sessions, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply_gradients(optimizer: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = list(grads_and_vars)
        update = original(optimizer, pairs, *args, **kwargs)
        if not tf.executing_eagerly():
            try:
                sessions.notes.note(optimizer, pairs)
            except Exception as error:
                smdebug_activation.report(error)
        return update

    return apply_gradients
