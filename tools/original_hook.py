"""Drives the released package's hook without any training framework.

For the environment made by `tools/venv.sh original` only.
"""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.hook import BaseHook
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import get_numpy_reduction
from smdebug.core.utils import FRAMEWORK, make_numpy_array
from smdebug.profiler.profiler_config_parser import ProfilerConfigParser

WORKER = "worker_0"


def quiet() -> None:
    """Silences the package's progress messages."""
    logging.getLogger("smdebug").setLevel(logging.ERROR)


class FrameworkFreeHook(BaseHook):  # type: ignore[misc]
    """A hook for NumPy arrays: begin a step, offer tensors, end the step."""

    def __init__(self, out_dir: str, **options: Any) -> None:
        super().__init__(
            collection_manager=CollectionManager(create_default=True),
            default_include_collections=["losses"],
            profiler_config_parser=ProfilerConfigParser(FRAMEWORK.PYTORCH),
            init_step=-1,
            out_dir=out_dir,
            **options,
        )
        self.worker = WORKER

    def _get_worker_name(self) -> str:
        return WORKER

    def _get_num_workers(self) -> int:
        return 1

    def _get_default_collections(self) -> list[str]:
        return ["all", "default", "losses"]

    def _is_not_supported(self) -> bool:
        return False

    @staticmethod
    def _make_numpy_array(tensor_value: Any) -> np.ndarray:
        return make_numpy_array(tensor_value)

    @staticmethod
    def _get_reduction_of_data(
        reduction_name: str, tensor_value: Any, tensor_name: str, abs: bool
    ) -> Any:
        return get_numpy_reduction(reduction_name, tensor_value, abs)

    def begin_step(self, mode: ModeKeys = ModeKeys.TRAIN) -> bool:
        """Starts the next step of `mode`; true when something is saved in it."""
        self.set_mode(mode)
        if not self.prepared_collections:
            self._prepare_collections()
        self._increment_step()
        saved = bool(self._get_collections_to_save_for_step())
        if saved:
            self._initialize_writers()
        return saved

    def offer(self, name: str, value: Any) -> None:
        """Hands one tensor to the hook, which decides what is stored of it."""
        self._save_for_tensor(name, value)

    def end_step(self) -> None:
        """Flushes scalars and commits the step's files."""
        self._close_writers()

    def finish(self) -> None:
        """Exports the collections and closes the job."""
        self.export_collections()
        self.close()
