"""Collections of tensors, and the names of the built-in ones."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any, Self

from smdebug import _core
from smdebug.exceptions import SMDebugError, SMDebugTypeError


class CollectionKeys:
    """Names of the built-in collections."""

    DEFAULT = "default"
    ALL = "all"
    INPUTS = "inputs"
    OUTPUTS = "outputs"
    WEIGHTS = "weights"
    GRADIENTS = "gradients"
    LOSSES = "losses"
    BIASES = "biases"
    LAYERS = "layers"
    SM_METRICS = "sm_metrics"
    OPTIMIZER_VARIABLES = "optimizer_variables"
    TENSORFLOW_SUMMARIES = "tensorflow_summaries"
    METRICS = "metrics"
    HYPERPARAMETERS = "hyperparameters"
    PREDICTIONS = "predictions"
    LABELS = "labels"
    FEATURE_IMPORTANCE = "feature_importance"
    AVERAGE_SHAP = "average_shap"
    FULL_SHAP = "full_shap"
    TREES = "trees"
    SCALARS = "scalars"
    SEARCHABLE_SCALARS = SM_METRICS


class TensorNames(set[str]):
    """The names of a collection: a set whose changes reach the collection."""

    def __init__(self, collection: _core.Collection, names: set[str]) -> None:
        super().__init__(names)
        self._collection = collection

    def _changed(self) -> None:
        _core.Collection.tensor_names.__set__(self._collection, set(self))  # type: ignore[attr-defined]

    def add(self, name: str) -> None:
        super().add(name)
        self._collection.add_tensor_name(name)

    def discard(self, name: object) -> None:
        super().discard(name)  # type: ignore[arg-type]
        if isinstance(name, str):
            self._collection.remove_tensor_name(name)

    def remove(self, name: str) -> None:
        super().remove(name)
        self._collection.remove_tensor_name(name)

    def update(self, *others: Iterable[str]) -> None:
        for name in set().union(*others):
            self.add(name)

    def difference_update(self, *others: Iterable[Any]) -> None:
        super().difference_update(*others)
        self._changed()

    def intersection_update(self, *others: Iterable[Any]) -> None:
        super().intersection_update(*others)
        self._changed()

    def symmetric_difference_update(self, other: Iterable[str]) -> None:
        super().symmetric_difference_update(other)
        self._changed()

    def __ior__(self, other: AbstractSet[str]) -> Self:  # type: ignore[override,misc]
        self.update(other)
        return self

    def __isub__(self, other: AbstractSet[object]) -> Self:
        self.difference_update(other)
        return self

    def __iand__(self, other: AbstractSet[object]) -> Self:
        self.intersection_update(other)
        return self

    def __ixor__(self, other: AbstractSet[str]) -> Self:  # type: ignore[override,misc]
        self.symmetric_difference_update(other)
        return self

    def pop(self) -> str:
        name = super().pop()
        self._collection.remove_tensor_name(name)
        return name

    def clear(self) -> None:
        super().clear()
        self._changed()

    def __reduce__(self) -> Any:
        return (set, (list(self),))


class Collection(_core.Collection):
    """A named group of tensors with its own patterns, save and reduction configs."""

    # Set on collections of a hook: what they use unless they have a config of their own.
    _hook_save_config: _core.SaveConfig | None = None

    @classmethod
    def from_dict(cls, params: dict[str, Any]) -> Self:
        """From what to_json_dict() gives; whatever is missing has its default."""
        import json

        return cls.from_json(json.dumps(params))

    @classmethod
    def from_json(cls, json_str: str) -> Self:
        collection = cls.__new__(cls)
        collection.__setstate__(json_str)
        return collection

    @property
    def tensor_names(self) -> set[str]:
        return TensorNames(self, super().tensor_names)

    @tensor_names.setter
    def tensor_names(self, names: Any) -> None:
        _core.Collection.tensor_names.__set__(self, names)  # type: ignore[attr-defined]

    @property
    def save_config(self) -> _core.SaveConfig | None:
        config = super().save_config
        if config is None and self._hook_save_config is not None:
            # A private copy, so that changing it changes this collection only.
            state = self._hook_save_config.to_json()
            _core.Collection.save_config.__set__(self, _core.SaveConfig.from_json(state))  # type: ignore[attr-defined]
            config = super().save_config
        return config

    @save_config.setter
    def save_config(self, config: Any) -> None:
        _core.Collection.save_config.__set__(self, config)  # type: ignore[attr-defined]


class CollectionManager(_core.CollectionSet):
    """All collections of a hook or a run, by name."""

    collection_class: type[Collection] = Collection

    def __init__(
        self, collections: dict[str, Collection] | None = None, create_default: bool = False
    ) -> None:
        super().__init__()
        self._hook_save_config: _core.SaveConfig | None = None
        for collection in (collections or {}).values():
            self.add(collection)
        if create_default:
            for name in (CollectionKeys.ALL, CollectionKeys.DEFAULT):
                self.create_collection(name)

    def create_collection(self, name: str, cls: type[Collection] | None = None) -> None:
        """Makes a collection of this name, of the manager's class or another."""
        self.add((cls or self.collection_class)(name))

    def get(self, name: str, create: bool = True) -> Collection:
        found = self.find(name)
        if found is None:
            if not create:
                raise SMDebugError(f"There is no collection '{name}'; there are {self.names()}.")
            self.create_collection(name)
            found = self.find(name)
        return found  # type: ignore[return-value]

    def add(self, arg: str | Collection) -> None:
        """Adds a collection, or makes one of this name; replaces an older one."""
        if isinstance(arg, str):
            arg = self.collection_class(arg)
        if not isinstance(arg, _core.Collection):
            raise SMDebugTypeError(f"A collection or a name was expected, not {arg!r}.")
        if isinstance(arg, Collection):
            arg._hook_save_config = self._hook_save_config
        self.add_collection(arg)

    def get_collections(self) -> dict[str, Collection]:
        return {collection.name: collection for collection in self.all()}  # type: ignore[misc]

    @property
    def collections(self) -> dict[str, Collection]:
        return self.get_collections()

    def to_json_dict(self) -> dict[str, Any]:
        import json

        return json.loads(self.to_json())

    def get_num_workers(self) -> int:
        return self.num_workers

    def set_num_workers(self, num_workers: int) -> None:
        self.num_workers = num_workers

    def update_meta(self, meta: dict[str, Any]) -> None:
        """Takes over the number of workers from the `_meta` of a collections file."""
        self.num_workers = meta["num_workers"]

    def export(self, out_dir: str, filename: str) -> None:
        """Writes the collections file `filename` of the run in `out_dir`."""
        path = os.path.join(out_dir, "collections", "000000000", filename)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        temporary = path + ".tmp"
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(self.to_json())
        os.replace(temporary, path)

    @classmethod
    def load(cls, filename: str, collection_class: type[Collection] | None = None) -> Self:
        """From a collections file."""
        with open(filename, encoding="utf-8") as file:
            return cls._load(file.read(), collection_class, filename)

    @classmethod
    def load_from_string(cls, s: str, collection_class: type[Collection] | None = None) -> Self:
        """From the text of a collections file."""
        return cls._load(s, collection_class, "")

    @classmethod
    def _load(cls, text: str, collection_class: type[Collection] | None, source: str) -> Self:
        loaded = _core.CollectionSet.from_json(text, source)
        manager = cls()
        for found in loaded.all():
            manager.add((collection_class or cls.collection_class).from_json(found.to_json()))
        manager.num_workers = loaded.num_workers
        return manager

    def _belong_to_hook(self, save_config: _core.SaveConfig) -> None:
        # A copy: the hook's own keeps the hook alive, which keeps its collections alive.
        save_config = copy.copy(save_config)
        self._hook_save_config = save_config
        for collection in self.all():
            if isinstance(collection, Collection):
                collection._hook_save_config = save_config
