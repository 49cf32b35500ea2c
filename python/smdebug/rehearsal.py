"""What the hooks of `smdebug plan` have in common: they measure, write nothing, and end the script.

Such a hook is made with a configuration that saves everything at every step. What it finds goes to
the file that SMDEBUG_PLAN names, for `smdebug/plan.py`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

# How often a script may catch its end before the process is ended without asking.
MOST_CAUGHT = 3


class Measurements:
    """Times of steps and callbacks, and the tensors that there are to record."""

    def __init__(self, core: Any, is_boosting: bool = False) -> None:
        request = json.loads(os.environ["SMDEBUG_PLAN"])
        self._core = core
        self._is_boosting = is_boosting  # the configuration means trees, not a network
        self.known_names: set[str] = set()  # that could be saved, beside those of the models
        self._report: str = request["report"]
        self._steps_wanted: int = request["steps"]
        self._caught = 0
        self._depth = 0
        self._begun_at: float | None = None
        self._spent_secs = 0.0
        self._steps: list[dict[str, float]] = []
        self._tensors: dict[str, dict[str, Any]] = {}
        self._active: set[str] = set()  # collections

    def timed(self, function: Callable[..., None], *args: Any) -> None:
        """Calls a function of ours; its time counts once if it is called by another."""
        self._depth += 1
        begin = time.perf_counter()
        try:
            function(*args)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._spent_secs += time.perf_counter() - begin

    def waited(self, secs: float) -> None:
        """A function of ours has waited for the training."""
        self._spent_secs -= secs

    def begin_step(self, models: Iterable[Any]) -> None:
        """A step begins: the one before it is over. Ends the script if that was the last one."""
        self.end_step()
        if len(self._steps) >= self._steps_wanted:
            self.write(models)
            self._caught += 1
            if self._caught > MOST_CAUGHT:
                os._exit(0)
            raise SystemExit(0)
        self._begun_at = time.perf_counter()

    def end_step(self) -> None:
        """The step is over, if one has begun."""
        if self._begun_at is not None:
            secs = time.perf_counter() - self._begun_at
            self._steps.append({"secs": secs, "hook_secs": self._spent_secs})
        self._begun_at = None
        self._spent_secs = 0.0

    def note(self, name: str, secs: float, shape: list[int], dtype: str, size_bytes: int) -> None:
        """A tensor whose saving took so long."""
        known = self._tensors.get(name)
        if known is not None:
            known["secs"] = min(known["secs"], secs)
            return
        self._find_active()
        holding = [c.name for c in self._core.collections.all() if self._holds(c, name)]
        self._tensors[name] = {
            "name": name,
            "shape": shape,
            "dtype": dtype,
            "bytes": size_bytes,
            "collections": holding,
            "secs": secs,
        }

    def _find_active(self) -> None:
        """A step that is over has no active collections any more."""
        for collection in self._core.collections.all():
            if self._core.is_collection_active(collection.name):
                self._active.add(collection.name)

    def _holds(self, collection: Any, name: str) -> bool:
        is_active = collection.name in self._active
        return is_active and (name in collection.tensor_names or collection.holds(name))

    def _all_names(self, models: Iterable[Any]) -> list[str]:
        """Names that could be saved, for those who misspelt one."""
        names = self.known_names.union(self._tensors)
        for model in models:
            module = model.module()
            if module is None:
                continue
            for name, _ in model.parameters(module):
                names |= {name, f"gradient/{name}"}
            for name, _ in model.modules(module):
                names |= {f"{name}_input_0", f"{name}_output_0"}
        return sorted(names)

    def write(self, models: Iterable[Any]) -> None:
        """Writes the report, once per job."""
        if self._core.worker != self._core.chief_worker or os.path.exists(self._report):
            return
        self._find_active()
        collections = [
            {
                "name": c.name,
                "reductions": _reductions_of(c.reduction_config),
                "raw": c.reduction_config.save_raw_tensor,
            }
            for c in self._core.collections.all()
            if c.name in self._active and c.reduction_config is not None
        ]
        found = {
            "models": [model.prefix for model in models],
            "is_boosting": self._is_boosting,
            "steps": self._steps,
            "collections": collections,
            "tensors": list(self._tensors.values()),
            "names": self._all_names(models),
        }
        with open(f"{self._report}.part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{self._report}.part", self._report)


def _reductions_of(config: Any) -> list[str]:
    plain = [*config.reductions, *config.norms]
    return [*plain, *(f"abs_{name}" for name in [*config.abs_reductions, *config.abs_norms])]
