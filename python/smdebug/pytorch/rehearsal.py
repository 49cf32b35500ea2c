"""The hook of `smdebug plan`: does the work of the first steps, writes nothing, and ends the script.

It is made with a configuration that saves everything at every step. What it finds goes to the file
that SMDEBUG_PLAN names, for `smdebug/plan.py`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from smdebug import _core
from smdebug.pytorch.automatic import AutomaticHook

# How often a script may catch its end before the process is ended without asking.
MOST_CAUGHT = 3


class Rehearsal(AutomaticHook):
    """Measures what recording costs, and notes what there is to record."""

    def _set_up(self) -> None:
        super()._set_up()
        request = json.loads(os.environ["SMDEBUG_PLAN"])
        self._report: str = request["report"]
        self._steps_wanted: int = request["steps"]
        self._steps: list[dict[str, float]] = []
        self._tensors: dict[str, dict[str, Any]] = {}
        self._begun_at: float | None = None
        self._spent_secs = 0.0
        self._depth = 0
        self._caught = 0

    # ---- time

    @contextmanager
    def _timing(self) -> Iterator[None]:
        """Adds the time of a block to the step, once for blocks in blocks."""
        self._depth += 1
        begin = time.perf_counter()
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self._spent_secs += time.perf_counter() - begin

    def _safe(self, site: str, function: Callable[..., None]) -> Callable[..., None]:
        call = super()._safe(site, function)

        def timed(*args: Any) -> None:
            with self._timing():
                call(*args)

        return timed

    def _on_gradient(self, name: str, gradient: torch.Tensor) -> None:
        with self._timing():
            super()._on_gradient(name, gradient)

    def save_loss(self, name: str, value: torch.Tensor) -> None:
        """As the other hook does."""
        with self._timing():
            super().save_loss(name, value)

    def save_module_loss(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """As the other hook does."""
        with self._timing():
            super().save_module_loss(module, args, kwargs, output)

    # ---- steps

    def _begin_recording(self) -> None:
        now = time.perf_counter()
        self._end_measured(now)
        if len(self._steps) >= self._steps_wanted:
            self._finish()
        self._begun_at = now
        super()._begin_recording()

    def _end_measured(self, now: float) -> None:
        if self._begun_at is not None:
            self._steps.append({"secs": now - self._begun_at, "hook_secs": self._spent_secs})
        self._spent_secs = 0.0
        self._begun_at = None

    def _finish(self) -> None:
        self._write_report()
        self._caught += 1
        if self._caught > MOST_CAUGHT:
            os._exit(0)
        raise SystemExit(0)

    def _close(self, at_exit: bool) -> None:
        if not self._core.is_closed:
            self._end_measured(time.perf_counter())
            self._guarded("Closing", self._write_report)
        super()._close(at_exit)

    # ---- what there is

    def _save(
        self,
        names: list[str],
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
    ) -> None:
        super()._save(names, tensors, kind)
        for name, tensor in zip(names, tensors, strict=True):
            raw, _, reductions = _core.wanted(self._core, name)
            if not raw and not reductions:
                continue
            begin = time.perf_counter()
            for part, plain in self._recorder.plain(name, tensor):
                if reductions and plain.numel() > 0:
                    _core.reduce(plain.cpu(), reductions)
                if raw:
                    plain.clone()
                self._note(part, plain, time.perf_counter() - begin)

    def _note(self, name: str, tensor: torch.Tensor, secs: float) -> None:
        known = self._tensors.get(name)
        if known is not None:
            known["secs"] = min(known["secs"], secs)
            return
        holding = [c.name for c in self._core.collections.all() if self._holds(c, name)]
        self._tensors[name] = {
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

    def _all_names(self) -> list[str]:
        """Names that could be saved, for those who misspelt one."""
        names = set(self._tensors)
        for root in self._roots:
            module = root.module()
            if module is None:
                continue
            for name, _ in root.parameters(module):
                names |= {name, f"gradient/{name}"}
            for name, _ in root.modules(module):
                names |= {f"{name}_input_0", f"{name}_output_0"}
        return sorted(names)

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
            "models": [root.prefix for root in self._roots],
            "steps": self._steps,
            "collections": collections,
            "tensors": list(self._tensors.values()),
            "names": self._all_names(),
        }
        with open(f"{self._report}.part", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(f"{self._report}.part", self._report)


def _reductions_of(config: Any) -> list[str]:
    plain = [*config.reductions, *config.norms]
    return [*plain, *(f"abs_{name}" for name in [*config.abs_reductions, *config.abs_norms])]
