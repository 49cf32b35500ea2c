"""The life of a hook for boosted trees: trainings, rounds, and copies in other processes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Self

from smdebug import _core, last_words
from smdebug.boosting.saving import SavingHook
from smdebug.collection import CollectionManager
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.hook import BaseHook
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger


class BoostingHook(SavingHook):
    """Records boosted trees: one step per round, from the callback of the framework."""

    shap_max_rows: int | None = None
    # Arguments of the constructor, or the path of a JSON file: what another core is made of.
    _recipe: dict[str, Any] | str | None = None
    _manager: CollectionManager | None = None  # its collections, if they are known already
    _is_copy = False
    _data: dict[str, Any]  # train_data, validation_data, and what is derived from them

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
        hyperparameters: dict[str, Any] | None = None,
        train_data: Any = None,
        validation_data: Any = None,
        *,
        shap_max_rows: int | None = None,
        **options: Any,
    ) -> None:
        if hyperparameters is not None and not isinstance(hyperparameters, dict):
            raise SMDebugTypeError(
                f"hyperparameters must be a dict, not {type(hyperparameters).__name__}."
            )
        if shap_max_rows is not None and (type(shap_max_rows) is not int or shap_max_rows < 1):
            raise SMDebugValueError(
                f"shap_max_rows must be a whole number of at least 1, not {shap_max_rows!r}."
            )
        if reduction_config is not None:
            get_logger().warning(
                f"What the hook for {self.framework} saves is not reduced; "
                "reduction_config is ignored."
            )
        self.hyperparameters = hyperparameters
        self.shap_max_rows = shap_max_rows
        self._data = {
            "train_data": self._check_data(train_data, "train_data"),
            "validation_data": self._check_data(validation_data, "validation_data"),
        }
        self._recipe = {
            "out_dir": out_dir,
            "export_tensorboard": export_tensorboard,
            "tensorboard_dir": tensorboard_dir,
            "dry_run": dry_run,
            "save_config": save_config,
            "include_regex": include_regex,
            "include_collections": include_collections,
            "save_all": save_all,
            "include_workers": include_workers,
            **options,
        }
        BaseHook.__init__(self, **self._recipe)

    # ---- data

    @staticmethod
    def _check_data(value: Any, name: str) -> Any:
        """The data, if the framework can use it; `name` is that of the argument."""
        raise NotImplementedError

    @property
    def train_data(self) -> Any:
        """What SHAP values are computed of."""
        return self._data.get("train_data")

    @train_data.setter
    def train_data(self, value: Any) -> None:
        self.set_data(train_data=value)

    @property
    def validation_data(self) -> Any:
        """What predictions and labels are saved of."""
        return self._data.get("validation_data")

    @validation_data.setter
    def validation_data(self, value: Any) -> None:
        self.set_data(validation_data=value)

    def set_data(self, **data: Any) -> None:
        """Other data, by the names of the arguments."""
        checked = {name: self._check_data(value, name) for name, value in data.items()}
        kept = {name: self._data.get(name) for name in ("train_data", "validation_data")}
        self._data = kept | checked  # without what was derived from it

    # ---- copies and other lives

    @classmethod
    def create_from_json_file(cls, json_file_path: str | None = None) -> Self:
        """A hook configured by a JSON file: the given one, or what the environment names."""
        path = _core.config_file_path() if json_file_path is None else json_file_path
        self = super().create_from_json_file(path)
        self._data = {}
        self._recipe = os.path.abspath(os.path.expanduser(path))
        return self

    def _open(self) -> None:
        """Makes a core from the recipe."""
        if isinstance(self._recipe, str):
            self._open_from_json(self._recipe)
        elif self._recipe is not None:
            BaseHook.__init__(self, **self._recipe)

    # A copy in the same process is the same hook: scikit-learn copies the estimators that hold it.
    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    # One that travels to another process records there, once it is used in a training.
    def __getstate__(self) -> dict[str, Any]:
        recipe = self._recipe
        if isinstance(recipe, dict):
            recipe = {name: value for name, value in recipe.items() if name != "exporters"}
        return {
            "recipe": recipe,
            "collections": list(self._collection_manager.get_collections().values()),
            "hyperparameters": self.hyperparameters,
            "shap_max_rows": self.shap_max_rows,
            "data": {name: value for name, value in self._data.items() if type(value) is tuple},
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._recipe = state["recipe"]
        self._manager = self.manager_class({c.name: c for c in state["collections"]})
        self.hyperparameters = state["hyperparameters"]
        self.shap_max_rows = state["shap_max_rows"]
        self._data = state["data"]
        self._is_copy = True
        super().__setstate__({})

    def _set_up(self) -> None:
        super()._set_up()
        self._is_resumed = self._core.step >= 0
        self._offset = 0  # what is added to the number of a round
        self._rounds = 0  # begun by this core

    def _make_manager(self) -> CollectionManager:
        return self._manager if self._manager is not None else super()._make_manager()

    def _plumbing(self, manager: CollectionManager) -> dict[str, Any]:
        # Not a method: the core must not keep the hook alive.
        return super()._plumbing(manager) | {"identify": type(self)._worker}

    @staticmethod
    def _worker() -> tuple[str, str, int]:
        rank, size = _core.process_rank() or (0, 1)
        return f"worker_{rank}", "worker_0", size

    # ---- rounds

    def _begin_training(self, rounds: Callable[[], int]) -> None:
        """A training begins with a model of so many rounds, which are asked for if they matter."""
        if self._is_copy and isinstance(self._core, InertCore):
            self._open()
        elif self._core.is_closed:
            self._tell_once("closed", "The hook is closed: this training is not recorded.")
        elif self._rounds > 0 and self._round >= 0:
            self._begin_again()
        self._offset = rounds() if self._is_resumed else 0
        self._round = -1
        self._recorded = True

    def _begin_again(self) -> None:
        """Another training with the same hook: its steps take the place of those before."""
        told = self._told
        if self._core.has_flight_recorder:
            last_words.unregister(self)
        self._core.close(False, True)
        if self._export_thread is not None:
            self._export_thread.close()
            self._export_thread = None
        if self._rule_watch is not None:
            self._rule_watch.close()
            self._rule_watch = None
        if isinstance(self._recipe, dict):  # exporters that were closed are of no use any more
            self._recipe.pop("exporters", None)
        self._manager = self._collection_manager
        self._open()
        self._told = told
        self._tell_once(
            "again",
            "The hook is used in another training, whose steps take the place of those with the "
            "same number. Give each training a hook of its own to keep both.",
        )

    def _begin_round(self, number: int) -> None:
        if self._core.is_closed:
            return
        if number == self._round:
            self._tell_once(
                "twice", "The hook is in the list of callbacks twice; each round is recorded once."
            )
            return
        self._round = number
        self._recorded = False
        self._rounds += 1
        step = number + self._offset
        if step <= self._core.step:
            self._recorded = True
            self._tell_once(
                "known", f"Step {step} was recorded before this training; it is not recorded again."
            )
            return
        self.begin_step(step)
        self._round_began = time.perf_counter()

    def _end_training(self) -> None:
        if not self._core.is_closed:
            self._core.end_step()
        if self._round >= 0 and not self._recorded:
            self._tell_once(
                "hidden",
                "Another callback has ended the training before the hook saw the last round. "
                "Put the hook first in the list of callbacks.",
            )
        if self._is_copy:
            self.close()  # nobody else knows it
