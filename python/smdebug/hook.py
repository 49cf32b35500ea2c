"""The hook: records tensors and scalars of a training loop.

`Hook` serves any loop: call `hook.step()` once per step and save what you like. The hooks of the
frameworks derive from `BaseHook` and add how tensors are found.
"""

from __future__ import annotations

import atexit
import logging
import os
import weakref
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from smdebug import _core, last_words, singleton
from smdebug.collection import Collection, CollectionKeys, CollectionManager
from smdebug.credentials import botocore_credentials
from smdebug.device_arrays import DeviceArrays
from smdebug.exceptions import (
    InvalidCollectionConfiguration,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.exporters import Exporter
from smdebug.exporters.background import ExportThread
from smdebug.hook_arguments import flag_argument, text_argument
from smdebug.inert_core import InertCore
from smdebug.logger import core_log, get_logger
from smdebug.step_scope import StepNumber, StepScope

if TYPE_CHECKING:
    from smdebug.rule_watch import RuleSources, RuleWatch

CheckpointCallback = TypeVar("CheckpointCallback", bound=Callable[[], object])

# How long a dying process waits for its flight recorder to be written.
LAST_WORDS_MS = 5000

_open_hooks: weakref.WeakSet[BaseHook] = weakref.WeakSet()


@atexit.register
def _close_open_hooks() -> None:
    for hook in list(_open_hooks):
        hook._close(at_exit=True)


class BaseHook:
    """What the hooks of all frameworks have in common."""

    # Of the framework: (name, patterns, saved without reductions) and what is saved anyway.
    builtin_collections: ClassVar[list[tuple[str, list[str], bool]]] = _core.PLAIN_COLLECTIONS
    default_collections: ClassVar[list[str]] = _core.PLAIN_DEFAULT_COLLECTIONS
    default_save_interval: ClassVar[int] = 500
    manager_class: ClassVar[type[CollectionManager]] = CollectionManager

    init_step = -1
    _export_thread: ExportThread | None = None
    _rule_watch: RuleWatch | None = None
    _checkpoint: Callable[[], object] | None = None
    # Held while a step is filled, where several threads do that: acquire(timeout=), release().
    _lock: Any = None

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
        exclude_regex: Any = None,
        durable: str = "off",
        layout: str | None = None,
        max_queue_bytes: int | None = None,
        overflow: str = "block",
        exporters: Exporter | Iterable[Exporter] = (),
        rules: RuleSources = (),
        max_overhead: float | None = None,
        max_interval: int | None = None,
        flight_recorder: int = 0,
        flight_recorder_raw: bool = False,
        flight_recorder_bytes: int | None = None,
        first_bad_tensor: bool = False,
    ) -> None:
        if out_dir is None:
            raise RuntimeError(
                "out_dir is needed: a local directory for the recorded run, such as out_dir='runs/first'."
            )
        arguments = {
            "out_dir": os.path.expanduser(os.fspath(out_dir)),
            "export_tensorboard": flag_argument(export_tensorboard, "export_tensorboard"),
            "tensorboard_dir": None if tensorboard_dir is None else os.fspath(tensorboard_dir),
            "dry_run": flag_argument(dry_run, "dry_run"),
            "reduction_config": reduction_config,
            "save_config": None if save_config is None else _core.SaveConfig.parse(save_config),
            "include_regex": include_regex,
            "exclude_regex": exclude_regex,
            "include_collections": include_collections,
            "save_all": flag_argument(save_all, "save_all"),
            "include_workers": text_argument(include_workers, "include_workers"),
            "durable": text_argument(durable, "durable"),
            "layout": None if layout is None else text_argument(layout, "layout"),
            "max_queue_bytes": max_queue_bytes,
            "overflow": text_argument(overflow, "overflow"),
            "max_overhead": max_overhead,
            "max_interval": max_interval,
            "flight_recorder": flight_recorder,
            "flight_recorder_raw": flag_argument(flight_recorder_raw, "flight_recorder_raw"),
            "flight_recorder_bytes": flight_recorder_bytes,
            "first_bad_tensor": flag_argument(first_bad_tensor, "first_bad_tensor"),
        }
        manager = self._make_manager()
        watching = self._watching(rules)
        feeding = self._feeding(exporters)
        try:
            core = _core.Hook.create(self._plumbing(manager) | arguments | feeding | watching)
        except BaseException:
            if self._export_thread is not None:
                self._export_thread.feed.end()
            raise
        self._adopt(core, manager)

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """A hook configured by a JSON file: the given one, or what the environment names."""
        self = cls.__new__(cls)
        path = None if json_file_path is None else os.path.expanduser(os.fspath(json_file_path))
        self._open_from_json(path)
        return self

    def _open_from_json(self, path: str | None) -> None:
        from smdebug.rule_watch import rules_in  # importing the package stays light

        manager = self._make_manager()
        watching = self._watching(rules_in(path or _core.config_file_path()))
        self._adopt(_core.Hook.from_json(path, self._plumbing(manager) | watching), manager)

    def _watching(self, rules: RuleSources) -> dict[str, Any]:
        if not isinstance(rules, tuple) or rules:
            from smdebug.rule_watch import watch_for

            self._rule_watch = watch_for(rules)
        return {} if self._rule_watch is None else {"watch": self._rule_watch.core}

    def _feeding(self, exporters: Exporter | Iterable[Exporter]) -> dict[str, Any]:
        chosen = (exporters,) if isinstance(exporters, Exporter) else tuple(exporters)
        if not chosen:
            return {}
        self._export_thread = ExportThread(chosen)
        return {"feed": self._export_thread.feed}

    def _make_manager(self) -> CollectionManager:
        manager = self.manager_class()
        for name, _, _ in self.builtin_collections:
            manager.create_collection(name)
        return manager

    def _plumbing(self, manager: CollectionManager) -> dict[str, Any]:
        return {
            "log": core_log,
            "identify": self._identify if self._identify_is_ours() else None,
            "builtin_collections": self.builtin_collections,
            "default_collections": self.default_collections,
            "default_save_interval": self.default_save_interval,
            "collections": manager,
            "credentials": botocore_credentials,
        }

    def _adopt(self, core: _core.Hook, manager: CollectionManager) -> None:
        self._core: Any = core
        self._arrays = DeviceArrays(core)
        self._pid = os.getpid()  # a forked child records nothing
        self._collection_manager = manager
        manager._belong_to_hook(core.save_config)
        self._scope = StepScope(self)
        _open_hooks.add(self)
        if core.has_flight_recorder:
            last_words.register(self)
        singleton.set_hook(self)
        if self._rule_watch is not None:
            self._rule_watch.start(self)
        self._set_up()

    def _set_up(self) -> None:
        """What an adapter keeps beside the core; called for each core, an inert one, too."""

    def _identify(self) -> tuple[str, str, int]:
        """(name, chief, number of workers), asked at the first step; adapters override it."""
        raise NotImplementedError

    def _rank_and_size(self) -> tuple[int, int] | tuple[None, None]:
        """Of this process, if the adapter knows better than the variables of the launcher."""
        return None, None

    def _identify_is_ours(self) -> bool:
        return type(self)._identify is not BaseHook._identify

    # ---- what was configured

    @property
    def out_dir(self) -> str:
        return self._core.out_dir

    @property
    def tensorboard_dir(self) -> str | None:
        return self._core.tensorboard_dir

    @property
    def dry_run(self) -> bool:
        return self._core.dry_run

    @property
    def save_all(self) -> bool:
        return self._core.save_all

    @property
    def include_regex(self) -> list[str]:
        return self._core.include_regex

    @property
    def exclude_regex(self) -> list[str]:
        return self._core.exclude_regex

    @property
    def include_collections(self) -> list[str]:
        return self._core.include_collections

    @property
    def save_config(self) -> _core.SaveConfig:
        return self._core.save_config

    @property
    def reduction_config(self) -> _core.ReductionConfig:
        return self._core.reduction_config

    @property
    def worker(self) -> str:
        return self._core.worker

    @property
    def chief_worker(self) -> str:
        return self._core.chief_worker

    @property
    def save_all_workers(self) -> bool:
        return self._core.save_all_workers

    @property
    def logger(self) -> logging.Logger:
        return get_logger()

    # ---- collections

    @property
    def collection_manager(self) -> CollectionManager:
        return self._collection_manager

    @collection_manager.setter
    def collection_manager(self, manager: CollectionManager) -> None:
        self._collection_manager = manager
        manager._belong_to_hook(self._core.save_config)
        self._core.set_collections(manager)

    def get_collection(self, name: str, create: bool = True) -> Collection:
        """The collection of this name; a new one matches nothing until told what."""
        return self._collection_manager.get(name, create=create)

    def get_collections(self) -> dict[str, Collection]:
        return self._collection_manager.get_collections()

    def add_collection(self, collection: Collection) -> None:
        if not isinstance(collection, _core.Collection):
            raise SMDebugTypeError(f"A Collection was expected, not {collection!r}.")
        self._collection_manager.add(collection)

    def add_to_collection(self, collection_name: str, arg: Any) -> None:
        """Adds a tensor name, or a list of names, to a collection."""
        collection = self.get_collection(collection_name)
        for name in [arg] if isinstance(arg, str) else arg:
            if not isinstance(name, str):
                raise SMDebugTypeError(f"A tensor name was expected, not {name!r}.")
            collection.add_tensor_name(name)

    def export_collections(self) -> None:
        """Writes the collections file now; it is written at the latest when the hook closes."""
        self._core.write_collections()

    # ---- steps

    @property
    def mode(self) -> _core.ModeKeys:
        return self._core.mode

    def set_mode(self, mode: _core.ModeKeys) -> None:
        """The mode of the steps that begin from now on."""
        if not isinstance(mode, _core.ModeKeys):
            raise SMDebugValueError(
                f"{mode!r} is not a mode; expected modes.TRAIN, modes.EVAL, modes.PREDICT or modes.GLOBAL."
            )
        self._core.mode = mode

    @property
    def step(self) -> StepNumber:
        """The number of the current step, -1 before the first; call it to begin the next."""
        number = StepNumber(self._core.step)
        number._hook = self
        return number

    def begin_step(self, step: int | None = None) -> StepScope:
        """Ends the current step and begins the next, with a number of your own if you like.

        Raises TrainingStopRequested if an action of a rule asked for it.
        """
        if self._rule_watch is not None and self._rule_watch.requests:
            self._rule_watch.answer(self)
        try:
            if step is None:
                self._core.begin_step()
            else:
                self._core.begin_step_at(step)
        except SMDebugValueError as error:
            self._raise_for_empty_collection(error)
            raise
        return self._scope

    def _raise_for_empty_collection(self, error: SMDebugValueError) -> None:
        builtin = {name for name, _, _ in self.builtin_collections}
        for name in set(self.include_collections) - builtin:
            found = self._collection_manager.find(name)
            if found is not None and not found.include_regex and not found.tensor_names:
                raise InvalidCollectionConfiguration(name) from error

    def end_step(self) -> None:
        """Ends the current step now, so that readers see it."""
        self._core.end_step()
        self._arrays.end_step()

    def on_checkpoint(self, callback: CheckpointCallback) -> CheckpointCallback:
        """Has `callback` called when the action Checkpoint of a rule asks for a checkpoint.

        It is called by the training thread when the next step begins, before a stop that was asked
        for at the same time, and in every process of the training. What it raises is logged.
        Returns it, so this serves as a decorator, too. A later one replaces it.
        """
        if not callable(callback):
            raise SMDebugTypeError(f"A function without arguments was expected, not {callback!r}.")
        self._checkpoint = callback
        return callback

    def _has_request(self) -> None:
        """Called by another thread: the next step is to begin with `begin_step`."""

    @property
    def mode_steps(self) -> dict[_core.ModeKeys, int]:
        """The number of the current step within each mode seen so far."""
        steps = {mode: self._core.mode_step(mode) for mode in _core.ModeKeys}
        return {mode: step for mode, step in steps.items() if step >= 0 or mode == self._core.mode}

    @property
    def last_saved_step(self) -> int | None:
        return self._core.last_saved_step

    @property
    def committed_steps(self) -> int:
        """How many steps of this hook are written: they outlive the process whatever happens."""
        return self._core.committed_steps

    @property
    def training_run(self) -> int:
        return self._core.training_run

    # ---- saving

    def save(self, name: str, tensor: Any) -> None:
        """Offers a tensor: it is saved as the collections that hold its name want it."""
        if self._arrays.save([(name, tensor)]):
            self._core.save(name, tensor)

    def save_tensor(
        self, tensor_name: str, tensor_value: Any, collections_to_write: str | list[str] = "default"
    ) -> None:
        """Saves a tensor by hand: an array, a DLPack producer, a number, strings or a list of these."""
        names = (
            [collections_to_write]
            if isinstance(collections_to_write, str)
            else collections_to_write
        )
        self._core.save_tensor(tensor_name, tensor_value, names)

    def save_scalar(
        self, name: str, value: Any, sm_metric: bool = False, timestamp: float | None = None
    ) -> None:
        """Saves a number under `scalar/<name>` at the current step, whatever the save config says."""
        self._core.save_scalar(name, value, sm_metric, timestamp)

    def should_save_tensor_or_collection(self, tensor_name: str, collection_name: str) -> bool:
        """Whether the tensor or the collection is saved at the current step."""
        return self._core.wants(tensor_name) or self._core.is_collection_active(collection_name)

    def has_default_hook_configuration(self) -> bool:
        """Whether nothing but the default collections is saved."""
        ignored = {CollectionKeys.SCALARS}
        return set(self.include_collections) - ignored == set(self.default_collections) - ignored

    def record_trace_events(self, *args: Any, **kwargs: Any) -> None:
        """Accepted for old scripts; there is no profiler."""

    # ---- cost and what went wrong

    def bill(self) -> dict[str, Any]:
        """What recording has cost so far: seconds, their share, bytes, steps and tensors."""
        return self._core.bill()

    def dump_flight_recorder(self, reason: str) -> None:
        """Writes the steps that the flight recorder holds, once the current one is over."""
        self._core.dump_flight_recorder(reason)

    def _last_words(self, reason: str, may_go_on: bool = False) -> None:
        """The process dies: ends the step and waits until the flight recorder is in files.

        If the program may go on its step is left to it, and is written when it ends.
        """
        if self._core.is_closed or not self._core.has_flight_recorder or os.getpid() != self._pid:
            return
        # A thread that is gone may have taken the lock with it.
        if self._lock is not None and not self._lock.acquire(timeout=LAST_WORDS_MS / 1000):
            return
        try:
            if may_go_on:
                self._core.dump_ended_steps(reason)
            else:
                self.dump_flight_recorder(reason)
                self.end_step()
            self._core.wait_until_written(LAST_WORDS_MS)
        except Exception as error:
            get_logger().error(f"The flight recorder could not be written. {error}")
        finally:
            if self._lock is not None:
                self._lock.release()

    # ---- the end

    def _replaced(self) -> None:
        """Another hook has become that of the process."""

    def close(self) -> None:
        """Writes what is pending. The second call does nothing."""
        self._close(at_exit=False)

    def _close(self, at_exit: bool) -> None:
        if self._core.is_closed:
            return
        _open_hooks.discard(self)
        if self._core.has_flight_recorder:
            if at_exit and (cause := last_words.died_of()) is not None:
                self._last_words(cause)
            last_words.unregister(self)
        error = self._core.close(at_exit)
        if self._export_thread is not None:
            self._export_thread.close()
        if self._rule_watch is not None:
            self._rule_watch.close()
        if error is None:
            return
        if self._core.is_strict and not at_exit:
            raise SMDebugRuntimeError(error)
        get_logger().error(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is not None:
            self._last_words(last_words.describe(exc))
        self.close()

    # A pickled or copied hook is inert: the model it is attached to can be saved and copied.
    def __getstate__(self) -> dict[str, Any]:
        return {}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._core = InertCore()
        self._arrays = DeviceArrays(self._core)
        self._pid = os.getpid()
        self._collection_manager = self._core.collections
        self._scope = StepScope(self)
        self._set_up()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(out_dir={self.out_dir!r}, step={int(self.step)})"


class Hook(BaseHook):
    """Records any training loop: one `hook.step()` per step, then save_tensor and save_scalar."""


__all__ = ["BaseHook", "Hook", "InvalidCollectionConfiguration", "StepNumber"]
