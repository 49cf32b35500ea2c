"""The hook of scripts that do not know of it: models and losses are found while they run."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import torch
from torch import nn

from smdebug import _core, automatic
from smdebug.exceptions import SMDebugValueError
from smdebug.pytorch.capture import Capture
from smdebug.pytorch.hook import GRADIENT_SOURCES, STEP_ON, Hook
from smdebug.pytorch.names import Root
from smdebug.pytorch.optimizer import OptimizerWatch
from smdebug.pytorch.recorder import Names
from smdebug.pytorch.worker import out_dir_of_attempt

# FrameworkParameters of the JSON file, with their types.
OPTIONS: dict[str, type] = {
    "auto_mode": bool,
    "canonical_names": bool,
    "compiled_modules": bool,
    "gradient_source": str,
    "sparse_dense_limit": int,
    "step_on": str,
}
# How far back a number is followed to a loss that it was scaled from.
MOST_OPERATIONS = 16
_MARK = "smdebug.loss"


class AutomaticCapture(Capture):
    """Marks losses, so that a number that was computed from one is not taken for another."""

    def join(self, root: Root) -> None:
        """A model that was just registered takes part in a step that has begun."""
        if root is self.roots[0] or not self._core.is_step_wanted:
            return
        plans = self._plans(self._selections.at(self._core), [root])
        self._attach(plans)
        self._offer_parameters(plans)

    def loss_callback(self, name: str) -> Any:
        """As for other hooks, and every loss is marked."""
        return self._callbacks.of_module("A loss", partial(self.after_loss, name))

    def save(
        self,
        names: Names,
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
        in_backward: bool = False,
    ) -> None:
        """As for other hooks."""
        if kind == _core.Kind.loss:
            for tensor in tensors:
                if tensor.grad_fn is not None:
                    tensor.grad_fn.metadata[_MARK] = self._core.step
        super().save(names, tensors, kind, in_backward)

    def is_new_loss(self, value: torch.Tensor) -> bool:
        """Whether this number is neither a loss of this step nor one that was only scaled."""
        if self._core.is_closed or not self._core.is_step_wanted:
            return False
        node: Any = value.grad_fn
        for _ in range(MOST_OPERATIONS):
            if node is None:
                break
            if node.metadata.get(_MARK) == self._core.step:
                return False
            before = [function for function, _ in node.next_functions if function is not None]
            node = before[0] if len(before) == 1 else None
        return value.requires_grad


class AutomaticHook(automatic.GivingWay, Hook):
    """Modes follow the model. A script that asks for the hook of the process may use it, too."""

    _capture: AutomaticCapture

    def _set_up(self) -> None:
        super()._set_up()
        self._use(AutomaticCapture(self._core, self._lock, self._callbacks))

    def _use(self, capture: AutomaticCapture) -> None:
        self._capture = capture
        self._recorder = capture.recorder

    def set_option(self, name: str, value: Any) -> None:
        """Sets an argument of Hook() that a JSON file has given, before the first model."""
        choices: Any = {"step_on": STEP_ON, "gradient_source": GRADIENT_SOURCES}.get(name)
        if choices is not None and value not in choices:
            raise SMDebugValueError(
                f"FrameworkParameters.{name} must be {' or '.join(map(repr, choices))}, not {value!r}."
            )
        if name == "sparse_dense_limit":
            self._recorder.sparse_dense_limit = value
        elif choices is None:
            setattr(self, name, value)
        elif name == "step_on":
            self._step_on = value
        else:
            self._capture.gradients_of_updates = value == "optimizer"
        if value == "optimizer" and self._watch is None:
            self._watch = OptimizerWatch(self._capture)

    @property
    def is_closed(self) -> bool:
        """Whether nothing is recorded any more."""
        return self._core.is_closed

    def leave_steps_to_caller(self) -> None:
        """From now on forwards do not begin steps."""
        with self._lock:
            self._explicit_steps = True
            self._arm()

    # ---- models

    def knows(self, module: nn.Module) -> bool:
        """Whether the module is recorded, by itself or as a part of a model."""
        # Wrappers have no name of their own if names are canonical.
        named = self._names.find(module) is not None
        return named or any(root.module() is module for root in self._capture.roots)

    def is_first(self, module: nn.Module) -> bool:
        """Whether this model counts the steps."""
        roots = self._capture.roots
        return bool(roots) and roots[0].module() is module

    def add_model(self, module: nn.Module, args: Any = None) -> None:
        """Records a model that is about to run; with `args`, its callbacks miss this forward."""
        with self._lock:
            for part in [root.module() for root in self._capture.roots]:
                if part is not None and any(inner is part for inner in module.modules()):
                    self.unregister(part)  # a part of the model has run before the model
            super().register_module(module)
            root = self._capture.roots[-1]
            self._guarded("A model", self._capture.join, root)
        if args is not None:
            root.begins_step(module, args)

    def register_module(self, module: nn.Module) -> None:
        """As Hook does; a model that was found already is no error."""
        if not isinstance(module, nn.Module) or not self.knows(module):
            super().register_module(module)

    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """As Hook does, but for losses that are found anyway."""
        known = isinstance(loss_module, nn.modules.loss._Loss) or self.knows(loss_module)
        if not isinstance(loss_module, nn.Module) or not known:
            super().register_loss(loss_module)

    # ---- losses

    def add_loss(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Records a loss of the script's own that has just been called."""
        super().register_loss(module)
        self.save_module_loss(module, args, kwargs, output)

    def save_module_loss(self, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """Saves what a loss took and gave."""
        name = type(module).__name__
        if not self._core.is_closed:
            self._save_counted(self._capture.after_loss, name, module, args, kwargs, output)

    def save_loss(self, name: str, value: torch.Tensor) -> None:
        """Saves a loss as `<name>_output_<i>`."""
        if self._core.is_closed or not self._core.is_step_wanted:
            return
        with self._lock:
            label = self._recorder.next_name(f"{name}_output")
            self._save_counted(self._capture.save, [label], [value], _core.Kind.loss)

    def _save_counted(self, *call: Any) -> None:
        self._core.enter_cost()
        try:
            self._guarded("A loss", *call)
        finally:
            self._core.leave_cost()

    def is_new_loss(self, value: torch.Tensor) -> bool:
        """Whether this number is neither a loss of this step nor one that was only scaled."""
        return self._capture.is_new_loss(value)


def make_hook() -> AutomaticHook:
    """The hook that the job's JSON file describes; its messages keep off the script's output."""
    kind = AutomaticHook
    if "SMDEBUG_PLAN" in os.environ:
        from smdebug.pytorch.rehearsal import Rehearsal

        kind = Rehearsal
    return automatic.make_hook(kind, OPTIONS, out_dir_of_attempt)
