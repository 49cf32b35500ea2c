"""A forward pass of our own, for tensors that a compiled step cannot give.

XLA fuses a step with more outputs in another way, and rounding changes with it; inside the
differentiated function of JAX values cannot leave. So these tensors are computed ahead of the step
from the same batch, weights and random seeds, and the new state is thrown away.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.record import Attributes, Needs, set_current_record
from smdebug.tensorflow.keras.wrappers import Wrappers

NOTHING = Needs()


class Forward:
    """Forward passes of one model. One thread at a time."""

    def __init__(self, model: Any, engine: Engine, wrappers: Wrappers) -> None:
        self._model = model
        self._engine = engine
        self._wrappers = wrappers
        self._functions: dict[tuple[Needs, bool], Any] = {}

    def part_of(self, kind: str, needs: Needs) -> Needs:
        """What of these needs is computed ahead of a step."""
        if self._engine.is_legacy or self._engine.backend == "torch":
            return NOTHING
        is_jax = self._engine.backend == "jax"
        is_compiled = bool(self._model.jit_compile) and not self._model.run_eagerly
        if not is_compiled and not (is_jax and kind == "train"):
            return NOTHING
        if self._model.steps_per_execution > 1:
            if needs.layers:
                self._wrappers.skipped.say(
                    "Tensors of layers, and predictions in training with JAX, are not saved when a "
                    "compiled model runs several steps at once (steps_per_execution)."
                )
            return NOTHING
        if not is_jax and getattr(self._model.distribute_strategy, "num_replicas_in_sync", 1) > 1:
            return NOTHING
        return Needs(
            predictions=needs.predictions and is_jax and kind == "train", layers=needs.layers
        )

    def rest_of(self, kind: str, needs: Needs, ahead: Needs) -> Needs:
        """What is left to the step itself."""
        if self._engine.is_legacy or self._engine.backend == "torch":
            return needs
        is_differentiated = self._engine.backend == "jax" and kind == "train"
        is_compiled = bool(self._model.jit_compile) and not self._model.run_eagerly
        is_skipped = is_compiled and self._model.steps_per_execution > 1
        if not ahead and not is_skipped and not is_differentiated:
            return needs
        predictions = needs.predictions and not is_differentiated
        return dataclasses.replace(needs, layers=frozenset(), predictions=predictions)

    def run(
        self, kind: str, needs: Needs, args: tuple[Any, ...]
    ) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """(tensors, arguments for the step): draws the batch, which the step gets again."""
        data, left = self._draw(kind, args)
        x, _, _ = self._engine.unpack(data)
        training = kind == "train"
        if self._engine.backend == "jax":
            trainable, others = args[0][0], args[0][1]
        else:
            if not self._model.built or not self._model.weights:
                self._model(x, **self._keyword(False))
            trainable = [self._engine.readable(v) for v in self._model.trainable_variables]
            others = [self._engine.readable(v) for v in self._model.non_trainable_variables]
        function = self._functions.get((needs, training))
        if function is None:
            function = self._functions[(needs, training)] = self._compile(needs, training)
        with Attributes() as attributes:
            self._wrappers.wrap_calls(needs, attributes)
            return function(trainable, others, x), left

    def _draw(self, kind: str, args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        if self._engine.backend == "jax":
            data = next(args[1])
            return data, (args[0], iter([data]))
        if kind == "predict":
            return args[0][0], args
        data = next(args[0])
        return data, (iter([data]),)

    def _compile(self, needs: Needs, training: bool) -> Any:
        keyword = self._keyword(training)

        def forward(trainable: Any, others: Any, x: Any) -> dict[str, Any]:
            record = self._wrappers.record(needs)
            before = set_current_record(record)
            try:
                self._model.stateless_call(trainable, others, x, **keyword)
            finally:
                set_current_record(before)
            return record.finish()

        if self._model.run_eagerly:
            return forward
        if self._engine.backend == "jax":
            return self._engine.framework.jit(forward)
        return self._engine.framework.function(
            forward, autograph=False, jit_compile=True, reduce_retracing=True
        )

    def _keyword(self, training: bool) -> dict[str, bool]:
        parameters = inspect.signature(type(self._model).call).parameters.values()
        takes = any(p.name == "training" or p.kind is p.VAR_KEYWORD for p in parameters)
        return {"training": training} if takes else {}
