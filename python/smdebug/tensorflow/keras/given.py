"""Values that the program or its train_step hands over itself. One thread at a time."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.tensorflow.keras.engine import Engine, engine_of, engine_of_variable
from smdebug.tensorflow.keras.fit import FitSteps
from smdebug.tensorflow.keras.loop import CustomLoop
from smdebug.tensorflow.keras.names import ModelNames, variable_name
from smdebug.tensorflow.keras.offers import Offers, as_tensor
from smdebug.tensorflow.keras.record import Needs, Record, Skipped

Kind = _core.Kind

EVERYTHING = Needs(inputs=True, labels=True, predictions=True, gradients=True)


class GivenValues:
    """Saves values at the current step."""

    def __init__(self, fit: FitSteps, loop: CustomLoop, offers: Offers) -> None:
        self._fit = fit
        self._loop = loop
        self._offers = offers
        self._skipped = Skipped()

    def readable(self, name: str, value: Any) -> Any:
        """A value as the core reads it; None: it has none, because a function is being traced."""
        root = type(value).__module__.partition(".")[0]
        if root == "torch" and hasattr(value, "detach"):
            return value.detach().cpu()
        if root not in ("tensorflow", "keras", "tf_keras", "jax", "jaxlib"):
            return value
        engine = engine_of_variable(value)
        if engine is not None:
            if engine.backend == "jax" and hasattr(self._fit.model, "jax_state_sync"):
                self._fit.model.jax_state_sync()  # during an epoch variables have no values
            value = engine.readable(value)
        kind = type(value).__name__
        if kind in ("SymbolicTensor", "KerasTensor") or kind.endswith("Tracer"):
            self._skipped.say(
                f"'{name}' has no value while a function is traced: it is not saved there."
            )
            return None
        return as_tensor(value)

    def save_logs(self, logs: dict[str, Any]) -> None:
        """What a train_step gives under its keys for us."""
        model = self._model()
        engine = engine_of(model) if model is not None else None
        if engine is None:
            self._skipped.say("The model of these values is not known: use register_model().")
            return
        record = Record(engine, ModelNames(model, engine), EVERYTHING, self._skipped)
        record.add_given(logs, model.trainable_variables)
        self._offers.save_captured(record.finish())

    def save_variables(self, variables: Any) -> None:
        """Variables of an optimizer."""
        pairs: list[tuple[str, Any]] = []
        for variable in list(variables):
            engine: Engine | None = engine_of_variable(variable)
            if engine is not None:
                pairs.append((variable_name(variable), engine.readable(variable)))
        self._offers.save(Kind.optimizer_state, pairs)

    def _model(self) -> Any:
        return self._fit.model if self._fit.model is not None else self._loop.first_model()
