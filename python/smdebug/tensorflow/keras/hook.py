"""The hook for Keras: a callback of fit, evaluate and predict, and the recorder of custom loops."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, ClassVar

from smdebug import _core
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError
from smdebug.guard import Guard
from smdebug.hook import BaseHook
from smdebug.step_scope import StepNumber
from smdebug.tensorflow.collection import (
    BUILTIN_COLLECTIONS,
    DEFAULT_COLLECTIONS,
    CollectionManager,
)
from smdebug.tensorflow.keras.callback import CallbackMethods, callback_classes
from smdebug.tensorflow.keras.engine import engine_of
from smdebug.tensorflow.keras.fit import FitSteps
from smdebug.tensorflow.keras.given import GivenValues
from smdebug.tensorflow.keras.loop import CustomLoop, Owner
from smdebug.tensorflow.keras.offers import Offers
from smdebug.tensorflow.keras.on_batch import BatchMethods
from smdebug.tensorflow.keras.requests import Requests
from smdebug.tensorflow.keras.tape import wrap_optimizer, wrap_tape
from smdebug.tensorflow.keras.traced import TracedSteps

Modes = _core.ModeKeys


class KerasRecorder(BaseHook):
    """Records models of Keras 2 and 3, whatever the backend. `KerasHook` is this and a callback."""

    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = BUILTIN_COLLECTIONS
    default_collections: ClassVar[list[str]] = DEFAULT_COLLECTIONS
    manager_class: ClassVar[type[PlainCollectionManager]] = CollectionManager

    def _set_up(self) -> None:
        self._guard = Guard(self._core.is_strict)
        self._offers = self._make_offers()
        requests = Requests(self)
        self._fit = self._make_fit(requests)
        self._fits.append(self._fit)
        self._loop = self._make_loop(requests)
        self._traced = self._make_traced()
        self._owner = Owner(self._loop, self._run, self._is_free)
        self._given = GivenValues(self._fit, self._loop, self._offers)
        self._batch_methods = BatchMethods(self._fit, self._run, self._is_on)

    def _make_offers(self) -> Offers:
        return Offers(self._core)

    def _make_fit(self, requests: Requests) -> FitSteps:
        return FitSteps(self._core, self._guard, self._offers, requests)

    def _make_loop(self, requests: Requests) -> CustomLoop:
        return CustomLoop(self._core, self._guard, self._offers, requests)

    def _make_traced(self) -> TracedSteps:
        return TracedSteps(self._core, self._loop, self._offers)

    def _plumbing(self, manager: PlainCollectionManager) -> dict[str, Any]:
        # Asked at the first step. The core must not keep the hook alive, which owns the core.
        fits = self._fits = []  # type: ignore[var-annotated]
        return super()._plumbing(manager) | {"identify": lambda: fits[-1].place.worker()}

    # ---- loops that the program writes itself

    def wrap_tape(self, tape: Any) -> Any:
        """The same tape: entering it begins a step, and its gradient() saves that step."""
        if not all(callable(getattr(tape, name, None)) for name in ("gradient", "__enter__")):
            self._mistake(
                "wrap_tape()", f"It needs a tf.GradientTape, not {tape!r}; nothing of it is saved."
            )
        elif self._is_on():
            self.set_mode(Modes.TRAIN)
            self._run("Wrapping a tape", wrap_tape, tape, self._owner, self._traced)
        return tape

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """The same optimizer: its variables are saved, and in loops what it applies."""
        names = ("apply", "apply_gradients")
        if not any(callable(getattr(optimizer, name, None)) for name in names):
            self._mistake(
                "wrap_optimizer()",
                f"It needs an optimizer of Keras or TensorFlow, not {optimizer!r}; nothing of it "
                "is saved.",
            )
        elif self._is_on():
            self._loop.add_optimizer(optimizer)
            self._run("Wrapping an optimizer", wrap_optimizer, optimizer, self._owner)
        return optimizer

    def register_model(self, model: Any) -> None:
        """Saves layers in loops of the program, and steps of train_on_batch and its kin."""
        if engine_of(model) is None or not hasattr(model, "layers"):
            self._mistake("register_model()", f"It needs a model of Keras, not {model!r}.")
        elif self._is_on():
            self._run("Registering a model", self._loop.add_model, model)
            self._run("Registering a model", self._batch_methods.wrap, model)

    def _mistake(self, method: str, sentence: str) -> None:
        self._guard.handle(f"A call of {method}", SMDebugTypeError(sentence))

    @property
    def is_in_fit(self) -> bool:
        """Whether a batch of fit, evaluate or predict is running."""
        return self._fit.is_running

    def _is_free(self) -> bool:
        """Whether steps are those of a loop of the program, not of fit."""
        return self._is_on() and not self._fit.is_running

    # ---- saving by hand

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Adds a name, a tensor, a variable, an operation, a layer, or several of these."""
        collection: Any = self.get_collection(collection_name)
        for item in variable if isinstance(variable, list | tuple | set) else [variable]:
            if callable(getattr(item, "call", None)):
                collection.add_keras_layer(item)
            else:
                collection.add(item)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | list[str] = "default"
    ) -> None:
        """Saves a tensor by hand: a tensor, a variable, an array, a number, or a list of these."""
        if os.getpid() != self._pid:
            return
        value = self._given.readable(tensor_name, tensor_value)
        if value is not None:
            super().save_tensor(tensor_name, value, collections_to_write)

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Saves a number under `scalar/<name>` at the current step, whatever the save config says."""
        if os.getpid() != self._pid:
            return
        plain = self._given.readable(name, value)
        if plain is not None:
            super().save_scalar(name, plain, sm_metric, timestamp)

    def record_tensor_value(self, tensor_name: str, tensor_value: Any) -> None:
        """Saves a value as a metric. Old scripts call it; others call save_tensor()."""
        self.save_tensor(tensor_name, tensor_value, "metrics")

    def save_tape_logs(self, model_inputs: Any = None, outputs: Any = None) -> None:
        """Saves the inputs and predictions of the current step of a loop."""
        logs = {"smdebug_x": model_inputs, "smdebug_y_pred": outputs}
        self.save_smdebug_logs({key: value for key, value in logs.items() if value is not None})

    def set_gradients(self, gradients: Any) -> None:
        """Saves the gradients of the current step, in the order of the trainable variables."""
        self.save_smdebug_logs({"smdebug_gradients": gradients})

    def set_optimizer_variables(self, optimizer_variables: Any) -> None:
        """Saves variables of an optimizer at the current step."""
        if self._is_on() and self._core.is_step_wanted:
            self._run("Saving variables", self._given.save_variables, optimizer_variables)

    def save_smdebug_logs(self, logs: Any) -> None:
        """Saves what a train_step gives under the keys `smdebug_x`, `smdebug_y` and so on."""
        if self._is_on() and self._core.is_step_wanted:
            self._run("Saving logs", self._given.save_logs, logs or {})

    def should_save_layer(self, layer_name: str) -> bool:
        """Whether an input or output of the layer is saved at the current step."""
        return self._core.is_step_wanted and self._offers.selections.now().wants_layer(layer_name)

    # ---- steps

    @property
    def step(self) -> StepNumber:
        """The number of the current step, -1 before the first; call it to begin the next."""
        self._run("Counting steps", self._traced.catch_up)
        return super().step

    def _has_request(self) -> None:
        self._traced.look_soon()

    @property
    def model(self) -> Any:
        """The model of the last fit, evaluate or predict, with its values up to date."""
        model = self._fit.model
        if hasattr(model, "jax_state_sync"):
            model.jax_state_sync()
        return model

    # ---- what Keras calls

    def set_model(self, model: Any) -> None:
        """The model that is about to run."""
        if self._is_on():
            self._run("Looking at a model", self._fit.set_model, model)

    def on_train_begin(self, logs: Any = None) -> None:
        """fit begins."""
        self._part("Beginning fit", self._fit.begin_part, Modes.TRAIN)

    def on_test_begin(self, logs: Any = None) -> None:
        """An evaluation begins."""
        self._part("Beginning an evaluation", self._fit.begin_part, Modes.EVAL)

    def on_predict_begin(self, logs: Any = None) -> None:
        """A prediction begins."""
        self._part("Beginning a prediction", self._fit.begin_part, Modes.PREDICT)

    def on_train_end(self, logs: Any = None) -> None:
        """fit is over."""
        self._part("Ending fit", self._fit.end_part, Modes.TRAIN)

    def on_test_end(self, logs: Any = None) -> None:
        """An evaluation is over."""
        self._part("Ending an evaluation", self._fit.end_part, Modes.EVAL)

    def on_predict_end(self, logs: Any = None) -> None:
        """A prediction is over."""
        self._part("Ending a prediction", self._fit.end_part, Modes.PREDICT)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """An epoch of fit is over."""
        if self._is_on():
            self._run("Saving the numbers of an epoch", self._fit.end_epoch, epoch, logs or {})

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """A batch of fit is about to run."""
        if self._is_on():
            self._run("Beginning a step", self._fit.begin_batch, Modes.TRAIN, batch)

    def on_test_batch_begin(self, batch: int, logs: Any = None) -> None:
        """A batch of an evaluation is about to run."""
        if self._is_on():
            self._run("Beginning a step", self._fit.begin_batch, Modes.EVAL, batch)

    def on_predict_batch_begin(self, batch: int, logs: Any = None) -> None:
        """A batch of a prediction is about to run."""
        if self._is_on():
            self._run("Beginning a step", self._fit.begin_batch, Modes.PREDICT, batch)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of fit has run."""
        if self._is_on():
            self._run("Saving a step", self._fit.end_batch, Modes.TRAIN, batch, logs or {})

    def on_test_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of an evaluation has run."""
        if self._is_on():
            self._run("Saving a step", self._fit.end_batch, Modes.EVAL, batch, logs or {})

    def on_predict_batch_end(self, batch: int, logs: Any = None) -> None:
        """A batch of a prediction has run."""
        if self._is_on():
            self._run("Saving a step", self._fit.end_batch, Modes.PREDICT, batch, logs or {})

    def _part(self, site: str, function: Callable[[Modes], None], mode: Modes) -> None:
        if self._is_on():
            self._run(site, function, mode)

    # ---- failures and the end

    def _is_on(self) -> bool:
        """Whether there is anything to do: not closed, not given up, and not a forked child."""
        return not (
            self._core.is_closed
            or self._guard.disabled
            or self._fit.place.unsupported
            or os.getpid() != self._pid
        )

    def _run(self, site: str, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._run("Closing", self._fit.release)
            self._run("Closing", self._traced.catch_up)
            self._batch_methods.unwrap()
            self._run("Closing", self._fit.crew.close, at_exit)
        super()._close(at_exit)


def hook_class() -> type[KerasRecorder]:
    """`KerasHook` for the Keras packages that the program has imported by now."""
    return _hook_class(callback_classes())


@functools.cache
def _hook_class(bases: tuple[type, ...]) -> type[KerasRecorder]:
    about = {"__module__": __package__}  # where it is found again when it is pickled
    return type("KerasHook", (KerasRecorder, CallbackMethods, *bases), about)
