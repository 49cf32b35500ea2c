"""What happens in a step that is saved: blocks get callbacks, parameters are read at its end.

The callbacks are attached when the step begins and taken off before a step that saves nothing, so
that such steps pay for nothing; a saved step after another finds them in place.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import partial
from typing import Any

from smdebug import _core
from smdebug.model_plan import Plan
from smdebug.mxnet.arrays import arrays_in, is_symbolic
from smdebug.mxnet.blocks import Root, is_loss
from smdebug.mxnet.recorder import Callbacks, Recorder
from smdebug.selection import Selection, Selections

Kind = _core.Kind


class Capture:
    """The tensors of saved steps. Its methods hold the lock of the hook."""

    def __init__(self, core: Any, lock: threading.RLock, callbacks: Callbacks) -> None:
        self._core = core
        self._lock = lock
        self._callbacks = callbacks
        self._selections = Selections()
        self._selection: Selection | None = None  # of the current step
        self._handles: list[Any] = []
        self._attached: list[Plan] = []  # what the callbacks were attached for
        self._has_gradients = False  # of the current step, still in the parameters
        self.roots: list[Root] = []
        self.losses: dict[int, Any] = {}  # registered losses and their handles, by id
        self.recorder = Recorder(core)

    def begin(self) -> None:
        """A step has begun."""
        self.recorder.restart_names()
        self._has_gradients = _autograd("is_recording", default=True)
        if self._core.is_step_wanted:
            self._selection = self._selections.at(self._core)
            self._attach()
        else:
            self.detach()

    def complete(self) -> None:
        """The step ends: its parameters and gradients are those that it has left."""
        if self._core.step < 0 or not self._core.is_step_wanted:
            return
        plans = self._plans()
        pairs = [pair for _, _, plan in plans for pair in plan.parameters()]
        self._save_parameters(pairs, "list_data")
        self._save_gradients(plans)

    def save_gradients(self) -> None:
        """Saves the gradients of this step; the second call in a step does nothing."""
        if self._has_gradients and self._core.is_step_wanted:
            self._save_gradients(self._plans())

    def _save_gradients(self, plans: list[tuple[Root, Any, Plan]]) -> None:
        if not self._has_gradients:
            return
        self._has_gradients = False
        pairs = [pair for _, _, plan in plans for pair in plan.gradients()]
        learned = [(name, p) for name, p in pairs if getattr(p, "grad_req", "null") != "null"]
        self._save_parameters(learned, "list_grad")

    def _save_parameters(self, pairs: list[tuple[str, Any]], getter: str) -> None:
        found: dict[str, Any] = {}
        for name, parameter in pairs:
            try:
                found[name] = getattr(parameter, getter)()[0]  # of the first context
            except RuntimeError as error:  # no value yet, or one that only the store has
                self.recorder.drop(name, str(error))
        self.save(list(found), list(found.values()))

    def save(self, names: list[str], arrays: list[Any], kind: Kind = Kind.automatic) -> None:
        """Hands arrays over; a NaN that is waited for makes the rest of the step a saved one."""
        if not names or not self._core.is_step_wanted:
            return
        self.recorder.save(names, arrays, kind)
        selection = self._selection
        if selection is not None and selection.watches:
            self._selection = self._selections.at(self._core)
            if self._selection is not selection:
                # A NaN was found: the collections that wait for it begin to save at once.
                self._attach()

    # ---- callbacks

    def _plans(self) -> list[tuple[Root, Any, Plan]]:
        selection = self._selections.at(self._core)
        alive = [(root, root.module()) for root in self.roots]
        return [
            (root, block, selection.plan(root, block)) for root, block in alive if block is not None
        ]

    def _attach(self) -> None:
        plans = self._plans()
        wanted = [plan for _, _, plan in plans]
        if len(wanted) == len(self._attached) and all(map(_is, wanted, self._attached)):
            return
        self.detach()
        for root, _, plan in plans:
            for name, block in plan.modules():
                if id(block) in self.losses:
                    continue  # has a callback of its own
                callback = root.callbacks.get(name)
                if callback is None:
                    after = partial(self.after_forward, name)
                    callback = self._callbacks.of_block("A forward", after)
                    root.callbacks[name] = callback
                self._handles.append(block.register_forward_hook(callback))
        self._attached = wanted

    def detach(self) -> None:
        """Takes the callbacks of the step off."""
        handles, self._handles = self._handles, []
        self._attached = []
        for handle in handles:
            handle.detach()

    def after_forward(self, name: str, block: Any, args: Any, output: Any) -> None:
        """After the forward of a block or a loss."""
        if not self._core.is_step_wanted or is_symbolic((args, output)):
            return
        inputs, outputs = arrays_in(args), arrays_in(output)
        with self._lock:
            names = [self.recorder.next_name(f"{name}_input") for _ in inputs]
            given = [self.recorder.next_name(f"{name}_output") for _ in outputs]
            if is_loss(block):
                self.save(names, inputs)
                self.save(given, outputs, Kind.loss)
            else:
                self.save(names + given, inputs + outputs)

    def after_operator(self, name: Any, operator: Any, handle: Any) -> None:
        """After an operator of a hybridised model; the array is ours."""
        mxnet = sys.modules["mxnet"]
        pointer = handle if isinstance(handle, int) else ctypes.cast(handle, ctypes.c_void_p).value
        array = mxnet.nd.NDArray(mxnet.base.NDArrayHandle(pointer), writable=False)
        label = name.decode() if isinstance(name, bytes) else str(name)
        with self._lock:
            self.save([label], [array])


def is_training() -> bool:
    """Whether MXNet runs as it does in training."""
    return _autograd("is_training", default=True)


def _autograd(question: str, default: bool) -> bool:
    autograd = sys.modules.get("mxnet.autograd")
    return default if autograd is None else bool(getattr(autograd, question)())


def _is(one: Any, other: Any) -> bool:
    return one is other
