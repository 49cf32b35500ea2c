"""What a saved step fetches, worked out once for each kind of run and each set of collections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from smdebug import _core
from smdebug.logger import get_logger
from smdebug.tensorflow.session_reach import Reach
from smdebug.tensorflow.session_sources import GraphSources, Source

# Sparse gradients become dense up to this size.
SPARSE_DENSE_LIMIT = 64 << 20
# Kinds of runs that are remembered.
MOST_PLANS = 64


class FetchPlan:
    """The names that a run saves, and the tensors that it fetches for them."""

    def __init__(self, sources: dict[str, Source]) -> None:
        self._sources = sources
        self.fetches = [tensor for source in sources.values() for tensor in source.tensors]

    def values(self, results: list[Any]) -> Iterator[tuple[str, Any]]:
        """(name, value) of what the session gave for the fetches."""
        given = iter(results)
        for name, source in self._sources.items():
            if source.is_sparse:
                yield from _dense(name, next(given), next(given), source.dense_shape)
            else:
                value = next(given)
                yield name, value if isinstance(value, bytes) else np.asarray(value)


def _dense(
    name: str, rows: Any, indices: Any, shape: tuple[int, ...] | None
) -> Iterator[tuple[str, Any]]:
    size = None if shape is None else int(np.prod(shape)) * rows.dtype.itemsize
    if size is None or size > SPARSE_DENSE_LIMIT:
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
        wanted = {name: source for name, source in self._candidates(core) if core.wants(name)}
        if not wanted:
            return FetchPlan({})
        reach = self._reach(kind, asked)
        tensors = [tensor for source in wanted.values() for tensor in source.tensors]
        allowed = iter(list(reach.allowed(tensors)))
        given = {}
        for name, source in wanted.items():
            if all([next(allowed) for _ in source.tensors]):
                given[name] = source
        if len(given) < len(wanted) and not self._has_told:
            self._has_told = True
            first = next(name for name in wanted if name not in given)
            get_logger().info(
                f"{len(wanted) - len(given)} tensors, such as '{first}', are not saved in some "
                "runs: they need a placeholder without a value, or operations with side effects "
                "that these runs do not do."
            )
        return FetchPlan(given)

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


def watched_names(core: Any) -> Iterator[str]:
    """Tensors in which a NaN makes a step a saved one."""
    configs = [core.save_config]
    for collection in core.collections.all():
        configs.append(_core.Collection.save_config.__get__(collection))  # type: ignore[attr-defined]
    for config in configs:
        for mode in _core.ModeKeys if config is not None else ():
            yield from config.get_save_config(mode).when_nan or ()
