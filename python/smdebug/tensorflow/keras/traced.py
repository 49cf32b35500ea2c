"""Tapes inside of `tf.function`: Python runs while they are traced, so steps are counted in graphs.

Two variables of the hook, `step` and `next_save`, are in the graph. A step whose number has reached
`next_save` calls the host, which saves and says which step is next; the others cost a comparison.
"""

from __future__ import annotations

import sys
from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.engine import engine_of_variable
from smdebug.tensorflow.keras.loop import CustomLoop
from smdebug.tensorflow.keras.offers import Offers
from smdebug.tensorflow.keras.record import Skipped

Kind = _core.Kind

# More steps than any training has.
NEVER = 1 << 62
# How far ahead the next step to save is looked for.
MOST_AHEAD = 1 << 40


class TracedSteps:
    """The steps of tapes, traced or not. One thread at a time."""

    def __init__(self, core: Any, loop: CustomLoop, offers: Offers) -> None:
        self._core = core
        self._loop = loop
        self._offers = offers
        self._step: Any = None
        self._next_save: Any = None
        self._counted = 0  # executions of traced steps that the core knows of
        self._skipped = Skipped()

    def before_step(self) -> None:
        """A tape is about to be entered; the steps of a traced one begin when it runs."""
        if sys.modules["tensorflow"].executing_eagerly():
            self._loop.before_step()

    def look_soon(self) -> None:
        """The next traced step calls the host, whatever it saves. Any thread."""
        if self._next_save is not None:
            self._next_save.assign(0)

    def enter(self) -> None:
        """A tape was entered."""
        tf = sys.modules["tensorflow"]
        if tf.executing_eagerly():
            self.catch_up()
            self._loop.begin()
        else:
            self._loop.restart()
            self._loop.watch_layers(self._offers.selections.ever().needs)

    def save(self, target: Any, sources: Any, gradients: Any) -> None:
        """The gradient() of a tape has given gradients."""
        tf = sys.modules["tensorflow"]
        eager = tf.executing_eagerly()
        if eager and not self._core.is_step_wanted:
            return
        variables = sources if isinstance(sources, list | tuple) else [sources]
        engines = [engine_of_variable(v) for v in variables]
        if not engines or engines[0] is None:
            return
        tensors = self._loop.tensors(target, sources, gradients)
        if eager:
            self._loop.save(tensors, engines[0])
        elif _is_compiled():
            self._skipped.say(
                "A tape inside of a function with jit_compile=True cannot be recorded: nothing of "
                "it is saved."
            )
        elif _has_replicas(tf):
            self._skipped.say(
                "A tape that runs on several replicas cannot be recorded: nothing of it is saved."
            )
        else:
            self._insert(tf, tensors, engines[0])

    def catch_up(self) -> None:
        """Tells the core of steps that ran in graphs since the last that was saved."""
        if self._step is None or not sys.modules["tensorflow"].executing_eagerly():
            return
        behind = int(self._step.numpy()) - self._counted
        if behind > 0:
            self._counted += behind
            self._core.begin_steps(behind)

    # ---- in graphs

    def _insert(self, tf: Any, tensors: list[tuple[Kind, str, Any]], engine: Any) -> None:
        if self._step is None:
            with tf.init_scope():
                self._step = tf.Variable(0, dtype=tf.int64, trainable=False)
                self._next_save = tf.Variable(0, dtype=tf.int64, trainable=False)
        selection = self._offers.selections.ever()
        graph = tf.compat.v1.get_default_graph()
        chosen = [
            (kind, name, value)
            for kind, name, value in tensors
            if selection.wants(kind, name) and getattr(value, "graph", graph) is graph
        ]
        labels = [(kind, name) for kind, name, _ in chosen]
        step, next_save = self._step, self._next_save

        def host(number: Any, *values: Any) -> int:
            return self._on_host(int(number), labels, list(values), engine)

        def save() -> Any:
            values = [engine.readable(value) for _, _, value in chosen]
            return tf.ensure_shape(tf.py_function(host, [step, *values], tf.int64), [])

        now = step.read_value()
        following = tf.cond(
            tf.greater_equal(now, next_save.read_value()), save, lambda: next_save.read_value()
        )
        next_save.assign(following)
        step.assign_add(1)

    def _on_host(
        self, number: int, labels: list[tuple[Kind, str]], values: list[Any], engine: Any
    ) -> int:
        try:
            self._loop.before_step()
            self._core.begin_steps(max(1, number + 1 - self._counted))
            self._counted = number + 1
            self._loop.restart()
            if self._core.is_step_wanted:
                named = zip(labels, values, strict=True)
                self._loop.save([(k, n, value) for (k, n), value in named], engine)
            return number + self._steps_ahead()
        except Exception as error:
            self._loop.failed("Saving a traced step", error)
            return NEVER

    def _steps_ahead(self) -> int:
        """How many steps it is to the next that saves something."""
        ahead = 1
        while self._core.is_saved_within(ahead) is False:
            if ahead >= MOST_AHEAD:
                return NEVER // 2
            ahead *= 2
        low, high = ahead // 2 + 1, ahead  # saved within `high`, and not within `low - 1`
        while low < high:
            middle = (low + high) // 2
            if self._core.is_saved_within(middle) is False:
                low = middle + 1
            else:
                high = middle
        return high


def _is_compiled() -> bool:
    """Whether a function with jit_compile=True is being traced; TensorFlow does not tell."""
    frame = sys._getframe(1)
    while frame is not None:
        if getattr(frame.f_locals.get("self"), "_jit_compile", None) is True:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _has_replicas(tf: Any) -> bool:
    context = tf.distribute.get_replica_context()
    return context is not None and context.num_replicas_in_sync > 1
