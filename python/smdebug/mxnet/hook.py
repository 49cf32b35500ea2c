"""The hook for MXNet Gluon: finds the tensors of registered blocks by itself."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from functools import partial
from typing import Any, ClassVar

from smdebug import _core
from smdebug.auto_mode import AutoMode
from smdebug.collection import CollectionManager as PlainCollectionManager
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.hook import BaseHook
from smdebug.hook_arguments import flag_argument
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger
from smdebug.mxnet.arrays import is_array, is_symbolic, view_of
from smdebug.mxnet.blocks import ParameterNames, Root, blocks_in, is_block, is_loss, name_of
from smdebug.mxnet.capture import Capture, is_training
from smdebug.mxnet.collection import CollectionManager
from smdebug.mxnet.recorder import Callbacks, Recorder
from smdebug.mxnet.step_callback import StepCallback, StepCalls
from smdebug.mxnet.trainer import TrainerWatch, distributed_store, trainer_of
from smdebug.mxnet.worker import Job
from smdebug.step_scope import StepScope


class Hook(BaseHook):
    """Records blocks: register_block() once, and every forward begins a step.

    `auto_mode` takes the mode from autograd.is_training(). `op_hook` also saves the outputs of the
    operators of hybridised models, whose inner blocks are not called.
    """

    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = [
        ("all", [], False),
        ("default", [], False),
        ("weights", ["^(?!gradient).*weight"], False),
        ("biases", ["^(?!gradient).*bias"], False),
        ("gradients", ["^gradient"], False),
        ("losses", [".*loss._(?!input).*output", r".*loss\d*_output_\d+$"], True),
    ]
    default_collections: ClassVar[list[str]] = ["losses"]
    manager_class: ClassVar[type[PlainCollectionManager]] = CollectionManager
    _capture: Capture
    _recorder: Recorder
    _job: Job

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
        auto_mode: bool = False,
        op_hook: bool = False,
        **options: Any,
    ) -> None:
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
        self.auto_mode = flag_argument(auto_mode, "auto_mode")
        self.op_hook = flag_argument(op_hook, "op_hook")

    def _plumbing(self, manager: PlainCollectionManager) -> dict[str, Any]:
        # The job and not the hook, which the core must not keep alive.
        self._job = Job()
        return super()._plumbing(manager) | {"identify": self._job.find_worker}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._job = Job()
        super().__setstate__(state)

    def _set_up(self) -> None:
        self._auto_mode = self.op_hook = False
        self._lock = threading.RLock()
        self._callbacks = self._make_callbacks()
        self._capture = self._make_capture()
        self._recorder = self._capture.recorder
        self._parameter_names = ParameterNames()
        self._mode_follower = AutoMode(self._core)
        self._explicit_steps = False
        # Not a method: trainers must not keep the hook alive.
        before_update = partial(
            self._callbacks.counted, "Reading gradients", self._capture.save_gradients
        )
        self._trainers = TrainerWatch(before_update)

    def _make_callbacks(self) -> Callbacks:
        return Callbacks(self._core)

    def _make_capture(self) -> Capture:
        return Capture(self._core, self._lock, self._callbacks)

    @property
    def dropped_tensors(self) -> dict[str, int]:
        """How often a tensor could not be saved, by name."""
        return dict(self._recorder.dropped)

    # ---- registration

    def register_block(self, block: Any) -> None:
        """Records a model or a loss from its next forward on; the first model counts the steps.

        What is no block, or registered already, is one message in the log.
        """
        if isinstance(self._core, InertCore):
            return
        if not is_block(block):
            get_logger().error(f"Only a gluon Block can be registered, not {block!r}.")
            return
        if self._core.is_closed:
            raise SMDebugRuntimeError("The hook is closed: nothing can be registered any more.")
        with self._lock:
            known = self._registered_part(block)
            if known is not None:
                get_logger().warning(
                    f"The block '{name_of(known)}' is registered already; it is recorded once."
                )
                return
            if not self._capture.roots and not self._capture.losses:
                self._close_before_framework()
            if is_loss(block):
                self._register_loss(block)
            else:
                self._register_model(block)

    register_hook = register_block

    def _registered_part(self, block: Any) -> Any:
        """The part of a block that is registered."""
        if is_loss(block):
            return block if id(block) in self._capture.losses else None
        known = {id(part) for root in self._capture.roots for part in blocks_in(root.module())}
        return next((part for part in blocks_in(block) if id(part) in known), None)

    def _register_loss(self, block: Any) -> None:
        after = partial(self._capture.after_forward, name_of(block))
        handle = block.register_forward_hook(self._callbacks.of_block("A loss", after))
        self._capture.losses[id(block)] = handle
        # Another block may get its id.
        weakref.finalize(block, self._capture.losses.pop, id(block), None)

    def _register_model(self, block: Any) -> None:
        root = Root(block, self._parameter_names)
        site = "Beginning a step"
        calls = StepCalls(
            slow=partial(self._callbacks.counted, site, partial(self._before_forward, root)),
            begun=partial(self._callbacks.counted, site, self._begun),
            follow=self._follow_mode,
            failed=partial(self._callbacks.failed, site),
        )
        root.begins_step = StepCallback(root, self._core, self._lock, calls)
        root.begins_step.follows_mode = self.auto_mode
        root.handles.append(block.register_forward_pre_hook(root.begins_step))
        if self.op_hook:
            self._register_op_hook(block)
        self._capture.roots = [r for r in self._capture.roots if r.module() is not None] + [root]

    def _register_op_hook(self, block: Any) -> None:
        register = getattr(block, "register_op_hook", None)
        if register is None:
            get_logger().warning(f"op_hook needs MXNet 1.6 or newer; '{name_of(block)}' has none.")
            return
        # MXNet has no call that takes it off again.
        register(self._callbacks.of_block("An operator", self._capture.after_operator))

    def _close_before_framework(self) -> None:
        """MXNet was imported by now, so this runs before its own end."""
        atexit.register(_close_at_exit, weakref.ref(self))

    # ---- saving by hand

    def save(self, name: str, tensor: Any) -> None:
        """Offers a tensor: it is saved as the collections that hold its name want it."""
        if not self._callbacks.in_owner:
            return
        with self._lock:
            if is_array(tensor):
                self._capture.save([name], [tensor])
            else:
                super().save(name, tensor)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | list[str] = "default"
    ) -> None:
        """Saves a tensor by hand: an array of MXNet or NumPy, a number, strings or a list of these."""
        if not self._callbacks.in_owner:
            return
        with self._lock:
            super().save_tensor(tensor_name, _plain(tensor_value), collections_to_write)

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Saves a number under `scalar/<name>` at the current step, whatever the save config says."""
        if not self._callbacks.in_owner:
            return
        with self._lock:
            super().save_scalar(name, _plain(value), sm_metric, timestamp)

    # ---- steps

    @property
    def auto_mode(self) -> bool:
        """Whether the mode follows autograd.is_training()."""
        return self._auto_mode

    @auto_mode.setter
    def auto_mode(self, auto_mode: bool) -> None:
        self._auto_mode = auto_mode
        for root in self._capture.roots:
            root.begins_step.follows_mode = auto_mode

    def set_mode(self, mode: _core.ModeKeys) -> None:
        """The mode of the steps that begin from now on."""
        super().set_mode(mode)
        self._mode_follower.chosen()

    def begin_step(self, step: int | None = None) -> StepScope:
        """Begins a step by hand; from then on forwards do not begin steps."""
        with self._lock:
            self._explicit_steps = True
            self._look_for_trainers()
            self._callbacks.counted("Ending a step", self._capture.complete)
            scope = super().begin_step(step)
            self._callbacks.counted("Beginning a step", self._capture.begin)
            for root in self._capture.roots:
                root.begins_step.is_fast = False
        return scope

    def end_step(self) -> None:
        """Ends the current step now, so that readers see it."""
        with self._lock:
            self._callbacks.counted("Ending a step", self._capture.complete)
            self._capture.detach()
            super().end_step()

    def _before_forward(self, root: Root, block: Any, args: Any) -> None:
        """Before a forward of a registered model, unless there is nothing to do but to count."""
        if self._explicit_steps or self._capture.roots[0] is not root or self._core.is_closed:
            return
        if is_symbolic(args) or not root.is_on_first_context(args):
            return
        with self._lock:
            self._capture.complete()
            if self.auto_mode:
                self._follow_mode()
            if self._core.step < 0:
                self._look_for_trainers()
            super().begin_step()
            self._begun()

    def _begun(self) -> None:
        """A step has begun; the next one need not come here if this one saves nothing."""
        is_idle = not self._core.is_step_wanted
        if not is_idle:
            self._look_for_trainers()
        self._capture.begin()
        self._capture.roots[0].begins_step.is_fast = is_idle

    def _has_request(self) -> None:
        for root in self._capture.roots:
            root.begins_step.is_fast = False

    def _follow_mode(self) -> None:
        self._mode_follower.follow((is_training(),))

    def _look_for_trainers(self) -> None:
        """Takes the rank from a distributed store, whose trainer must be watched."""
        for root in self._capture.roots:
            trainer = trainer_of(root.first_parameter())
            if trainer is None or self._trainers.knows(trainer):
                continue
            self._core.leave_cost()  # a store waits for the other workers
            try:
                store = distributed_store(trainer)
            finally:
                self._core.enter_cost()
            if store is not None:
                self._job.use_store(store)
                self._trainers.watch(trainer)

    # ---- the end

    def _close(self, at_exit: bool) -> None:
        if self._core.is_closed:
            return
        with self._lock:
            try:
                self._callbacks.counted("Closing", self._capture.complete)
            finally:
                self._trainers.remove()
                self._capture.detach()
                for handle in [h for root in self._capture.roots for h in root.handles]:
                    handle.detach()
                for handle in self._capture.losses.values():
                    handle.detach()
                super()._close(at_exit)


def _plain(value: Any) -> Any:
    """What the core can read."""
    return view_of(value) if is_array(value) else value


def _close_at_exit(reference: weakref.ref[Hook]) -> None:
    hook = reference()
    if hook is not None:
        hook._close(at_exit=True)
