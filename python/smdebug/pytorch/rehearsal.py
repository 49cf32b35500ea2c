"""The hook of `smdebug plan`: does the work of the first steps, writes nothing, and ends the script.

It is made with a configuration that saves everything at every step. What it finds goes to the file
that SMDEBUG_PLAN names, for `smdebug/plan.py`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import torch

from smdebug import _core
from smdebug.pytorch.automatic import AutomaticCapture, AutomaticHook
from smdebug.pytorch.callbacks import Callbacks

# How often a script may catch its end before the process is ended without asking.
MOST_CAUGHT = 3


class TimedCallbacks(Callbacks):
    """Adds up the time of callbacks, once for those that run inside of others."""

    def __init__(self, callbacks: Callbacks) -> None:
        self.__dict__.update(callbacks.__dict__)
        self._depth = 0
        self.spent_secs = 0.0

    def run(self, site: str, function: Callable[..., object], *args: Any) -> None:
        """As for other hooks."""
        self._depth += 1
        begin = time.perf_counter()
        try:
            super().run(site, function, *args)
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.spent_secs += time.perf_counter() - begin


class RehearsalCapture(AutomaticCapture):
    """Does the work of saving without a writer, and notes the tensors."""

    def __init__(self, core: Any, lock: Any, callbacks: TimedCallbacks) -> None:
        super().__init__(core, lock, callbacks)
        self._timed = callbacks
        self.sees_all = True
        self._begun_at: float | None = None
        self.on_step: Callable[[], None] = lambda: None
        self.steps: list[dict[str, float]] = []
        self.tensors: dict[str, dict[str, Any]] = {}

    def begin(self, early: list[tuple[str, torch.Tensor]]) -> None:
        """A step begins: the one before it is over."""
        self.end_measured()
        self.on_step()
        self._begun_at = time.perf_counter()
        super().begin(early)

    def end_measured(self) -> None:
        """The step is over, if one has begun."""
        if self._begun_at is not None:
            secs = time.perf_counter() - self._begun_at
            self.steps.append({"secs": secs, "hook_secs": self._timed.spent_secs})
        self._begun_at = None
        self._timed.spent_secs = 0.0

    def save(
        self,
        names: list[str],
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
    ) -> None:
        """What a hook with a writer would do, but for the writing."""
        super().save(names, tensors, kind)
        for name, tensor in zip(names, tensors, strict=True):
            raw, _, reductions = _core.wanted(self._core, name)
            if not raw and not reductions:
                continue
            begin = time.perf_counter()
            for part, plain in self.recorder.plain(name, tensor):
                if reductions and plain.numel() > 0:
                    _core.reduce(plain.cpu(), reductions)
                if raw:
                    plain.clone()
                self._note(part, plain, time.perf_counter() - begin)

    def _note(self, name: str, tensor: torch.Tensor, secs: float) -> None:
        known = self.tensors.get(name)
        if known is not None:
            known["secs"] = min(known["secs"], secs)
            return
        holding = [c.name for c in self._core.collections.all() if self._holds(c, name)]
        self.tensors[name] = {
            "name": name,
            "shape": list(tensor.shape),
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "bytes": tensor.numel() * tensor.element_size(),
            "collections": holding,
            "secs": secs,
        }

    def _holds(self, collection: Any, name: str) -> bool:
        is_active = self._core.is_collection_active(collection.name)
        return is_active and (name in collection.tensor_names or collection.holds(name))

    def all_names(self) -> list[str]:
        """Names that could be saved, for those who misspelt one."""
        names = set(self.tensors)
        for root in self.roots:
            module = root.module()
            if module is None:
                continue
            for name, _ in root.parameters(module):
                names |= {name, f"gradient/{name}"}
            for name, _ in root.modules(module):
                names |= {f"{name}_input_0", f"{name}_output_0"}
        return sorted(names)


class Rehearsal(AutomaticHook):
    """Measures what recording costs, tells what there is to record, and ends the script."""

    _capture: RehearsalCapture

    def _set_up(self) -> None:
        super()._set_up()
        request = json.loads(os.environ["SMDEBUG_PLAN"])
        self._report: str = request["report"]
        self._steps_wanted: int = request["steps"]
        self._caught = 0
        callbacks = TimedCallbacks(self._callbacks)
        self._callbacks = callbacks
        self._use(RehearsalCapture(self._core, self._lock, callbacks))
        self._capture.on_step = self._on_step

    def _on_step(self) -> None:
        if len(self._capture.steps) < self._steps_wanted:
            return
        self._write_report()
        self._caught += 1
        if self._caught > MOST_CAUGHT:
            os._exit(0)
        raise SystemExit(0)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._capture.end_measured()
            self._guarded("Closing", self._write_report)
        super()._close(at_exit)

    def _write_report(self) -> None:
        if self._core.worker != self._core.chief_worker or os.path.exists(self._report):
            return
        collections = [
            {
                "name": c.name,
                "reductions": _reductions_of(c.reduction_config),
                "raw": c.reduction_config.save_raw_tensor,
            }
            for c in self._core.collections.all()
            if self._core.is_collection_active(c.name) and c.reduction_config is not None
        ]
        found = {
            "models": [root.prefix for root in self._capture.roots],
            "steps": self._capture.steps,
            "collections": collections,
            "tensors": list(self._capture.tensors.values()),
            "names": self._capture.all_names(),
        }
        with open(f"{self._report}.part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{self._report}.part", self._report)


def _reductions_of(config: Any) -> list[str]:
    plain = [*config.reductions, *config.norms]
    return [*plain, *(f"abs_{name}" for name in [*config.abs_reductions, *config.abs_norms])]
