"""Wrappers around the step, the calls and the optimizer of a model, which fill a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smdebug.guard import Guard
from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.names import ModelNames
from smdebug.tensorflow.keras.record import (
    CAPTURE,
    OUTPUT,
    Attributes,
    Needs,
    Record,
    Skipped,
    current_record,
    set_current_record,
)

# What a train_step of the user may put into its logs for us.
GIVEN = ("smdebug_x", "smdebug_y", "smdebug_y_pred", "smdebug_gradients", "smdebug_layer_outputs")


class Wrappers:
    """Installs the wrappers that a step needs. They never fail; what they call may.

    The inner functions that call an original are rewritten by TensorFlow where Keras has the
    original rewritten, so they are as plain as can be.
    """

    def __init__(self, model: Any, engine: Engine, names: ModelNames, guard: Guard) -> None:
        self._model = model
        self._engine = engine
        self._names = names
        self._guard = guard
        self.skipped = Skipped()
        self.last_graph: Any = None  # in which a step was last traced

    def install(self, kind: str, needs: Needs, attributes: Attributes) -> None:
        """Everything that a step of a kind needs: train, test or predict."""
        self._wrap_step(kind, needs, attributes)
        self.wrap_calls(needs, attributes)
        optimizer = getattr(self._model, "optimizer", None)
        if needs.gradients and optimizer is not None:
            self._wrap_optimizer(optimizer, attributes)

    def record(self, needs: Needs) -> Record:
        """An empty record for a step of the model."""
        record = Record(self._engine, self._names, needs, self.skipped)
        self.last_graph = record.graph
        return record

    # ---- steps

    def _wrap_step(self, kind: str, needs: Needs, attributes: Attributes) -> None:
        original = getattr(self._model, f"{kind}_step")

        def begin_step() -> None:
            set_current_record(self.record(needs))

        def end_step(result: Any, args: tuple[Any, ...]) -> Any:
            record = set_current_record(None)
            capture: dict[str, Any] = {}
            if record is not None:
                self._safely("The data of a step", record.add_data, args[-1])
                self._safely("A step", lambda: capture.update(record.finish()))
            return _with_capture(kind, result, capture, self._engine.backend == "jax")

        begin = self._engine.not_converted(begin_step)
        end = self._engine.not_converted(end_step)

        def step(*args: Any) -> Any:
            begin()
            result = original(*args)
            return end(result, args)

        attributes.set(self._model, f"{kind}_step", step)

    def wrap_given(self, attributes: Attributes) -> None:
        """Takes what a train_step of the user returns for us out of its logs."""
        original = self._model.train_step

        def take(result: Any) -> Any:
            logs = result[0] if self._engine.backend == "jax" else result
            if not isinstance(logs, dict) or not any(key in logs for key in GIVEN):
                return result
            given = {key: value for key, value in logs.items() if key in GIVEN}
            rest = {key: value for key, value in logs.items() if key not in GIVEN}
            record = current_record()
            if record is not None:
                variables = self._model.trainable_variables
                self._safely("What train_step returned", record.add_given, given, variables)
            return (rest, *result[1:]) if self._engine.backend == "jax" else rest

        taken = self._engine.not_converted(take)

        def step(*args: Any) -> Any:
            result = original(*args)
            return taken(result)

        attributes.set(self._model, "train_step", step)

    # ---- calls

    def wrap_calls(self, needs: Needs, attributes: Attributes) -> None:
        """Calls of the model and of its layers are seen."""
        if needs.predictions:
            self._wrap_call(
                self._model, lambda record, _, outputs: record.add_predictions(outputs), attributes
            )
        for layer in self._model.layers:
            if layer.name in needs.layers:
                self._wrap_call(layer, _layer_call(layer.name), attributes)

    def _wrap_call(
        self, owner: Any, see: Callable[[Record, Any, Any], None], attributes: Attributes
    ) -> None:
        original = owner.call

        def note(args: tuple[Any, ...], kwargs: dict[str, Any], outputs: Any) -> None:
            record = current_record()
            if record is not None and not record.is_building:
                inputs = (args[0] if len(args) == 1 else args) if args else kwargs
                self._safely("A call of a layer", see, record, inputs, outputs)

        noted = self._engine.not_converted(note)

        def call(*args: Any, **kwargs: Any) -> Any:
            outputs = original(*args, **kwargs)
            noted(args, kwargs, outputs)
            return outputs

        attributes.set(owner, "call", call)

    # ---- gradients

    def _wrap_optimizer(self, optimizer: Any, attributes: Attributes) -> None:
        if self._engine.is_legacy:
            self._wrap_apply_gradients(optimizer, attributes)
        elif self._engine.backend == "jax":
            self._wrap_stateless_apply(optimizer, attributes)
        else:
            self._wrap_apply(optimizer, attributes)

    def _wrap_apply(self, optimizer: Any, attributes: Attributes) -> None:
        original = optimizer.apply

        def note(gradients: Any, variables: Any) -> None:
            if variables is None:
                variables = self._model.trainable_variables
            scale = getattr(optimizer, "dynamic_scale", None)
            self._note_gradients(gradients, variables, None if scale is None else scale.value)

        noted = self._engine.not_converted(note)

        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            noted(grads, trainable_variables)
            return original(grads, trainable_variables)

        attributes.set(optimizer, "apply", apply)

    def _wrap_stateless_apply(self, optimizer: Any, attributes: Attributes) -> None:
        original = optimizer.stateless_apply

        def stateless_apply(optimizer_variables: Any, grads: Any, trainable_variables: Any) -> Any:
            scale = None
            for variable, value in zip(optimizer.variables, optimizer_variables, strict=False):
                if variable is getattr(optimizer, "dynamic_scale", None):
                    scale = value
            self._note_gradients(grads, self._model.trainable_variables, scale)
            return original(optimizer_variables, grads, trainable_variables)

        attributes.set(optimizer, "stateless_apply", stateless_apply)

    def _wrap_apply_gradients(self, optimizer: Any, attributes: Attributes) -> None:
        original = optimizer.apply_gradients

        def note(pairs: list[tuple[Any, Any]]) -> None:
            self._note_gradients([g for g, _ in pairs], [v for _, v in pairs])

        noted = self._engine.not_converted(note)

        def apply_gradients(grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            noted(pairs)
            return original(pairs, *args, **kwargs)

        attributes.set(optimizer, "apply_gradients", apply_gradients)

    def _note_gradients(self, gradients: Any, variables: Any, scale: Any = None) -> None:
        record = current_record()
        if record is not None:
            self._safely("Gradients", record.add_gradients, gradients, variables, scale)

    # ---- failures

    def _safely(self, site: str, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)


def _layer_call(name: str) -> Callable[[Record, Any, Any], None]:
    return lambda record, inputs, outputs: record.add_layer(name, inputs, outputs)


def _with_capture(kind: str, result: Any, capture: dict[str, Any], is_jax: bool) -> Any:
    """What a step returned, and beside it the capture."""
    logs = result[0] if is_jax else result
    if kind == "predict":
        both: Any = {OUTPUT: logs, CAPTURE: capture}
    elif isinstance(logs, dict):
        both = {**logs, CAPTURE: capture}
    else:
        return result
    return (both, *result[1:]) if is_jax else both


def split_capture(kind: str, result: Any, is_jax: bool) -> tuple[Any, dict[str, Any]]:
    """(what the step returned, the capture)"""
    logs = result[0] if is_jax else result
    if not isinstance(logs, dict) or CAPTURE not in logs:
        return result, {}
    capture = logs[CAPTURE]
    if kind == "predict":
        rest: Any = logs[OUTPUT]
    else:
        rest = {key: value for key, value in logs.items() if key != CAPTURE}
    return ((rest, *result[1:]) if is_jax else rest), capture
