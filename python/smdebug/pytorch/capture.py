"""What happens in a step that is saved: parameters are offered, modules and gradients get callbacks.

The callbacks are attached when the step begins and taken off before a step that saves nothing, so
that such steps pay for nothing; a saved step after another finds them in place.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import nn

from smdebug import _core
from smdebug.collection import CollectionKeys
from smdebug.model_plan import Plan
from smdebug.pytorch.attachment import Attachment
from smdebug.pytorch.call_site import Site, find_call_site, module_of, text_of
from smdebug.pytorch.callbacks import Callbacks, is_replay
from smdebug.pytorch.eager import EagerSteps
from smdebug.pytorch.names import Root, is_sharded
from smdebug.pytorch.optimizer import Update
from smdebug.pytorch.recorder import Names, Recorder
from smdebug.pytorch.tensors import PLAIN_TENSORS, inputs_of, is_lazy, loss_in, tensors_in
from smdebug.selection import Selection, Selections

# Saved only if somebody asks for this collection.
OPTIMIZER_STATE = CollectionKeys.OPTIMIZER_VARIABLES
STATE_PREFIX = "optimizer/"


class Capture:
    """The tensors of saved steps, found by callbacks. Its methods hold the lock of the hook."""

    def __init__(self, core: Any, lock: _core.HookLock, callbacks: Callbacks) -> None:
        self._core = core
        self._lock = lock
        self._callbacks = callbacks
        self._selections = Selections()
        self._selection: Selection | None = None  # of the current step
        self._attachment = Attachment()
        self._has_updates_inside = False
        self._parameter_names: list[str] = []
        self._tickets = _core.Tickets([])  # for these names
        self._has_lazy = False  # parameters that get their shape in this forward
        self._sites: dict[str, Site | None] = {}  # of the modules of this step
        self._first_sites: dict[str, Site | None] = {}  # of modules that ran on a device
        self.roots: list[Root] = []
        self.recorder = Recorder(core)
        self.recorder.surveys.backward_ended = self._backward_ended
        self._direct = callbacks.direct_path(
            lock, self.recorder.indices, self._note_call, self.recorder.surveys.direct
        )
        self.eager = EagerSteps(core)
        self.gradients_of_updates = False  # as the optimizer sees them
        self.compiled_modules = False
        self.sees_all = False  # every tensor goes through save()
        self.update_seen = True

    @property
    def sites(self) -> dict[str, Site | None]:
        """Of the modules of this step; emptied when one begins."""
        return self._sites

    def take_rest(self) -> int:
        """How many of the next steps with the same collections need no begin()."""
        if self._selection is None or not self._core.is_step_wanted:
            return 0
        return self._selection.take_rest()

    @property
    def is_attached(self) -> bool:
        """Whether end() has something to do."""
        return not self._attachment.is_empty or self.recorder.has_pending

    def begin(self, early: list[tuple[str, torch.Tensor]]) -> None:
        """A step has begun; `early` are values that were recorded before the first one."""
        self.recorder.restart_names()
        self._sites.clear()
        for name, value in early:
            self.save([self.recorder.next_name(f"{name}_output")], [value])
        if self._core.is_step_wanted:
            self._selection = None
            self._offer_all()
            self._selection = self._selections.at(self._core)
        else:
            self.detach()
            self.eager.end()  # the forward before failed

    def end(self) -> None:
        """The step ends, and nobody knows when another one begins."""
        self.detach()
        self.complete()

    def complete(self) -> None:
        """Completes what the step that ends has queued; begin() follows."""
        self.recorder.finish()
        if self._core.first_bad_tensor is not None:
            self._locate(self._core.first_bad_tensor)

    def _locate(self, name: str) -> None:
        """Says of the first bad tensor where it comes from, as far as that is known."""
        module = module_of(name)
        site = self._sites.get(module) or self._first_sites.get(module)
        note = ""
        if name.startswith("gradient/"):
            note = "Gradients are seen in the order of backward; a call line is not known."
        elif site is None:
            note = "It was so before the forward of this step."
        elif any(_is_compiled(root, root.module()) for root in self.roots):
            note = "The model is compiled: its inner modules are not seen, only the whole."
        file, line = site or ("", 0)
        text = text_of(site) if site else ""
        self._core.set_call_site(module, file, line, text, note)

    def detach(self) -> None:
        """Takes the callbacks of the step off."""
        self._attachment.remove()

    def save(
        self,
        names: Names,
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
        in_backward: bool = False,
    ) -> None:
        """Hands tensors over; a NaN that is waited for makes the rest of the step a saved one."""
        if not names or not self._core.is_step_wanted:
            return
        self.recorder.save(names, tensors, kind, in_backward)
        selection = self._selection
        if selection is not None and selection.watches:
            self._selection = None
            if self._selections.at(self._core) is not selection:
                # A NaN was found: the collections that wait for it begin to save at once.
                self.detach()
                self._offer_all()
            self._selection = self._selections.at(self._core)

    # ---- attaching

    def add(self, root: Root) -> None:
        """A model that was just registered takes part from the next step on."""
        self.roots.append(root)
        self._selections.forget()

    def _offer_all(self) -> None:
        selection = self._selections.at(self._core)
        # What waits for a NaN must see every tensor.
        self._direct.enabled = not (selection.watches or self.sees_all)
        if selection.is_resting():
            self.detach()
            return
        plans = self._plans(selection, self.roots)
        if not self._attachment.fits([plan for _, _, plan in plans]):
            self.detach()
            self._attach(plans)
        if not self._offer_parameters(plans) and self._attachment.is_empty and not self._has_lazy:
            selection.rest()

    @staticmethod
    def _plans(selection: Selection, roots: list[Root]) -> list[tuple[Root, nn.Module, Plan]]:
        alive = [(root, root.module()) for root in roots]
        return [
            (root, module, selection.plan(root, module))
            for root, module in alive
            if module is not None
        ]

    def _attach(self, plans: list[tuple[Root, nn.Module, Plan]]) -> None:
        for root, module, plan in plans:
            for name, parameter in plan.gradients():
                self._attach_gradient(name, parameter)
            self._attach_modules(root, module, plan)
            # Whether inner modules of a compiled model are seen may be another question each time.
            if not self._has_lazy and not (self.compiled_modules and _is_compiled(root, module)):
                self._attachment.plans.append(plan)

    def _offer_parameters(self, plans: list[tuple[Root, nn.Module, Plan]]) -> bool:
        """Whether there were any."""
        pairs = [pair for _, _, plan in plans for pair in plan.parameters()]
        names = [name for name, _ in pairs]
        if names != self._parameter_names:
            self._parameter_names, self._tickets = names, _core.Tickets(names)
        self.save(self._tickets, [parameter for _, parameter in pairs])
        return bool(pairs)

    def _attach_gradient(self, name: str, parameter: torch.Tensor) -> None:
        if is_lazy(parameter):
            self._has_lazy = True
            self._direct.enabled = False  # the callback of the root has more to do
            return
        self._attachment.gradient_names[id(parameter)] = name
        if self.gradients_of_updates:
            return
        if not (parameter.requires_grad and parameter.is_leaf):
            self._attachment.wait_for(parameter)
            return
        # Whoever is told of gradients one by one may use them up before backward ends.
        if getattr(parameter, "_post_accumulate_grad_hooks", None):
            self._has_updates_inside = True
            self._direct.holds = False
        if is_sharded(parameter):
            after = partial(self._after_accumulation, name)
            self._attachment.add(parameter.register_post_accumulate_grad_hook(after))
        else:
            slow = partial(self._on_gradient, name)
            callback = _core.GradientCallback(self._direct, name, slow)
            self._attachment.add(parameter.register_hook(callback))

    def _attach_modules(self, root: Root, module: nn.Module, plan: Plan) -> None:
        only_root = self._only_root(root, module)
        wanted = list(plan.modules())
        if self._has_lazy and all(inner is not module for _, inner in wanted):
            wanted.append((root.prefix, module))
        for name, inner in wanted:
            is_root = inner is module
            if only_root and not is_root:
                continue
            callback = root.callbacks.get(name)
            if callback is None:
                compiled = is_root and _is_compiled(root, module)
                callback = root.callbacks[name] = self._forward_callback(name, is_root, compiled)
            try:
                self._attachment.add(inner.register_forward_hook(callback, with_kwargs=True))
            except RuntimeError:  # TorchScript
                continue

    def _forward_callback(self, name: str, is_root: bool, is_compiled: bool) -> Any:
        after = partial(self._after_forward, name, is_root)
        if is_compiled:
            return self._callbacks.of_module("A forward", after)
        slow = self._callbacks.safe("A forward", after)
        return _core.ModuleCallback(self._direct, name, PLAIN_TENSORS, slow)

    def loss_callback(self, name: str) -> Any:
        """A callback for after the forward of a loss."""
        slow = self._callbacks.safe("A loss", partial(self.after_loss, name))
        return _core.ModuleCallback(self._direct, name, PLAIN_TENSORS, slow, _core.Kind.loss)

    def _note_call(self, module_name: str) -> None:
        """The first bad tensor belongs to a module that is being called."""
        self._sites[module_name] = self._first_sites[module_name] = find_call_site()

    def _only_root(self, root: Root, module: nn.Module) -> bool:
        """Whether the inner modules of a compiled model are left alone."""
        if not _is_compiled(root, module):
            return False
        if not self.compiled_modules or not self._core.is_step_saved:
            return True
        if not self.eager.is_active:
            # The mode has changed since the last forward: too late, except for a wrapper.
            if type(module).__name__ != "OptimizedModule":
                return True
            self.eager.begin()
        return False

    def _attach_late(self) -> None:
        """Lazy parameters have a value and take callbacks only after their first forward."""
        selection = self._selections.at(self._core)
        known = self._attachment.gradient_names
        for root in self.roots:
            module = root.module()
            for name, parameter in root.parameters(module) if module is not None else ():
                if id(parameter) not in known and selection.holds(f"gradient/{name}"):
                    self._attach_gradient(f"gradient/{name}", parameter)

    # ---- callbacks

    def _after_forward(
        self, name: str, is_root: bool, module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        if not self._core.is_step_wanted or is_replay():
            return
        inputs = inputs_of(module, args, kwargs)
        outputs = list(tensors_in(output))
        loss = loss_in(output) if is_root else None
        with self._lock:
            self._sites[name] = find_call_site()
            names = [self.recorder.next_name(f"{name}_input") for _ in inputs]
            names += [self.recorder.next_name(f"{name}_output") for _ in outputs]
            tensors = inputs + outputs
            if loss is not None:
                at = next((i for i, t in enumerate(tensors) if t is loss), None)
                if at is not None:
                    self.save([names.pop(at)], [tensors.pop(at)], _core.Kind.loss)
            self.save(names, tensors)
            if is_root and self._has_lazy:
                self._has_lazy = False
                self._attach_late()

    def after_loss(self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        """After the forward of a loss."""
        if not self._core.is_step_wanted or is_replay():
            return
        inputs = inputs_of(module, args, kwargs)
        outputs = list(tensors_in(output))
        with self._lock:
            self._sites[name] = find_call_site()
            self.save([self.recorder.next_name(f"{name}_input") for _ in inputs], inputs)
            names = [self.recorder.next_name(f"{name}_output") for _ in outputs]
            self.save(names, outputs, _core.Kind.loss)

    def after_compiled_forward(self, *args: Any) -> None:
        """Settles whether the next forward is compiled."""
        if not is_replay():
            self.eager.prepare()

    def _on_gradient(self, name: str, gradient: torch.Tensor) -> None:
        if self._callbacks.are_off:
            return
        with self._lock:
            self._core.enter_cost()
            try:
                self._callbacks.run(
                    "Saving a gradient",
                    self.save,
                    [name],
                    [gradient],
                    _core.Kind.automatic,
                    not self._has_updates_inside,
                )
            finally:
                self._core.leave_cost()

    def _backward_ended(self) -> None:
        with self._lock:
            self._core.enter_cost()
            try:
                self._callbacks.run("Saving gradients", self.recorder.release_held)
            finally:
                self._core.leave_cost()

    def _after_accumulation(self, name: str, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            self._on_gradient(name, parameter.grad)

    # ---- what the watch of the optimizers calls

    def wants_gradients(self) -> bool:
        """Whether an update shows gradients that are wanted."""
        wanted = self.gradients_of_updates and bool(self._attachment.gradient_names)
        return wanted and not self._callbacks.are_off

    def on_update(self, update: Update) -> None:
        """Gradients as an optimizer sees them; none of an update that it is going to skip."""
        names = self._attachment.gradient_names
        known = [(names[id(p)], g) for p, g in update.gradients if id(p) in names]
        if not known:
            return
        with self._lock, self.recorder.surveys.unless(update.found_inf) as is_known_later:
            found = update.found_inf
            if found is not None and not is_known_later and bool(found.item()):
                return
            self.save([name for name, _ in known], update.unscaled([g for _, g in known]))

    def wants_state(self) -> bool:
        """Whether what an optimizer keeps of each parameter is saved at this step."""
        observed = self._core.is_step_wanted and self._core.is_collection_observed(OPTIMIZER_STATE)
        return observed and not self._callbacks.are_off

    def on_updated(self, state: list[tuple[nn.Parameter, str, torch.Tensor]]) -> None:
        """An update is over; what the optimizer keeps now, as (parameter, key, value)."""
        self.update_seen = True
        if not state:
            return
        names = {
            id(parameter): name
            for root in self.roots
            if (module := root.module()) is not None
            for name, parameter in root.parameters(module)
        }
        known = [
            (f"{STATE_PREFIX}{names[id(p)]}/{key}", v) for p, key, v in state if id(p) in names
        ]
        with self._lock:
            labels, values = [name for name, _ in known], [value for _, value in known]
            self.save(labels, values, _core.Kind.optimizer_state)

    def guarded(self, site: str, *call: Any) -> None:
        """Calls a function with arguments; a failure goes through the guard."""
        self._callbacks.run(site, *call)


def _is_compiled(root: Root, module: nn.Module | None) -> bool:
    """Callbacks on inner modules would break the model's graph into pieces."""
    return (
        root.begins_step.is_compiled
        or type(module).__name__ == "OptimizedModule"
        or getattr(module, "_compiled_call_impl", None) is not None
    )
