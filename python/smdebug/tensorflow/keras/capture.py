"""Puts a capturing function into a model for one step, and takes it out again.

Keras reads `model.train_function` and its kin afresh for each batch, after the callbacks of the
batch's begin. So steps that save nothing run the very function that Keras has made. One thread at a
time.
"""

from __future__ import annotations

import weakref
from typing import Any

from smdebug.guard import Guard
from smdebug.tensorflow.keras.engine import Engine
from smdebug.tensorflow.keras.forward import Forward
from smdebug.tensorflow.keras.names import ModelNames
from smdebug.tensorflow.keras.record import Attributes, Needs, set_current_record
from smdebug.tensorflow.keras.replicas import ReplicaFunctions
from smdebug.tensorflow.keras.wrappers import Wrappers, split_capture

# Operations whose numbers depend on how often their own function has run.
RANDOM_OPERATIONS = frozenset(
    {
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomGamma",
        "RandomPoissonV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "TruncatedNormal",
    }
)


class Capture:
    """Captures steps of one model."""

    def __init__(self, model: Any, engine: Engine, guard: Guard) -> None:
        self.model = model
        self.engine = engine
        self.names = ModelNames(model, engine)
        self._guard = guard
        self.wrappers = Wrappers(model, engine, self.names, guard)
        self._forward = Forward(model, engine, self.wrappers)
        self._replicas = ReplicaFunctions(model, engine)
        # (kind, needs) → (the function of Keras, the capturing one)
        self._functions: dict[tuple[str, Needs], tuple[Any, Any]] = {}
        # kind → (the function of Keras, whether it may run beside a capturing one)
        self._mixes: dict[str, tuple[Any, bool]] = {}
        self._proven: weakref.WeakSet[Any] = weakref.WeakSet()  # capturing functions that ran
        self._swap: Swap | None = None
        self._test: TestDispatcher | None = None
        self.values: dict[str, Any] = {}
        self.is_split = False  # whether each replica has values of its own
        self._of_replicas: dict[int, dict[str, Any]] = {}

    # ---- for one step

    def arm(self, kind: str, needs: Needs) -> None:
        """The next call of the function of this kind is captured."""
        self.disarm()
        self.values, self._of_replicas = {}, {}
        self.wrappers.last_graph = None
        self._swap = Swap(self, kind, self._plain(kind), needs)
        if kind == "test" and self._test is not None:
            self._test.swap = self._swap
        else:
            object.__setattr__(self.model, f"{kind}_function", self._swap)

    def disarm(self) -> None:
        """The model is as it was."""
        swap, self._swap = self._swap, None
        if swap is not None:
            self.restore(swap)

    def restore(self, swap: Swap) -> None:
        """Puts the function of Keras back."""
        attribute = f"{swap.kind}_function"
        if getattr(self.model, attribute, None) is swap:
            object.__setattr__(self.model, attribute, swap.plain)
        if self._test is not None and self._test.swap is swap:
            self._test.swap = None

    def take(self, replica: int = 0) -> dict[str, Any]:
        """What the last step gave, by kind and name: all of it, or what is left of a replica."""
        values, self.values = self.values, {}
        return {**values, **self._of_replicas.pop(replica, {})}

    def must_always_capture(self, kind: str) -> bool | None:
        """Whether the function of Keras must never run, because it has random numbers of its own.

        None: not known before one captured step has run.
        """
        if not self.engine.is_legacy or getattr(self.model, "run_eagerly", False):
            return False
        plain, mixes = self._mixes.get(kind, (None, False))
        return not mixes if plain is not None and plain is self._plain(kind) else None

    def _plain(self, kind: str) -> Any:
        if kind == "test" and self._test is not None:
            return self._test.plain
        plain = getattr(self.model, f"{kind}_function")
        if plain is None:
            getattr(self.model, f"make_{kind}_function")()
            plain = getattr(self.model, f"{kind}_function")
        return plain.plain if isinstance(plain, Swap) else plain

    # ---- Keras 2 binds the function of an evaluation before any callback runs

    def dispatch_tests(self) -> None:
        """Makes evaluations ask before each batch."""
        if not self.engine.is_legacy or self._test is not None:
            return
        self.model.make_test_function()
        self._test = TestDispatcher(self.model.test_function)
        object.__setattr__(self.model, "test_function", self._test)

    def stop_dispatching(self) -> None:
        """Evaluations are as they were."""
        test, self._test = self._test, None
        if test is not None and self.model.test_function is test:
            object.__setattr__(self.model, "test_function", test.plain)

    # ---- running

    def run(self, swap: Swap, args: tuple[Any, ...]) -> Any:
        """Runs a step with its capture."""
        try:
            ahead = self._forward.part_of(swap.kind, swap.needs)
            if ahead:
                values, args = self._forward.run(swap.kind, ahead, args)
                self.values.update(values)
            needs = self._forward.rest_of(swap.kind, swap.needs, ahead)
            function = self._function(swap, needs) if needs else swap.plain
        except StopIteration:
            raise
        except Exception as error:
            if type(error).__name__ == "OutOfRangeError":
                raise
            self._guard.handle("Preparing to capture a step", error)
            return swap.plain(*args)
        return self._call(swap, function, needs, args)

    def _call(self, swap: Swap, function: Any, needs: Needs, args: tuple[Any, ...]) -> Any:
        with Attributes() as attributes:
            if needs:
                self.wrappers.install(swap.kind, needs, attributes)
            try:
                result = function(*args)
            except Exception as error:
                # What failed while it was traced cannot be used again.
                self._functions.pop((swap.kind, needs), None)
                if not self._may_be_ours(error, function, swap):
                    raise
                failure: Exception | None = error
            else:
                failure = None
            finally:
                set_current_record(None)
        if failure is not None:
            self._guard.handle("Capturing a step", failure)
            return swap.plain(*args)
        self._proven.add(function)
        result, values = split_capture(swap.kind, result, self.engine.backend == "jax")
        if self.is_split:
            for i, part in enumerate(self._replicas.split(values)):
                self._of_replicas.setdefault(i, {}).update(part)
        else:
            self.values.update(self._replicas.joined(values))
        if self.engine.is_legacy and needs:
            self._look_for_random_operations(swap)
        return result

    def _may_be_ours(self, error: Exception, function: Any, swap: Swap) -> bool:
        """Whether a capturing function failed while it was traced, and Keras' own may not.

        If it was the first that ever ran, Keras 3 is left with half of its variables, and nothing
        can follow it.
        """
        optimizer = getattr(self.model, "optimizer", None)
        return (
            self.engine.backend == "tensorflow"
            and (self.engine.is_legacy or (optimizer is not None and int(optimizer.iterations) > 0))
            and not self.model.run_eagerly
            and function is not swap.plain
            and function not in self._proven
            and not isinstance(error, StopIteration | self.engine.framework.errors.OpError)
        )

    def _function(self, swap: Swap, needs: Needs) -> Any:
        """The capturing function, made when it is needed first."""
        plain, function = self._functions.get((swap.kind, needs), (None, None))
        if function is None or plain is not swap.plain:
            with Attributes() as attributes:
                self.wrappers.install(swap.kind, needs, attributes)
                function = self._make(swap.kind)
            self._functions[(swap.kind, needs)] = (swap.plain, function)
        return function

    def _make(self, kind: str) -> Any:
        own = self._replicas.make(kind)
        if own is not None:
            return own
        names = [f"{kind}_function", f"{kind}_tf_function"]
        before = {name: vars(self.model)[name] for name in names if name in vars(self.model)}
        try:
            getattr(self.model, f"make_{kind}_function")(force=True)
            return getattr(self.model, f"{kind}_function")
        finally:
            for name, value in before.items():
                object.__setattr__(self.model, name, value)

    def _look_for_random_operations(self, swap: Swap) -> None:
        known, _ = self._mixes.get(swap.kind, (None, False))
        if known is swap.plain:
            return
        graph = self.wrappers.last_graph
        self._mixes[swap.kind] = (swap.plain, graph is None or not _has_random_operations(graph))


class Swap:
    """Stands in the place of a function of Keras for one call."""

    def __init__(self, capture: Capture, kind: str, plain: Any, needs: Needs) -> None:
        self._capture = capture
        self.kind = kind
        self.plain = plain
        self.needs = needs

    def __call__(self, *args: Any) -> Any:
        self._capture.restore(self)
        return self._capture.run(self, args)


class TestDispatcher:
    """The function of evaluations, which may be captured from one batch to the next."""

    __test__ = False  # no test of pytest

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        self.swap: Swap | None = None

    def __call__(self, *args: Any) -> Any:
        swap = self.swap
        return self.plain(*args) if swap is None else swap(*args)


def _has_random_operations(graph: Any) -> bool:
    definition = graph.as_graph_def()
    types = {node.op for node in definition.node}
    for function in definition.library.function:
        types.update(node.op for node in function.node_def)
    return not RANDOM_OPERATIONS.isdisjoint(types)
