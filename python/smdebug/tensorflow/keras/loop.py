"""Loops that the program writes itself: what is saved at `tape.gradient()` and by wrapped optimizers.

Entering a wrapped tape begins a step; its gradient() saves. One thread at a time.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from smdebug import _core
from smdebug.guard import Guard
from smdebug.tensorflow.keras.capture import Capture
from smdebug.tensorflow.keras.engine import Engine, engine_of, engine_of_variable
from smdebug.tensorflow.keras.names import LoopNames, kind_of
from smdebug.tensorflow.keras.offers import Offers
from smdebug.tensorflow.keras.record import Attributes, Needs, Record, set_current_record
from smdebug.tensorflow.keras.requests import Requests

Kind = _core.Kind


class CustomLoop:
    """The steps of loops with tapes, and the models and optimizers that they use."""

    def __init__(self, core: Any, guard: Guard, offers: Offers, requests: Requests) -> None:
        self._core = core
        self._guard = guard
        self._offers = offers
        self._requests = requests
        self.names = LoopNames()
        self._captures: list[Capture] = []
        self._optimizers: list[Any] = []
        self._attributes: Attributes | None = None
        self._record: Record | None = None
        self._seen: set[str] = set()  # names of the current step

    # ---- what belongs to the loop

    def add_model(self, model: Any) -> None:
        """Layers of this model are saved."""
        engine = engine_of(model)
        if engine is not None and all(c.model is not model for c in self._captures):
            self._captures.append(Capture(model, engine, self._guard))
            self.names.add_model(model)

    def add_optimizer(self, optimizer: Any) -> None:
        """Variables of this optimizer are saved."""
        if all(known is not optimizer for known in self._optimizers):
            self._optimizers.append(optimizer)

    def first_model(self) -> Any:
        """The model that was registered first, if there is one."""
        return self._captures[0].model if self._captures else None

    # ---- one step

    def before_step(self) -> None:
        """A step is about to begin; raises TrainingStopRequested if it is not to."""
        if self._requests.are_there:
            self._requests.answer()

    def begin(self) -> None:
        """A tape was entered: a step begins."""
        self.leave()
        self._core.begin_step()
        self.restart()
        if self._core.is_step_wanted:
            self.watch_layers(self._offers.selections.now().needs)

    def restart(self) -> None:
        """A step has begun."""
        self._offers.let_go()
        self._seen.clear()
        self._record = None

    def watch_layers(self, needs_of: Any) -> None:
        """Calls of layers are seen until leave()."""
        for capture in self._captures[:1]:
            needs = Needs(layers=needs_of(capture.names).layers)
            if needs:
                self._record = capture.wrappers.record(needs)
                set_current_record(self._record)
                self._attributes = Attributes()
                capture.wrappers.wrap_calls(needs, self._attributes)

    def leave(self) -> None:
        """A tape was left: its model has run."""
        attributes, self._attributes = self._attributes, None
        if attributes is not None:
            attributes.__exit__()
            set_current_record(None)

    def tensors(self, target: Any, sources: Any, gradients: Any) -> list[tuple[Kind, str, Any]]:
        """(kind, name, tensor or variable) of all that a call of gradient() shows."""
        variables = sources if isinstance(sources, list | tuple) else [sources]
        results = gradients if isinstance(sources, list | tuple) else [gradients]
        found: list[tuple[Kind, str, Any]] = []
        for variable, gradient in zip(variables, results, strict=False):
            engine = engine_of_variable(variable)
            if engine is None:
                continue
            if gradient is not None:
                dense = engine.dense(gradient)
                found.append((Kind.gradient, self.names.gradient(variable), dense))
            name = self.names.variable(variable)
            found.append((kind_of(name), f"weights/{name}", variable))
        if not found:
            return []
        for name, value in self._layer_tensors().items():
            found.append((Kind.layer, name, value))
        targets = target if isinstance(target, list | tuple) else [target]
        for value in targets:
            found.append((Kind.loss, self._loss_name(), value))
        return found

    def _layer_tensors(self) -> dict[str, Any]:
        record, self._record = self._record, None
        values = record.finish() if record is not None else {}
        return {key.partition(":")[2]: value for key, value in values.items()}

    def _loss_name(self) -> str:
        index = sum(1 for name in self._seen if name == "loss" or name.startswith("loss_"))
        name = "loss" if index == 0 else f"loss_{index}"
        self._seen.add(name)
        return name

    def save(self, tensors: list[tuple[Kind, str, Any]], engine: Engine) -> None:
        """Saves what is wanted of these at the current step; each name once."""
        selection = self._offers.selections.now()
        by_kind: dict[Kind, list[tuple[str, Any]]] = {}
        for kind, name, value in tensors:
            is_new = kind == Kind.loss or name not in self._seen
            if is_new and selection.wants(kind, name):
                self._seen.add(name)
                by_kind.setdefault(kind, []).append((name, engine.readable(value)))
        for optimizer in self._optimizers:
            for name, value in self._offers.wanted_state(optimizer, engine, selection):
                if name not in self._seen:
                    self._seen.add(name)
                    by_kind.setdefault(Kind.optimizer_state, []).append(
                        (name, engine.readable(value))
                    )
        for kind, named in by_kind.items():
            self._offers.save(kind, named)

    def failed(self, site: str, error: Exception) -> None:
        """A failure of ours where none may leave."""
        self._guard.handle(site, error)

    def save_gradients(self, optimizer: Any, gradients: Any, variables: Any) -> None:
        """What an optimizer was given outside of fit, unless the tape has shown it."""
        engine = engine_of_variable(variables[0]) if variables else None
        if engine is None or not self._core.is_step_wanted:
            return
        scale = getattr(optimizer, "dynamic_scale", None)
        found: list[tuple[Kind, str, Any]] = []
        for gradient, variable in zip(gradients, variables, strict=False):
            if gradient is not None:
                dense = engine.dense(gradient)
                if scale is not None:
                    dense = dense / engine.framework.cast(engine.readable(scale), dense.dtype)
                found.append((Kind.gradient, self.names.gradient(variable), dense))
        self.save(found, engine)


@dataclasses.dataclass(frozen=True)
class Owner:
    """What a wrapped tape or optimizer knows of its hook."""

    loop: CustomLoop
    run: Any  # run(site, function, *args): never fails
    is_free: Any  # whether no step of fit is running and the hook records
