"""Which names the collections of a step may hold, worked out once per name."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.model_plan import Model, Plan

# Saved steps until a selection that holds nothing of any model is compared with the models again:
# they may have new parts, but looking takes longer than saving a loss.
REST = 16
# Indices of inputs and outputs that patterns are tried with before a module is left alone.
TRIED_INDICES = 16


class Selection:
    """Answers for one set of active collections; asking changes nothing in them."""

    def __init__(self, collections: list[_core.Collection], watched: set[str]) -> None:
        self._collections = collections
        self._watched = watched
        self._names: dict[str, bool] = {}
        self._modules: dict[str, bool] = {}
        self._plans: dict[Model, Plan] = {}
        self._rest = 0

    @property
    def watches(self) -> bool:
        """Whether a NaN in some tensor makes the step a saved one."""
        return bool(self._watched)

    def rest(self) -> None:
        """Nothing of any model is held now."""
        self._rest = REST

    def is_resting(self) -> bool:
        """Whether this step need not look at models."""
        self._rest = max(self._rest - 1, 0)
        return self._rest > 0

    def take_rest(self) -> int:
        """The number of steps left that need not look at models: the caller counts them."""
        rest, self._rest = self._rest, 0
        return rest

    def holds(self, name: str) -> bool:
        """Whether the tensor of this name is saved or watched."""
        known = self._names.get(name)
        if known is None:
            known = name in self._watched or any(c.holds(name) for c in self._collections)
            self._names[name] = known
        return known

    def holds_tensors_of(self, module_name: str) -> bool:
        """Whether an input or output of the module may be saved or watched."""
        known = self._modules.get(module_name)
        if known is None:
            known = self._modules[module_name] = self._may_hold(module_name)
        return known

    def plan(self, model: Model, module: Any) -> Plan:
        """What is wanted of a registered model."""
        model.refresh(module)
        plan = self._plans.get(model)
        if plan is None or plan.revision != model.revision:
            plan = self._plans[model] = Plan(model, module, self.holds, self.holds_tensors_of)
        return plan

    def _may_hold(self, module_name: str) -> bool:
        stems = (f"{module_name}_input_", f"{module_name}_output_")
        if any(name.startswith(stems) for name in self._watched):
            return True
        for collection in self._collections:
            tried = (f"{stem}{i}" for i in range(TRIED_INDICES) for stem in stems)
            if any(collection.holds(name) for name in tried):
                return True
            if any(name.startswith(stems) for name in collection.tensor_names):
                return True
        return False


class Selections:
    """The selections of a hook, by active collections and what they hold."""

    def __init__(self) -> None:
        self._known: dict[bytes, Selection] = {}

    def forget(self) -> None:
        """Models have come or gone."""
        self._known.clear()

    def at(self, core: Any) -> Selection:
        """The selection for the current step of a hook."""
        key = _core.selection_key(core)
        found = self._known.get(key)
        if found is None:
            everything = core.collections.all()
            active = [c for c in everything if core.is_collection_observed(c.name)]
            if len(self._known) > 32:
                self._known.clear()
            found = self._known[key] = Selection(active, _watched(everything))
        return found


def _watched(collections: list[_core.Collection]) -> set[str]:
    names: set[str] = set()
    for collection in collections:
        config = _core.Collection.save_config.__get__(collection)  # type: ignore[attr-defined]
        for mode in _core.ModeKeys if config is not None else ():
            names.update(config.get_save_config(mode).when_nan or ())
    return names
