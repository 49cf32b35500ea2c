"""The core of hooks that record nothing."""

from __future__ import annotations

from typing import Any

from smdebug import _core
from smdebug.collection import CollectionManager


class InertCore:
    """What a hook that was pickled or copied has instead of a core: it records nothing."""

    mode = _core.ModeKeys.GLOBAL
    step = -1
    last_saved_step = None
    committed_steps = 0
    training_run = 0
    is_step_wanted = False
    is_closed = True
    is_step_saved = is_next_step_saved = has_flight_recorder = False
    first_bad_tensor = None
    is_strict = False
    worker = chief_worker = "worker_0"
    num_workers = 1
    out_dir = ""
    tensorboard_dir = None
    export_tensorboard = dry_run = save_all = save_all_workers = False

    def __init__(self) -> None:
        self.include_collections: list[str] = []
        self.include_regex: list[str] = []
        self.exclude_regex: list[str] = []
        self.collections = CollectionManager()
        self.save_config = _core.SaveConfig()
        self.reduction_config = _core.ReductionConfig(save_raw_tensor=True)

    def mode_step(self, mode: _core.ModeKeys) -> int:
        return -1

    def wants(self, name: str) -> bool:
        return False

    is_collection_active = wants

    def _nothing(self, *args: Any, **kwargs: Any) -> None:
        return None

    def bill(self) -> dict[str, Any]:
        return {}

    is_collection_observed = is_saved_within = may_save = wants
    begin_step = begin_steps = begin_step_at = cancel_step = end_step = close = _nothing
    enter_cost = leave_cost = dump_flight_recorder = dump_ended_steps = _nothing
    save = save_undue = save_tensor = save_scalar = set_collections = write_collections = _nothing
