"""The hook for PyTorch: finds the tensors of registered models by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import torch
from torch import nn

from smdebug import _core
from smdebug.auto_mode import AutoMode
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from smdebug.hook import BaseHook
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger
from smdebug.pytorch.callbacks import Callbacks, graph_task_id, is_replay, set_eval_frame
from smdebug.pytorch.capture import OPTIMIZER_STATE, STATE_PREFIX, Capture
from smdebug.pytorch.collection import CollectionManager
from smdebug.pytorch.names import ModuleNames, Root
from smdebug.pytorch.optimizer import OptimizerWatch
from smdebug.pytorch.recorder import Recorder
from smdebug.pytorch.tensors import SPARSE_DENSE_LIMIT, tensors_in
from smdebug.pytorch.worker import find_worker, out_dir_of_attempt, rank_and_size
from smdebug.step_scope import StepScope

STEP_ON = ("forward", "optimizer")
GRADIENT_SOURCES = ("backward", "optimizer")
STATE_PATTERN = "^" + STATE_PREFIX


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
    _capture: Capture
    _recorder: Recorder
    _watch: OptimizerWatch | None

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
        self._capture.gradients_of_updates = gradient_source == "optimizer"
        self.auto_mode = auto_mode
        self.canonical_names = canonical_names
        self.compiled_modules = compiled_modules
        self._recorder.sparse_dense_limit = sparse_dense_limit
        if "optimizer" in (gradient_source, step_on):
            self._watch = OptimizerWatch(self._capture)

    def _set_up(self) -> None:
        self._step_on = STEP_ON[0]
        self._auto_mode = self.canonical_names = False
        self._lock = _core.HookLock()
        self._callbacks = Callbacks(self._core)
        self._names = ModuleNames()
        if isinstance(self._collection_manager, CollectionManager):
            self._collection_manager._use_names(self._names)
        self._capture = Capture(self._core, self._lock, self._callbacks)
        self._recorder = self._capture.recorder
        self._loss_handles: list[tuple[nn.Module, Any]] = []
        self._early: list[tuple[str, torch.Tensor]] = []
        self._explicit_steps = False
        self._devices_seen: set[torch.device] = set()
        self._mode_follower = AutoMode(self._core)
        self._watch = None

    def _plumbing(self, manager: PlainCollectionManager) -> dict[str, Any]:
        # Not a method: the core must not keep the hook alive.
        return super()._plumbing(manager) | {"identify": find_worker}

    def _rank_and_size(self) -> tuple[int, int]:
        return rank_and_size()

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
            self._capture.add(root)
            self._capture.roots[0].begins_step.rest(0)
            if OPTIMIZER_STATE in self._core.include_collections:
                self._watch_state()
            if self.compiled_modules and len(self._capture.roots) == 1 and root.handles:
                after = self._callbacks.of_module(
                    "A forward", self._capture.after_compiled_forward, only_wanted=False
                )
                root.handles.append(module.register_forward_hook(after))
                self._capture.eager.prepare()
            self._arm()

    register_hook = register_module

    def _watch_state(self) -> None:
        """Somebody wants what optimizers keep: it is named after the parameters."""
        for name in ("weights", "biases"):
            collection = self._core.collections.find(name)
            if collection is not None and STATE_PATTERN not in collection.exclude_regex:
                collection.exclude(STATE_PATTERN)
        if self._watch is None:
            self._watch = OptimizerWatch(self._capture)

    def register_loss(self, loss_module: nn.Module) -> None:
        """Records inputs and outputs of a loss; the outputs are in the collection `losses`."""
        if not isinstance(loss_module, nn.Module):
            raise SMDebugTypeError(f"A torch.nn.Module was expected, not {loss_module!r}.")
        if isinstance(self._core, InertCore):
            return
        self._check_open()
        with self._lock:
            name = self._names.add_loss(loss_module)
            after = self._capture.loss_callback(name)
            handle = loss_module.register_forward_hook(after, with_kwargs=True)
            self._loss_handles.append((loss_module, handle))

    def _check_open(self) -> None:
        if self._core.is_closed:
            raise SMDebugRuntimeError("The hook is closed: nothing can be registered any more.")

    def unregister(self, module: nn.Module) -> None:
        """Takes all callbacks off a registered model or loss."""
        with self._lock:
            roots = [root for root in self._capture.roots if root.module() is module]
            losses = [handle for loss, handle in self._loss_handles if loss is module]
            if not roots and not losses:
                raise SMDebugValueError(f"{type(module).__name__} is not registered.")
            self._capture.detach()
            self._capture.eager.end()
            for handle in [handle for root in roots for handle in root.handles] + losses:
                handle.remove()
            self._capture.roots = [root for root in self._capture.roots if root not in roots]
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
        for root in self._capture.roots:
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
        if self._core.is_closed or not self._callbacks.in_owner:
            return
        with self._lock:
            if self._core.step < 0:
                self._early.append((tensor_name, tensor_value.detach().clone()))
                self._arm()
                return
            name = self._recorder.next_name(f"{tensor_name}_output")
            self._guarded("Saving a value", self._capture.save, [name], [tensor_value])

    def save(self, name: str, tensor: Any) -> None:
        """Offers a tensor: it is saved as the collections that hold its name want it."""
        if not self._callbacks.in_owner:
            return
        with self._lock:
            if isinstance(tensor, torch.Tensor):
                self._capture.save([name], [tensor])
            else:
                super().save(name, tensor)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | list[str] = "default"
    ) -> None:
        """Saves a tensor by hand: a tensor, an array, a number, strings or a list of these."""
        if not self._callbacks.in_owner:
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
        if not self._callbacks.in_owner:
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
        self._mode_follower.chosen()

    def begin_step(self, step: int | None = None) -> StepScope:
        """Begins a step by hand; from then on forwards do not begin steps."""
        with self._lock:
            self._explicit_steps = True
            self._capture.complete()
            scope = super().begin_step(step)
            self._begun()
        return scope

    def end_step(self) -> None:
        """Ends the current step now, so that readers see it."""
        with self._lock:
            self._capture.end()
            super().end_step()

    def _step_callback(self, root: Root, module: nn.Module) -> _core.StepCallback:
        parts = {
            "lock": self._lock,
            "slow": self._callbacks.safe("Beginning a step", partial(self._before_forward, root)),
            "begun": self._callbacks.safe("Beginning a step", self._begun),
            "failed": self._callbacks.safe("Beginning a step", _raise),
            "task_id": graph_task_id,
            "tracing": torch._C._is_tracing,
            "compiler": torch.compiler,
            "isolate": set_eval_frame,
            "indices": self._recorder.indices,
            "sites": self._capture.sites,
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
            or self._capture.is_attached
            or (self._rule_watch is not None and self._rule_watch.requests)
        )
        for root in self._capture.roots:
            root.begins_step.fast = fast and root is self._capture.roots[0]

    @property
    def compiled_modules(self) -> bool:
        """Whether saved steps of compiled models run without compilation."""
        return self._capture.compiled_modules

    @compiled_modules.setter
    def compiled_modules(self, compiled_modules: bool) -> None:
        self._capture.compiled_modules = compiled_modules

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
        if self._explicit_steps or self._capture.roots[0] is not root or is_replay():
            return
        if module is not root.module() and not getattr(module, "_is_replica", False):
            return
        with self._lock:
            if not self._step_is_due(module, args):
                return
            if self.auto_mode:
                self._mode_follower.follow((module.training, torch.is_grad_enabled()))
            self._capture.complete()
            super().begin_step()
            self._begun()

    def _step_is_due(self, module: nn.Module, args: Any) -> bool:
        if self._step_on == "optimizer":
            due = self._capture.update_seen or not torch.is_grad_enabled()
            self._capture.update_seen = False
            if not due:
                return False
        if not getattr(module, "_is_replica", False):
            return True
        # Replicas run side by side, one per device: the first of them begins the step.
        device = next((t.device for t in tensors_in(args)), torch.device("cpu"))
        due = not self._devices_seen or device in self._devices_seen
        self._devices_seen = {device} if due else self._devices_seen | {device}
        return due

    def _begun(self) -> None:
        """Offers the parameters of a step that saves something and attaches the callbacks."""
        early, self._early = self._early, []
        self._capture.begin(early)
        self._arm()
        if self._capture.roots and self._capture.roots[0].begins_step.fast:
            self._capture.roots[0].begins_step.rest(self._capture.take_rest())

    # ---- failures and the end

    def _guarded(self, site: str, function: Callable[..., object], *args: Any) -> None:
        self._callbacks.run(site, function, *args)

    def _close(self, at_exit: bool) -> None:
        if self._core.is_closed:
            return
        with self._lock:
            self._capture.eager.end()
            self._guarded("Closing", self._capture.end)
            self._capture.detach()
            for root in self._capture.roots:
                for handle in root.handles:
                    handle.remove()
            for _, handle in self._loss_handles:
                handle.remove()
            if self._watch is not None:
                self._watch.remove()
            super()._close(at_exit)


def _raise(message: str) -> None:
    raise SMDebugRuntimeError(message)


def _check_choice(value: str, name: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SMDebugValueError(f"{name} must be {' or '.join(map(repr, choices))}, not {value!r}.")
