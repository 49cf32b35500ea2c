"""The collections of a recorded run, as its workers have told of them by now."""

from __future__ import annotations

from smdebug import _core
from smdebug.collection import Collection, CollectionManager
from smdebug.logger import get_logger


class TrialCollections:
    """One manager for the life of a trial: a collection that was given out learns later names, too."""

    def __init__(self, core: _core.Trial) -> None:
        self._core = core
        self._manager = CollectionManager()
        self._revision = -1

    @property
    def manager(self) -> CollectionManager:
        """All collections that the trial has read of."""
        revision = self._core.collections_revision
        if revision != self._revision:
            self._revision = revision
            self._learn(CollectionManager.load_from_string(self._core.collections_json()))
        return self._manager

    def _learn(self, loaded: CollectionManager) -> None:
        for collection in loaded.all():
            known = self._manager.find(collection.name)
            if known is None:
                self._manager.add(collection)
            else:
                for tname in collection.tensor_names:
                    known.add_tensor_name(tname)
        self._manager.num_workers = loaded.num_workers

    def find(self, name: str) -> Collection:
        """The collection of this name; if there is none, a warning and an empty one."""
        manager = self.manager
        found = manager.find(name)
        if found is None:
            hint = _core.did_you_mean(name, manager.names())
            get_logger().warning(f"There is no collection '{name}' in this run.{hint}")
            return Collection(name)
        return found  # type: ignore[return-value]
