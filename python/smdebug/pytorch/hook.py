"""The hook for PyTorch: finds the tensors of registered models by itself."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn

from smdebug import _core
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from smdebug.guard import Guard
from smdebug.hook import BaseHook, InertCore, StepScope
from smdebug.logger import get_logger
from smdebug.pytorch.collection import CollectionManager
from smdebug.pytorch.eager import EagerSteps
from smdebug.pytorch.names import ModuleNames, Root, is_sharded
from smdebug.pytorch.optimizer import OptimizerWatch
from smdebug.pytorch.recorder import Recorder
from smdebug.pytorch.selection import Selection, Selections
from smdebug.pytorch.tensors import (
    SPARSE_DENSE_LIMIT,
    inputs_of,
    is_lazy,
    loss_in,
    tensors_in,
)
from smdebug.pytorch.worker import find_worker, out_dir_of_attempt

STEP_ON = ("forward", "optimizer")
GRADIENT_SOURCES = ("backward", "optimizer")

_graph_task_id: Callable[[], int] = getattr(torch._C, "_current_graph_task_id", lambda: -1)
# Keeps the compiler from looking into our callbacks.
_set_eval_frame: Any = getattr(
    getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None), "set_eval_frame", None
)


def _is_replay() -> bool:
    """A forward that is no forward: recomputation in backward, tracing, exporting."""
    return _graph_task_id() != -1 or torch._C._is_tracing() or torch.compiler.is_exporting()


class Hook(BaseHook):
    """Records models: register_module() once, and every forward begins a step.

    `step_on="optimizer"` begins a step at the first forward after an update. `auto_mode` takes the
    mode from model.train() and model.eval(). `gradient_source="optimizer"` saves gradients as the
    optimizer sees them. `canonical_names` leaves wrappers out of names. `compiled_modules` runs
    saved steps of compiled models without compilation, so that inner modules are seen.
    """

    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = [
        ("all", [], False),
        ("default", [], False),
        ("weights", ["^(?!gradient).*weight"], False),
        ("biases", ["^(?!gradient).*bias"], False),
        ("gradients", ["^gradient"], False),
        ("losses", ["[Ll]oss_(?!input).*output"], True),
    ]
    default_collections: ClassVar[list[str]] = ["losses"]
    manager_class: ClassVar[type[PlainCollectionManager]] = CollectionManager

    def __init__(
        self,
        out_dir: str | os.PathLike[str] | None = None,
        export_tensorboard: bool = False,
        tensorboard_dir: str | os.PathLike[str] | None = None,
        dry_run: bool = False,
        reduction_config: _core.ReductionConfig | None = None,
        save_config: Any = None,
        include_regex: Any = None,
        include_collections: Any = None,
        save_all: bool = False,
        include_workers: str = "one",
        *,
        step_on: str = "forward",
        auto_mode: bool = False,
        gradient_source: str = "backward",
        canonical_names: bool = False,
        compiled_modules: bool = False,
        sparse_dense_limit: int = SPARSE_DENSE_LIMIT,
        **options: Any,
    ) -> None:
        _check_choice(step_on, "step_on", STEP_ON)
        _check_choice(gradient_source, "gradient_source", GRADIENT_SOURCES)
        if out_dir is not None:
            out_dir = out_dir_of_attempt(os.fspath(out_dir))
        super().__init__(
            out_dir,
            export_tensorboard,
            tensorboard_dir,
            dry_run,
            reduction_config,
            save_config,
            include_regex,
            include_collections,
            save_all,
            include_workers,
            **options,
        )
        self._step_on = step_on
        self._gradient_source = gradient_source
        self.auto_mode = auto_mode
        self.canonical_names = canonical_names
        self.compiled_modules = compiled_modules
        self._recorder.sparse_dense_limit = sparse_dense_limit
        self._watch_optimizers()

    def _adopt(self, core: _core.Hook, manager: PlainCollectionManager) -> None:
        super()._adopt(core, manager)
        self._set_up()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._set_up()

    def _set_up(self) -> None:
        self._step_on, self._gradient_source = STEP_ON[0], GRADIENT_SOURCES[0]
        self._auto_mode = self.canonical_names = self.compiled_modules = False
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._guard = Guard(self._core.is_strict)
        self._names = ModuleNames()
        if isinstance(self._collection_manager, CollectionManager):
            self._collection_manager._use_names(self._names)
        self._selections = Selections()
        self._selection: Selection | None = None  # of the current step
        self._recorder = Recorder(self._core)
        self._roots: list[Root] = []
        self._loss_handles: list[tuple[nn.Module, Any]] = []
        self._handles: list[Any] = []  # of the step being saved
        self._gradient_names: dict[int, str] = {}
        self._early: list[tuple[str, torch.Tensor]] = []
        self._explicit_steps = False
        self._has_lazy = False  # parameters that get their shape in this forward
        self._eager = EagerSteps(self._core)
        self._update_seen = True
        self._devices_seen: set[torch.device] = set()
        self._mode_given_at: tuple[bool, bool] | None = None
        self._training: tuple[bool, bool] | None = None
        self._watch: OptimizerWatch | None = None

    def _plumbing(self, manager: PlainCollectionManager) -> dict[str, Any]:
        # Not a method: the core must not keep the hook alive.
        return super()._plumbing(manager) | {"identify": find_worker}

    @property
    def collection_manager(self) -> PlainCollectionManager:
        return self._collection_manager

    @collection_manager.setter
    def collection_manager(self, manager: PlainCollectionManager) -> None:
        BaseHook.collection_manager.__set__(self, manager)  # type: ignore[attr-defined]
        if isinstance(manager, CollectionManager):
            manager._use_names(self._names)

    @property
    def dropped_tensors(self) -> dict[str, int]:
        """How often a tensor could not be saved, by name."""
        return dict(self._recorder.dropped)

    # ---- registration

    def register_module(self, module: nn.Module) -> None:
        """Records a model from its next forward on. The first model registered counts the steps."""
        if not isinstance(module, nn.Module):
            raise SMDebugTypeError(f"A torch.nn.Module was expected, not {module!r}.")
        if isinstance(self._core, InertCore):
            return
        self._check_open()
        with self._lock:
            root = self._names.add(module, self.canonical_names)
            root.begins_step = self._step_callback(root, module)
            try:
                handle = module.register_forward_pre_hook(root.begins_step, prepend=True)
                root.handles.append(handle)
            except RuntimeError:
                get_logger().warning(
                    f"{root.prefix} is a TorchScript module: its parameters and gradients are "
                    "recorded, its inputs and outputs cannot be. Begin each step with hook.step()."
                )
            self._roots.append(root)
            if self.compiled_modules and len(self._roots) == 1 and root.handles:
                after = self._callback("A forward", self._after_compiled_forward)
                root.handles.append(module.register_forward_hook(after))
                self._eager.prepare()
            self._arm()

    register_hook = register_module

    def register_loss(self, loss_module: nn.Module) -> None:
        """Records inputs and outputs of a loss; the outputs are in the collection `losses`."""
        if not isinstance(loss_module, nn.Module):
            raise SMDebugTypeError(f"A torch.nn.Module was expected, not {loss_module!r}.")
        if isinstance(self._core, InertCore):
            return
        self._check_open()
        with self._lock:
            name = self._names.add_loss(loss_module)
            after = self._callback("A loss", partial(self._after_loss, name))
            handle = loss_module.register_forward_hook(after, with_kwargs=True)
            self._loss_handles.append((loss_module, handle))

    def _check_open(self) -> None:
        if self._core.is_closed:
            raise SMDebugRuntimeError("The hook is closed: nothing can be registered any more.")

    def unregister(self, module: nn.Module) -> None:
        """Takes all callbacks off a registered model or loss."""
        with self._lock:
            roots = [root for root in self._roots if root.module() is module]
            losses = [handle for loss, handle in self._loss_handles if loss is module]
            if not roots and not losses:
                raise SMDebugValueError(f"{type(module).__name__} is not registered.")
            self._detach()
            self._eager.end()
            for handle in [handle for root in roots for handle in root.handles] + losses:
                handle.remove()
            self._roots = [root for root in self._roots if root not in roots]
            self._arm()
            self._loss_handles = [pair for pair in self._loss_handles if pair[0] is not module]
            self._names.remove(module)

    def add_to_collection(self, collection_name: str, arg: Any) -> None:
        """Adds a tensor name, a module's outputs, a parameter, or a list of these."""
        collection: Any = self.get_collection(collection_name)
        items = arg if isinstance(arg, list | tuple | set) else [arg]
        for item in items:
            if isinstance(item, nn.Module):
                collection.add_module_tensors(item)
            elif isinstance(item, torch.Tensor):
                collection.add_tensor_name(self._name_of(item))
            else:
                super().add_to_collection(collection_name, item)

    def _name_of(self, parameter: torch.Tensor) -> str:
        for root in self._roots:
            module = root.module()
            for name, known in root.parameters(module) if module is not None else ():
                if known is parameter:
                    return name
        raise SMDebugValueError("The tensor is no parameter of a registered module.")

    # ---- saving by hand

    def record_tensor_value(self, tensor_name: str, tensor_value: torch.Tensor) -> None:
        """Saves a value, such as that of a functional loss, as `<name>_output_<i>`."""
        if not isinstance(tensor_value, torch.Tensor):
            raise SMDebugTypeError(f"A torch.Tensor was expected, not {tensor_value!r}.")
        if self._core.is_closed or os.getpid() != self._pid:
            return
        with self._lock:
            if self._core.step < 0:
                self._early.append((tensor_name, tensor_value.detach().clone()))
                self._arm()
                return
            name = self._recorder.next_name(f"{tensor_name}_output")
            self._guarded("Saving a value", self._save, [name], [tensor_value])

    def save(self, name: str, tensor: Any) -> None:
        """Offers a tensor: it is saved as the collections that hold its name want it."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if isinstance(tensor, torch.Tensor):
                self._save([name], [tensor])
            else:
                super().save(name, tensor)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | list[str] = "default"
    ) -> None:
        """Saves a tensor by hand: a tensor, an array, a number, strings or a list of these."""
        if os.getpid() != self._pid:
            return
        with self._lock:
            if not isinstance(tensor_value, torch.Tensor):
                super().save_tensor(tensor_name, tensor_value, collections_to_write)
                return
            if self._is_idle_for(collections_to_write):
                return
            for name, plain in self._recorder.plain(tensor_name, tensor_value):
                super().save_tensor(name, plain.cpu(), collections_to_write)

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Saves a number under `scalar/<name>` at the current step, whatever the save config says."""
        if os.getpid() != self._pid:
            return
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu()
        with self._lock:
            super().save_scalar(name, value, sm_metric, timestamp)

    def _is_idle_for(self, collections: str | list[str]) -> bool:
        """Whether nothing would be saved, so that a tensor need not come from its device."""
        if self._core.step < 0 or self._core.is_closed or self._core.is_step_wanted:
            return False
        names = [collections] if isinstance(collections, str) else list(collections)
        return not self._core.wants_tensor(names)

    # ---- steps

    def set_mode(self, mode: _core.ModeKeys) -> None:
        """The mode of the steps that begin from now on."""
        super().set_mode(mode)
        self._mode_given_at = self._training

    def begin_step(self, step: int | None = None) -> StepScope:
        """Begins a step by hand; from then on forwards do not begin steps."""
        with self._lock:
            self._explicit_steps = True
            self._end_attached()
            scope = super().begin_step(step)
            self._begun()
        return scope

    def end_step(self) -> None:
        """Ends the current step now, so that readers see it."""
        with self._lock:
            self._end_attached()
            super().end_step()

    def _step_callback(self, root: Root, module: nn.Module) -> _core.StepCallback:
        parts = {
            "lock": self._lock,
            "slow": self._safe("Beginning a step", partial(self._before_forward, root)),
            "begun": self._safe("Beginning a step", self._begun),
            "failed": self._safe("Beginning a step", _raise),
            "task_id": _graph_task_id,
            "tracing": torch._C._is_tracing,
            "compiler": torch.compiler,
            "isolate": _set_eval_frame,
        }
        return _core.StepCallback(self._core, module, parts)

    def _arm(self) -> None:
        """Lets the core begin steps by itself as long as nothing else is to be done."""
        fast = not (
            self._core.step < 0
            or self._explicit_steps
            or self._auto_mode
            or self._step_on == "optimizer"
            or self._early
            or self._handles
            or self._gradient_names
            or self._recorder.has_pending
            or (self._rule_watch is not None and self._rule_watch.requests)
        )
        for root in self._roots:
            root.begins_step.fast = fast and root is self._roots[0]

    def _has_request(self) -> None:
        self._arm()

    @property
    def auto_mode(self) -> bool:
        """Whether the mode follows model.train() and model.eval()."""
        return self._auto_mode

    @auto_mode.setter
    def auto_mode(self, auto_mode: bool) -> None:
        self._auto_mode = auto_mode
        self._arm()

    def _before_forward(self, root: Root, module: nn.Module, args: Any) -> None:
        """Before a forward of a root, unless the core can do all that is to be done."""
        if self._explicit_steps or self._roots[0] is not root or _is_replay():
            return
        if module is not root.module() and not getattr(module, "_is_replica", False):
            return
        with self._lock:
            if not self._step_is_due(module, args):
                return
            if self.auto_mode:
                self._follow_mode(module)
            self._end_attached()
            super().begin_step()
            self._begun()

    def _step_is_due(self, module: nn.Module, args: Any) -> bool:
        if self._step_on == "optimizer":
            due = self._update_seen or not torch.is_grad_enabled()
            self._update_seen = False
            if not due:
                return False
        if not getattr(module, "_is_replica", False):
            return True
        # Replicas run side by side, one per device: the first of them begins the step.
        device = next((t.device for t in tensors_in(args)), torch.device("cpu"))
        due = not self._devices_seen or device in self._devices_seen
        self._devices_seen = {device} if due else self._devices_seen | {device}
        return due

    def _follow_mode(self, module: nn.Module) -> None:
        training = (module.training, torch.is_grad_enabled())
        if training == self._training and self._mode_given_at is not None:
            return
        if self._training is None and self._core.mode != _core.ModeKeys.GLOBAL:
            self._mode_given_at = training  # chosen before the first forward
        else:
            self._mode_given_at = None
            self._core.mode = _core.ModeKeys.TRAIN if all(training) else _core.ModeKeys.EVAL
        self._training = training

    def _begun(self) -> None:
        """Offers the parameters of a step that saves something and attaches the callbacks."""
        self._begin_recording()
        self._arm()

    def _begin_recording(self) -> None:
        self._recorder.restart_names()
        for name, value in self._take_early():
            self._save([self._recorder.next_name(f"{name}_output")], [value])
        if self._core.is_step_wanted:
            self._selection = None
            self._offer_all()
            self._selection = self._selections.at(self._core)
        else:
            self._eager.end()  # the forward before failed

    def _offer_all(self) -> None:
        selection = self._selections.at(self._core)
        names: list[str] = []
        parameters: list[torch.Tensor] = []
        for root in self._roots:
            module = root.module()
            if module is None:
                continue
            for name, parameter in root.parameters(module):
                if selection.holds(name):
                    names.append(name)
                    parameters.append(parameter)
                if selection.holds(f"gradient/{name}"):
                    self._attach_gradient(f"gradient/{name}", parameter)
            self._attach_modules(root, module, selection)
        self._save(names, parameters)

    def _take_early(self) -> list[tuple[str, torch.Tensor]]:
        early, self._early = self._early, []
        return early

    # ---- callbacks of a saved step

    def _attach_gradient(self, name: str, parameter: torch.Tensor) -> None:
        if is_lazy(parameter):
            self._has_lazy = True
            return
        self._gradient_names[id(parameter)] = name
        if self._gradient_source == "optimizer" or not (
            parameter.requires_grad and parameter.is_leaf
        ):
            return
        if is_sharded(parameter):
            after = partial(self._after_accumulation, name)
            self._handles.append(parameter.register_post_accumulate_grad_hook(after))
        else:
            self._handles.append(parameter.register_hook(partial(self._on_gradient, name)))

    def _attach_modules(self, root: Root, module: nn.Module, selection: Any) -> None:
        only_root = self._only_root(root, module)
        for name, inner in root.modules(module):
            is_root = inner is module
            wanted = selection.holds_tensors_of(name) or (is_root and self._has_lazy)
            if not wanted or (only_root and not is_root):
                continue
            callback = root.callbacks.get(name)
            if callback is None:
                after = partial(self._after_forward, name, is_root)
                callback = root.callbacks[name] = self._callback("A forward", after)
            try:
                self._handles.append(inner.register_forward_hook(callback, with_kwargs=True))
            except RuntimeError:  # TorchScript
                continue

    def _only_root(self, root: Root, module: nn.Module) -> bool:
        """Whether the inner modules of a compiled model are left alone."""
        if not _is_compiled(root, module):
            return False
        if not self.compiled_modules:
            return True
        if not self._eager.is_active:
            # The mode has changed since the last forward: too late, except for a wrapper.
            if type(module).__name__ != "OptimizedModule":
                return True
            self._eager.begin()
        return False

    def _after_compiled_forward(self, *args: Any) -> None:
        """Settles whether the next forward is compiled."""
        if not _is_replay():
            self._eager.prepare()

    def _detach(self) -> None:
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()
        self._gradient_names.clear()

    def _end_attached(self) -> None:
        """Completes what the step that ends has queued, and takes its callbacks off."""
        self._detach()
        self._recorder.finish()

    def _after_forward(
        self, name: str, is_root: bool, module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        if not self._core.is_step_wanted or _is_replay():
            return
        inputs = inputs_of(module, args, kwargs)
        outputs = list(tensors_in(output))
        loss = loss_in(output) if is_root else None
        with self._lock:
            names = [self._recorder.next_name(f"{name}_input") for _ in inputs]
            names += [self._recorder.next_name(f"{name}_output") for _ in outputs]
            tensors = inputs + outputs
            if loss is not None:
                at = next((i for i, t in enumerate(tensors) if t is loss), None)
                if at is not None:
                    self._save([names.pop(at)], [tensors.pop(at)], _core.Kind.loss)
            self._save(names, tensors)
            if is_root and self._has_lazy:
                self._has_lazy = False
                self._attach_late()

    def _attach_late(self) -> None:
        """Lazy parameters have a value and take callbacks only after their first forward."""
        selection = self._selections.at(self._core)
        for root in self._roots:
            module = root.module()
            for name, parameter in root.parameters(module) if module is not None else ():
                if id(parameter) not in self._gradient_names and selection.holds(
                    f"gradient/{name}"
                ):
                    self._attach_gradient(f"gradient/{name}", parameter)

    def _after_loss(
        self, name: str, module: nn.Module, args: Any, kwargs: Any, output: Any
    ) -> None:
        if not self._core.is_step_wanted or _is_replay():
            return
        inputs = inputs_of(module, args, kwargs)
        outputs = list(tensors_in(output))
        with self._lock:
            self._save([self._recorder.next_name(f"{name}_input") for _ in inputs], inputs)
            names = [self._recorder.next_name(f"{name}_output") for _ in outputs]
            self._save(names, outputs, _core.Kind.loss)

    def _on_gradient(self, name: str, gradient: torch.Tensor) -> None:
        if os.getpid() == self._pid and not self._guard.disabled:
            with self._lock:
                self._guarded("Saving a gradient", self._save, [name], [gradient])

    def _after_accumulation(self, name: str, parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            self._on_gradient(name, parameter.grad)

    def _watch_optimizers(self) -> None:
        if "optimizer" in (self._gradient_source, self._step_on):
            self._watch = OptimizerWatch(self)

    def _wants_gradients(self) -> bool:
        wanted = self._gradient_source == "optimizer" and bool(self._gradient_names)
        return wanted and os.getpid() == self._pid and not self._guard.disabled

    def _on_update(self, pairs: list[tuple[nn.Parameter, torch.Tensor]]) -> None:
        known = [
            (self._gradient_names[id(p)], g) for p, g in pairs if id(p) in self._gradient_names
        ]
        with self._lock:
            self._save([name for name, _ in known], [gradient for _, gradient in known])

    def _on_updated(self) -> None:
        self._update_seen = True

    # ---- handing over

    def _save(
        self,
        names: list[str],
        tensors: list[torch.Tensor],
        kind: _core.Kind = _core.Kind.automatic,
    ) -> None:
        if not names or not self._core.is_step_wanted:
            return
        self._recorder.save(names, tensors, kind)
        selection = self._selection
        if selection is not None and selection.watches:
            self._selection = None
            if self._selections.at(self._core) is not selection:
                # A NaN was found: the collections that wait for it begin to save at once.
                self._detach()
                self._offer_all()
            self._selection = self._selections.at(self._core)

    # ---- failures and the end

    def _safe(self, site: str, function: Callable[..., None]) -> Callable[..., None]:
        """The function as a callback that never fails and does nothing in forked children."""

        def call(*args: Any) -> None:
            if self._guard.disabled or os.getpid() != self._pid:
                return
            try:
                function(*args)
            except Exception as error:
                self._guard.handle(site, error)

        return call

    def _callback(self, site: str, function: Callable[..., None]) -> _core.Callback:
        """A callback of a module; it does nothing in copies of the module."""
        return _core.Callback(self._safe(site, function), _set_eval_frame)

    def _guarded(self, site: str, function: Callable[..., object], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            self._guard.handle(site, error)

    def _close(self, at_exit: bool) -> None:
        if self._core.is_closed:
            return
        with self._lock:
            self._eager.end()
            self._guarded("Closing", self._end_attached)
            self._detach()
            for root in self._roots:
                for handle in root.handles:
                    handle.remove()
            for _, handle in self._loss_handles:
                handle.remove()
            if self._watch is not None:
                self._watch.remove()
            super()._close(at_exit)


def _raise(message: str) -> None:
    raise SMDebugRuntimeError(message)


def _is_compiled(root: Root, module: nn.Module) -> bool:
    """Callbacks on inner modules would break the model's graph into pieces."""
    return (
        root.begins_step.is_compiled
        or type(module).__name__ == "OptimizedModule"
        or getattr(module, "_compiled_call_impl", None) is not None
    )


def _check_choice(value: str, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SMDebugValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}.")
