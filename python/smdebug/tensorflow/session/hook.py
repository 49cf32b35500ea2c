"""The hook for monitored sessions of TensorFlow: each run of the session is a step."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

from smdebug import _core
from smdebug.callbacks import BaseCallbacks
from smdebug.collection import CollectionKeys
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugTypeError
from smdebug.hook import BaseHook
from smdebug.logger import get_logger
from smdebug.recorder import BaseRecorder
from smdebug.step_scope import StepNumber
from smdebug.tensorflow.collection import (
    BUILTIN_COLLECTIONS,
    DEFAULT_COLLECTIONS,
    CollectionManager,
)
from smdebug.tensorflow.session.board import Board
from smdebug.tensorflow.session.notes import Notes
from smdebug.tensorflow.session.optimizer import tell_gradients
from smdebug.tensorflow.session.plan import FetchPlan, FetchPlans
from smdebug.tensorflow.session.sources import GraphSources
from smdebug.tensorflow.session.turns import Turns
from smdebug.tensorflow.session.worker import can_be_recorded, find_worker

Collections = str | list[str]

# Graphs that are remembered without the end of their session.
MOST_GRAPHS = 4


class SessionHook(BaseHook, tf.compat.v1.train.SessionRunHook):
    """Records a graph: give the hook to a MonitoredSession or an Estimator.

    Runs that save nothing fetch nothing more than the program does. Runs that save fetch tensors
    along with it, and never an operation with side effects that the run would not do anyway.
    """

    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = BUILTIN_COLLECTIONS
    default_collections: ClassVar[list[str]] = DEFAULT_COLLECTIONS
    manager_class: ClassVar[type[PlainCollectionManager]] = CollectionManager

    init_step = 0

    def _set_up(self) -> None:
        self._callbacks = BaseCallbacks(self._core)
        self._recorder = BaseRecorder(self._core)
        self._notes = Notes()
        # By graph. They keep their graph alive, so those of ended sessions are dropped.
        self._plans: dict[Any, FetchPlans] = {}
        self._board = Board(self._core.tensorboard_dir)
        self._turns = Turns()
        # Tensors that a user has added, until their graph runs: (name, collection, graph).
        self._added: list[tuple[str, str, weakref.ref[Any]]] = []
        # What was saved by hand between two runs, for the next one.
        self._early: list[tuple[str, Any, Collections]] = []
        self._run: Any = None  # the context of a run that has begun and not ended
        self._plan: FetchPlan | None = None  # what this run fetches for us
        self._before: list[Any] = []  # what was fetched for us before it
        self._is_supported = True

    def _plumbing(self, manager: PlainCollectionManager) -> dict[str, Any]:
        # Not a method: the core must not keep the hook alive.
        return super()._plumbing(manager) | {"identify": find_worker}

    # ---- what is recorded

    def wrap_optimizer(self, optimizer: Any) -> Any:
        """Records the gradients that an optimizer of tf.compat.v1.train applies; returns it."""
        tell_gradients(optimizer, self._note_gradients)
        return optimizer

    def _note_gradients(self, optimizer: Any, pairs: list[tuple[Any, Any]]) -> None:
        self._guarded("Noting gradients", self._notes.note, optimizer, pairs)

    def add_to_collection(self, collection_name: str, variable: Any) -> None:
        """Adds a tensor, a variable, an operation, a name, or a list or set of these."""
        collection: Any = self.get_collection(collection_name)
        collection.add(variable)
        for item in variable if isinstance(variable, list | tuple | set) else [variable]:
            graph = getattr(item, "graph", None)
            if graph is not None:
                self._added.append((item.name, collection_name, weakref.ref(graph)))

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: Collections = "default"
    ) -> None:
        """Saves a value by hand; between two runs it belongs to the next one."""
        if isinstance(tensor_value, tf.Tensor) and not hasattr(tensor_value, "numpy"):
            raise SMDebugTypeError(
                f"'{tensor_name}' is a tensor of a graph, which has a value only while a session "
                "runs. Add it to a collection instead: hook.add_to_collection(name, tensor)."
            )
        if self._run is not None or self._core.is_closed:
            super().save_tensor(tensor_name, tensor_value, collections_to_write)
        else:
            value = np.array(tensor_value) if hasattr(tensor_value, "shape") else tensor_value
            self._early.append((tensor_name, copy.copy(value), collections_to_write))

    # ---- steps

    @property
    def step(self) -> StepNumber:
        """The number of the current run or, between two runs, of the next one."""
        number = StepNumber(self._core.step + (self._run is None))
        number._hook = self
        return number

    @property
    def mode_steps(self) -> dict[_core.ModeKeys, int]:
        """The same within each mode seen so far."""
        steps = {mode: step + 1 for mode, step in super().mode_steps.items()}
        if self._run is not None and self._core.mode in steps:
            steps[self._core.mode] -= 1
        return steps

    # ---- what sessions call

    def begin(self) -> None:
        """A session is about to be made for the current graph."""
        self._guarded("Reading a graph", self._read, tf.compat.v1.get_default_graph())

    def before_run(self, run_context: Any) -> Any:
        """A step begins. What is to be fetched beside what the user has asked for, if anything."""
        if not self._is_on:
            return None
        self._plan = None
        self._guarded("Beginning a run", self._begin_run, run_context)
        # mypy takes the plan for None, which the call above has replaced.
        plan: Any = self._plan
        if plan is None:
            return None
        fetches = plan.fetches
        return tf.compat.v1.train.SessionRunArgs(fetches) if fetches else None

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """The step is over."""
        if run_context is self._run:
            self._guarded("Ending a run", self._end_run, run_values.results)

    def end(self, session: Any) -> None:
        """The session is about to be closed; the hook can be used for another one."""
        if self._is_on:
            self._guarded("Ending a session", self._end_session, session.graph)

    @property
    def dropped_tensors(self) -> dict[str, int]:
        """How often a tensor could not be saved, by name."""
        return dict(self._recorder.dropped)

    @property
    def _is_on(self) -> bool:
        return self._is_supported and not self._core.is_closed and not self._callbacks.are_off

    def _read(self, graph: Any) -> None:
        """Finds the tensors of a graph that have a meaning, and puts them into collections."""
        if not self._is_on:
            return
        problem = can_be_recorded()
        if problem is not None:
            self._is_supported = False
            get_logger().warning(problem)
            return
        self._plans_of(graph)
        self._board.add_graph(graph)
        self.export_collections()

    def _plans_of(self, graph: Any) -> FetchPlans:
        plans = self._plans.get(graph)
        if plans is None:
            sources = GraphSources(graph, self._notes.of(graph))
            for name, members in sources.members.items():
                if name == CollectionKeys.TENSORFLOW_SUMMARIES and (
                    name not in self.include_collections or not self._board.is_on
                ):
                    continue
                collection = self.get_collection(name)
                for member in members:
                    collection.add_tensor_name(member)
            if len(self._plans) >= MOST_GRAPHS:
                self._plans.pop(next(iter(self._plans)))
            plans = self._plans[graph] = FetchPlans(graph, sources)
            self._added = [added for added in self._added if added[2]() is not graph]
        return plans

    def _begin_run(self, run_context: Any) -> None:
        if self._run is not None:
            self._cancel_run()
        super().begin_step()
        self._run = run_context
        if self._early:
            self._save_early()
        if not self._core.is_step_wanted:
            return
        self._core.enter_cost()
        try:
            graph = run_context.session.graph
            self._turns.run(graph, self._core.mode)
            plans = self._plans_of(graph)
            if self._added:
                self._report_strangers()
            plan = plans.at(self._core, run_context.original_args)
            self._before = plan.before(run_context.session.run)
            self._plan = plan
        finally:
            self._core.leave_cost()

    def _end_run(self, results: Any) -> None:
        if self._core.is_closed:
            self._run = self._plan = None
            return
        if self._plan is None:
            self._run = None
            self._core.end_step()
            return
        self._core.enter_cost()
        try:
            self._save(self._plan.values(results or [], self._before, self._run_again))
        finally:
            self._run = self._plan = None
            self._core.leave_cost()
            self._core.end_step()

    def _run_again(self, fetches: list[Any], feeds: dict[Any, Any]) -> list[Any]:
        """Computes inner tensors of the run from what it read, drew and took."""
        asked = self._run.original_args.feed_dict or {}
        return self._run.session.run(fetches, {**asked, **feeds})

    def _cancel_run(self) -> None:
        """A run that has failed, such as the one after the last batch, was no step."""
        if self._run is not None:
            self._run = self._plan = None
            self._core.cancel_step()

    def _end_session(self, graph: Any) -> None:
        self._cancel_run()
        self._plans.pop(graph, None)
        self._board.flush()

    def _save(self, values: Iterable[tuple[str, Any]]) -> None:
        names: list[str] = []
        tensors: list[Any] = []
        for name, value in values:
            if isinstance(value, bytes):
                self._board.add_summary(self._run.session.graph, value, self._core.step)
            else:
                names.append(name)
                tensors.append(value)
        for i, reason in _core.save_all(self._core, names, tensors):
            self._recorder.drop(names[i], reason)

    def _save_early(self) -> None:
        early, self._early = self._early, []
        for name, value, collections in early:
            self._guarded("Saving a value", super().save_tensor, name, value, collections)

    def _report_strangers(self) -> None:
        """Tensors that were added from other graphs than those of sessions with this hook."""
        added, self._added = self._added, []
        for name, collection, _ in added:
            get_logger().warning(
                f"'{name}' was added to the collection '{collection}' from another graph than the "
                "one that runs, so it is not saved."
            )

    # ---- failures and the end

    def _guarded(self, site: str, function: Callable[..., object], *args: Any) -> None:
        self._callbacks.run(site, function, *args)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed and self._callbacks.in_owner:
            self._guarded("Closing", self._complete)
        super()._close(at_exit)

    def _complete(self) -> None:
        self._cancel_run()
        if self._early:
            super().begin_step()
            self._save_early()
        self._plans.clear()
        self._board.close()


EstimatorHook = SessionHook
