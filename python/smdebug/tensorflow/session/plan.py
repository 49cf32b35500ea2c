"""What a saved step fetches, worked out once for each kind of run and each set of collections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from smdebug import _core
from smdebug.collection import CollectionKeys
from smdebug.logger import get_logger
from smdebug.tensorflow.session.reach import Reach, reads_reference
from smdebug.tensorflow.session.sources import GraphSources, Source

# Sparse gradients become dense up to this size.
SPARSE_DENSE_LIMIT = 64 << 20
# Kinds of runs that are remembered.
MOST_PLANS = 64


Run = Callable[[list[Any], dict[Any, Any]], list[Any]]  # runs a session: fetches, feeds → values


class FetchPlan:
    """What is fetched for a saved step: along with the user's run, before it, and after it."""

    def __init__(self) -> None:
        # By name: what comes with the user's run, and what a second run computes.
        self.direct: dict[str, Source] = {}
        self.replayed: dict[str, Source] = {}
        # What the second run is given: tensors that come with the user's run, and those whose
        # memory the user's run may change, which are fetched before it.
        self._given: list[Any] = []
        self._early: list[Any] = []
        # Names of tensors that the user's run does not compute: nobody knows whether they can be.
        self.unproven: set[str] = set()

    def give(self, tensors: list[Any]) -> None:
        """Sets what the second run needs."""
        self._early = [tensor for tensor in tensors if reads_reference(tensor.op)]
        self._given = [tensor for tensor in tensors if not reads_reference(tensor.op)]

    @property
    def fetches(self) -> list[Any]:
        """What comes with the user's run."""
        return [*_tensors(self.direct), *self._given]

    def before(self, run: Run) -> list[Any]:
        """Fetches what cannot come with the user's run; for values()."""
        if not self._early:
            return []
        return [np.array(value) for value in run(self._early, {})]

    def values(self, results: list[Any], before: list[Any], run: Run) -> Iterator[tuple[str, Any]]:
        """(name, value) of what is saved. `results` are those of the fetches."""
        count = len(results) - len(self._given)
        yield from _assembled(self.direct, results[:count])
        if self.replayed:
            feeds = [*zip(self._given, results[count:], strict=True)]
            feeds += zip(self._early, before, strict=True)
            # Tensors cannot be keys where they can be compared.
            given = {tensor.name: value for tensor, value in feeds}
            results = self._replay(given, run)
            yield from _assembled(self.replayed, results)

    def _replay(self, given: dict[str, Any], run: Run) -> list[Any]:
        try:
            return run(_tensors(self.replayed), given)
        except tf.errors.OpError as error:
            if not self.unproven:
                raise
            get_logger().warning(
                f"{len(self.unproven)} tensors that the program does not compute are not saved, "
                f"because one of them cannot be: {error.message.splitlines()[0]}"
            )
            for name in self.unproven:
                del self.replayed[name]
            self.unproven = set()
            return run(_tensors(self.replayed), given)


def _tensors(sources: dict[str, Source]) -> list[Any]:
    return [tensor for source in sources.values() for tensor in source.tensors]


def _assembled(sources: dict[str, Source], results: list[Any]) -> Iterator[tuple[str, Any]]:
    given = iter(results)
    for name, source in sources.items():
        if source.is_sparse:
            yield from _dense(name, next(given), next(given), source.dense_shape)
        else:
            value = next(given)
            yield name, value if isinstance(value, bytes) else np.asarray(value)


def _dense(
    name: str, rows: Any, indices: Any, shape: tuple[int, ...] | None
) -> Iterator[tuple[str, Any]]:
    if shape is None or int(np.prod(shape)) * rows.dtype.itemsize > SPARSE_DENSE_LIMIT:
        yield f"{name}/indices", indices
        yield f"{name}/values", rows
        return
    dense = np.zeros(shape, rows.dtype)
    np.add.at(dense, indices, rows)
    yield name, dense


class FetchPlans:
    """The plans of one graph."""

    def __init__(self, graph: Any, sources: GraphSources) -> None:
        self._graph = graph
        self._sources = sources
        # With what the ids in a key belong to, so that nothing else gets them.
        self._plans: dict[Any, tuple[Any, FetchPlan]] = {}
        self._reaches: dict[Any, tuple[Any, Reach]] = {}
        self._has_told = False

    def at(self, core: Any, run: Any) -> FetchPlan:
        """The plan for the current step of a hook; `run` is what the user runs."""
        asked = tf.nest.flatten(run.fetches), list(run.feed_dict or ())
        kind = tuple(map(id, asked[0])), frozenset(map(id, asked[1]))
        key = (_core.selection_key(core), kind)
        found = self._plans.get(key)
        if found is None:
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            found = self._plans[key] = (asked, self._make(core, kind, asked))
        return found[1]

    def _make(self, core: Any, kind: Any, asked: Any) -> FetchPlan:
        plan = FetchPlan()
        wanted = {name: source for name, source in self._candidates(core) if core.wants(name)}
        if not wanted:
            return plan
        reach = self._reach(kind, asked)
        losses = core.collections.find(CollectionKeys.LOSSES)
        direct: dict[str, Source] = {}
        inner: dict[str, Source] = {}
        for name, source in wanted.items():
            along = (
                source.is_known
                or reach.is_outer(source.tensors[0])
                or (losses is not None and losses.has_tensor_name(name))
            )
            (direct if along else inner)[name] = source
        plan.direct = _those(direct, reach.allowed(_tensors(direct)))
        can_be, given = reach.replayed(_tensors(inner))
        plan.replayed = _those(inner, can_be)
        if plan.replayed:
            plan.give(given)
            plan.unproven = {
                name
                for name, source in plan.replayed.items()
                if not all(map(reach.does, source.tensors))
            }
        left_out = [n for n in wanted if n not in plan.direct and n not in plan.replayed]
        if left_out and not self._has_told:
            self._has_told = True
            get_logger().info(
                f"{len(left_out)} tensors, such as '{left_out[0]}', are not saved in some runs: "
                "they need a placeholder without a value, or operations with side effects that "
                "these runs do not do."
            )
        return plan

    def _reach(self, kind: Any, asked: Any) -> Reach:
        found = self._reaches.get(kind)
        if found is None:
            if len(self._reaches) >= MOST_PLANS:
                self._reaches.clear()
            found = self._reaches[kind] = (asked, Reach(self._graph, *asked))
        return found[1]

    def _candidates(self, core: Any) -> Iterator[tuple[str, Source]]:
        """The names that the collections of this step may hold."""
        active = [c for c in core.collections.all() if core.is_collection_observed(c.name)]
        if any(c.include_regex for c in active):
            yield from self._sources.everything().items()
            return
        names = dict.fromkeys(name for c in active for name in sorted(c.tensor_names))
        names.update(dict.fromkeys(watched_names(core)))
        for name in names:
            source = self._sources.find(name)
            if source is not None:
                yield name, source


def _those(sources: dict[str, Source], allowed: Iterable[bool]) -> dict[str, Source]:
    """The sources all of whose tensors are allowed."""
    each = iter(allowed)
    found = {}
    for name, source in sources.items():
        answers = [next(each) for _ in source.tensors]
        if all(answers):
            found[name] = source
    return found


def watched_names(core: Any) -> Iterator[str]:
    """Tensors in which a NaN makes a step a saved one."""
    configs = [core.save_config]
    for collection in core.collections.all():
        configs.append(_core.Collection.save_config.__get__(collection))  # type: ignore[attr-defined]
    for config in configs:
        for mode in _core.ModeKeys if config is not None else ():
            yield from config.get_save_config(mode).when_nan or ()
