"""The steps of fit, evaluate and predict: when they begin and end, and what is saved of them."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

from smdebug import _core
from smdebug.exceptions import TrainingStopRequested
from smdebug.guard import Guard
from smdebug.logger import get_logger
from smdebug.tensorflow.keras.capture import Capture
from smdebug.tensorflow.keras.crew import Crew
from smdebug.tensorflow.keras.engine import Engine, engine_of
from smdebug.tensorflow.keras.graph import GraphExport
from smdebug.tensorflow.keras.offers import Offers
from smdebug.tensorflow.keras.record import Attributes, Needs
from smdebug.tensorflow.keras.requests import Requests
from smdebug.tensorflow.keras.worker import Place, find_place

Kind = _core.Kind
Modes = _core.ModeKeys

KINDS = {Modes.TRAIN: "train", Modes.EVAL: "test", Modes.PREDICT: "predict"}
# Models whose capturing functions are kept.
MOST_MODELS = 8


class FitSteps:
    """What the callback of one hook does. One thread at a time.

    Steps begin with a batch, so that what the program saves itself has a step. Where Keras runs
    several batches in one call, they begin when they are over: only then their number is known.
    """

    def __init__(self, core: Any, guard: Guard, offers: Offers, requests: Requests) -> None:
        self._core = core
        self.crew = Crew(core, offers)
        self._guard = guard
        self._offers = offers
        self._requests = requests
        self._graphs = GraphExport(core)
        self._captures: dict[int, Capture] = {}
        self.capture: Capture | None = None
        self.model: Any = None
        self.place = Place()
        self._given: Attributes | None = None
        self._begun_batch: int | None = None  # a batch has begun and not ended
        self._several = 1  # steps in one call
        self._in_fit = False
        self._last_logs: Mapping[str, Any] = {}
        self._warned: set[str] = set()

    @property
    def is_running(self) -> bool:
        """Whether a batch of fit, evaluate or predict has begun and not ended."""
        return self._begun_batch is not None

    # ---- the model

    def set_model(self, model: Any) -> None:
        """The model whose batches come next."""
        self.model = model
        engine = engine_of(model)
        self._find_place(model, engine)
        self.capture = self._capture_of(model, engine)
        self._look_for_strangers(model)
        if self.capture is None:
            return
        if self._ever_needs(self.capture, "test") or self._graphs.is_due(Modes.EVAL, self.capture):
            self.capture.dispatch_tests()
        self._take_given()

    def _find_place(self, model: Any, engine: Engine | None) -> None:
        place = find_place(model, engine)
        if place.unsupported:
            self._warn(
                f"Models under {place.unsupported} cannot be recorded: nothing is saved of them."
            )
        self.place = place
        self.crew.man(place)
        if self.crew.is_split:
            self._core = self.crew

    def _look_for_strangers(self, model: Any) -> None:
        """Layers that were added to a collection must be those of the model."""
        known = {id(layer) for layer in model.layers}
        for collection in self._core.collections.all():
            for layer in getattr(collection, "layers", ()):
                if id(layer) not in known:
                    self._warn(
                        f"'{layer.name}' is no layer of the model '{model.name}', though it is in "
                        f"the collection '{collection.name}': nothing of it is saved."
                    )

    def _capture_of(self, model: Any, engine: Engine | None) -> Capture | None:
        if engine is None or not engine.is_known:
            name = type(model).__name__ if engine is None else f"the backend {engine.backend}"
            self._warn(
                f"Tensors inside of steps cannot be saved for {name}: only numbers, weights and "
                "optimizer variables are."
            )
            return None
        if _is_nnx(engine):
            self._warn("Tensors inside of steps cannot be saved when Keras runs in NNX mode.")
            return None
        found = self._captures.get(id(model))
        if found is None or found.model is not model:
            if len(self._captures) >= MOST_MODELS:
                self._captures.clear()
            found = self._captures[id(model)] = Capture(model, engine, self._guard)
        found.is_split = self.crew.is_split
        return found

    def _take_given(self) -> None:
        """A train_step of the user may return values for us, which are no metrics."""
        self._leave_given()
        step = getattr(type(self.model), "train_step", None)
        home = getattr(step, "__module__", "").partition(".")[0]
        if self.capture is not None and home not in ("keras", "tf_keras"):
            self._given = Attributes()
            self.capture.wrappers.wrap_given(self._given)

    def _leave_given(self) -> None:
        given, self._given = self._given, None
        if given is not None:
            given.__exit__()

    # ---- parts of a run

    def begin_part(self, mode: Modes) -> None:
        """fit, evaluate or predict begins; an evaluation may be inside of fit."""
        self.cancel()
        if mode == Modes.TRAIN:
            self._in_fit = True
            self._last_logs = {}
        elif self._in_fit and self._core.mode == Modes.TRAIN:
            self._save_anyway(self._last_logs)
        self._several = _steps_per_execution(self.model)
        if self._several > 1:
            self._warn(
                f"{self._several} steps run at once: what any of them saves is saved once, with "
                "the number and the values of the last."
            )

    def end_part(self, mode: Modes) -> None:
        """fit, evaluate or predict is over."""
        self.cancel()
        if mode == Modes.EVAL and self._in_fit:
            return
        if mode == Modes.TRAIN:
            self._in_fit = False
        if self.capture is not None:
            self.capture.stop_dispatching()
        self._leave_given()
        self._core.end_step()

    def end_epoch(self, epoch: int, logs: Mapping[str, Any]) -> None:
        """Numbers of the epoch: those of the evaluation belong to it, the others to training."""
        self.cancel()
        is_evaluated = self._core.mode == Modes.EVAL
        self._save_anyway(
            {
                name: value
                for name, value in {**logs, "batch": epoch}.items()
                if name.startswith("val_") == is_evaluated
            }
        )
        self._core.end_step()

    # ---- batches without callbacks

    def begin_single(self, model: Any, mode: Modes) -> None:
        """A batch that the program runs by itself."""
        self.cancel()
        if model is not self.model:
            self.set_model(model)
        self._several = 1
        self.begin_batch(mode, 0)

    def end_single(self, mode: Modes, result: Any) -> None:
        """Such a batch has run."""
        logs: Mapping[str, Any] = {}
        if self._core.is_step_wanted:
            logs = {"outputs": result} if mode == Modes.PREDICT else self.model.get_metrics_result()
        self.end_batch(mode, 0, logs)

    # ---- batches

    def begin_batch(self, mode: Modes, batch: int) -> None:
        """A batch of this mode is about to run."""
        if self._begun_batch is not None:
            self.cancel()
        if self._requests.are_there:
            self._answer()
        core = self._core
        if core.mode != mode:
            core.mode = mode
        self._begun_batch = batch
        for offers, _ in self.crew.offers():
            offers.let_go()
        if self._several > 1:
            if core.is_saved_within(self._several) is not False:
                self._arm(mode)
            return
        core.begin_step()
        if core.is_step_wanted or (self.capture is not None and self.capture.engine.is_legacy):
            self._arm(mode)

    def end_batch(self, mode: Modes, batch: int, logs: Mapping[str, Any]) -> None:
        """A batch of this mode has run."""
        begun, self._begun_batch = self._begun_batch, None
        if begun is None:
            return
        if self.capture is not None:
            self.capture.disarm()
            self._graphs.write(mode, self.capture)
        if self._several > 1:
            self._core.begin_steps(max(1, batch - begun + 1))
        if mode == Modes.TRAIN:
            self._last_logs = logs
        if self._core.is_step_wanted:
            self._save(mode, batch, logs)

    def release(self) -> None:
        """The hook closes: models are as they were."""
        self.cancel()
        for capture in self._captures.values():
            capture.stop_dispatching()
        self._leave_given()

    def cancel(self) -> None:
        """A batch that began did not run."""
        if self._begun_batch is None:
            return
        self._begun_batch = None
        if self.capture is not None:
            self.capture.disarm()
        if self._several == 1:
            self._core.cancel_step()

    def _answer(self) -> None:
        """Somebody asks something of the training. A stop ends fit as EarlyStopping does."""
        try:
            self._requests.answer()
        except TrainingStopRequested as stop:
            if not self._in_fit:
                raise
            get_logger().warning(str(stop))
            self.model.stop_training = True

    def _arm(self, mode: Modes) -> None:
        capture = self.capture
        if capture is None:
            return
        kind = KINDS[mode]
        always = capture.must_always_capture(kind)
        self._core.enter_cost()
        try:
            if always is not False or self._several > 1:
                needs = self._ever_needs(capture, kind)
            else:
                needs = _of_kind(kind, self._offers.selections.now().needs(capture.names))
            if not needs and self._graphs.is_due(mode, capture):
                needs = Needs(inputs=True)  # one traced step shows the graph
            if needs and not (kind == "predict" and self._several > 1):
                capture.arm(kind, needs)
        finally:
            self._core.leave_cost()

    def _ever_needs(self, capture: Capture, kind: str) -> Needs:
        return _of_kind(kind, self._offers.selections.ever().needs(capture.names))

    def _save(self, mode: Modes, batch: int, logs: Mapping[str, Any]) -> None:
        self._core.enter_cost()
        try:
            for offers, replica in self.crew.offers():
                if mode == Modes.PREDICT:
                    offers.begin({})
                    offers.save_structure(
                        Kind.output, "predictions", logs.get("outputs"), engine_of(self.model)
                    )
                else:
                    offers.begin({**logs, "batch": batch})
                if self.capture is not None:
                    offers.save_captured(self.capture.take(replica))
                    offers.save_model(self.capture, replica)
        finally:
            self._core.leave_cost()

    def _save_anyway(self, numbers: Mapping[str, Any]) -> None:
        for offers, _ in self.crew.offers():
            offers.save_anyway(numbers)

    def _warn(self, message: str) -> None:
        if message not in self._warned:
            self._warned.add(message)
            get_logger().warning(message)


def _of_kind(kind: str, needs: Needs) -> Needs:
    """What a step of this kind can give."""
    if kind == "train":
        return needs
    if kind == "test":
        return dataclasses.replace(needs, gradients=False)
    return dataclasses.replace(needs, gradients=False, labels=False, predictions=False)


def _steps_per_execution(model: Any) -> int:
    steps = getattr(model, "steps_per_execution", None)
    if steps is None:
        steps = getattr(model, "_steps_per_execution", None)
    if steps is None:
        return 1
    return int(steps.numpy() if hasattr(steps, "numpy") else steps)


def _is_nnx(engine: Engine) -> bool:
    return engine.backend == "jax" and os.environ.get("KERAS_NNX_ENABLED", "").lower() in (
        "1",
        "true",
    )
