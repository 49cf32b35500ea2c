"""What a step saves of a Keras model: which tensors have to be captured, which are read anyway."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from smdebug import _core
from smdebug.collection import CollectionKeys
from smdebug.selection import Selection as NameSelection
from smdebug.tensorflow.keras.names import ModelNames
from smdebug.tensorflow.keras.record import Needs

Kind = _core.Kind

# Indices of inputs and outputs that patterns are tried with before they are left alone.
TRIED_INDICES = 16
# Sets of active collections that are remembered.
MOST_SELECTIONS = 32

COLLECTIONS = {
    Kind.weight: CollectionKeys.WEIGHTS,
    Kind.bias: CollectionKeys.BIASES,
    Kind.gradient: CollectionKeys.GRADIENTS,
    Kind.loss: CollectionKeys.LOSSES,
    Kind.metric: CollectionKeys.METRICS,
    Kind.input: CollectionKeys.INPUTS,
    Kind.output: CollectionKeys.OUTPUTS,
    Kind.layer: CollectionKeys.LAYERS,
    Kind.optimizer_state: CollectionKeys.OPTIMIZER_VARIABLES,
}

# Built-in collections that never hold variables of an optimizer unless somebody adds them.
OTHERS = frozenset(COLLECTIONS.values()) | {CollectionKeys.SM_METRICS}


class Selection(NameSelection):
    """Answers for one set of active collections; asking changes nothing in them."""

    def __init__(self, collections: list[_core.Collection], watched: set[str]) -> None:
        super().__init__(collections, watched)
        self._active = {collection.name for collection in collections}
        self._needs: dict[tuple[int, int], Needs] = {}
        self._weights: dict[tuple[int, int], list[tuple[str, Kind, Any]]] = {}

    def wants(self, kind: Kind, name: str) -> bool:
        """Whether a tensor of this kind and name is saved or watched."""
        return COLLECTIONS.get(kind) in self._active or self.holds(name)

    def wants_any(self, kind: Kind, names: Iterable[str]) -> bool:
        """Whether one of these is."""
        return COLLECTIONS[kind] in self._active or any(self.holds(name) for name in names)

    def needs(self, names: ModelNames) -> Needs:
        """What a step of the model has to give."""
        key = (id(names), names.revision)
        found = self._needs.get(key)
        if found is None:
            found = self._needs[key] = Needs(
                inputs=self.wants_any(Kind.input, _numbered("inputs")),
                labels=self.wants_any(Kind.output, _numbered("labels")),
                predictions=self.wants_any(Kind.output, _numbered("predictions")),
                gradients=self._wants_gradients(names),
                layers=frozenset(layer for layer in names.layers() if self.wants_layer(layer)),
            )
        return found

    def weights(self, names: ModelNames) -> list[tuple[str, Kind, Any]]:
        """(name, weight or bias, variable) of those that are saved."""
        key = (id(names), names.revision)
        found = self._weights.get(key)
        if found is None:
            found = [entry for entry in names.weights() if self.wants(entry[1], entry[0])]
            self._weights[key] = found
        return found

    def may_hold_optimizer_state(self) -> bool:
        """Whether it is worth asking an optimizer for its variables."""
        return COLLECTIONS[Kind.optimizer_state] in self._active or any(
            collection.include_regex or collection.tensor_names
            for collection in self._collections
            if collection.name not in OTHERS
        )

    def _wants_gradients(self, names: ModelNames) -> bool:
        if COLLECTIONS[Kind.gradient] in self._active:
            return True
        # Before a model has variables, their names cannot be tried.
        known = list(names.gradients()) or ["gradients/kernelGrad"]
        return any(self.holds(name) for name in known)

    def wants_layer(self, layer: str) -> bool:
        """Whether an input or output of the layer may be saved or watched."""
        tensors = (f"{layer}/{part}" for part in ("inputs", "outputs"))
        return self.wants_any(Kind.layer, (n for t in tensors for n in _numbered(t)))


class Selections:
    """The selections of a hook, by active collections and what they hold."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._known: dict[bytes, Selection] = {}
        self._everything: tuple[frozenset[str], Selection] | None = None

    def now(self) -> Selection:
        """The selection for the current step."""
        key = _core.selection_key(self._core)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > MOST_SELECTIONS:
                self._known.clear()
            found = self._known[key] = self._of(self._core.is_collection_observed)
        return found

    def ever(self) -> Selection:
        """The selection of all collections that may be saved at some step."""
        names = frozenset(
            c.name for c in self._core.collections.all() if self._core.may_save(c.name)
        )
        if self._everything is None or self._everything[0] != names:
            self._everything = names, self._of(names.__contains__)
        return self._everything[1]

    def _of(self, is_chosen: Callable[[str], bool]) -> Selection:
        collections = self._core.collections.all()
        watched: set[str] = set()
        for collection in collections:
            config = _core.Collection.save_config.__get__(collection)  # type: ignore[attr-defined]
            for mode in _core.ModeKeys if config is not None else ():
                watched.update(config.get_save_config(mode).when_nan or ())
        return Selection([c for c in collections if is_chosen(c.name)], watched)


def _numbered(stem: str) -> Iterator[str]:
    yield stem
    for i in range(TRIED_INDICES):
        yield f"{stem}_{i}"
