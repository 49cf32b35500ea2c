"""Where the files of a run lie, for tools written for the original."""

from __future__ import annotations

import os
import re
from typing import Any

from smdebug import _core
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import IndexReaderException

STEP_NUMBER_FORMATTING_LENGTH = "012"
_STEPS_PER_PREFIX = 1000


class TensorLocation:
    """Where one tensor lies: a byte range of an event file."""

    def __init__(
        self,
        tname: str,
        mode: ModeKeys,
        mode_step: int,
        event_file_name: str,
        start_idx: int,
        length: int,
        worker: str,
    ) -> None:
        self.tensorname = tname
        self.mode = mode
        self.mode_step = mode_step
        self.event_file_name = event_file_name
        self.start_idx = start_idx
        self.length = length
        self.worker = worker

    def to_dict(self) -> dict[str, Any]:
        return {"tensorname": self.tensorname, "start_idx": self.start_idx, "length": self.length}


class TensorShape:
    """The shape of one tensor."""

    def __init__(
        self,
        name: str,
        mode: ModeKeys,
        mode_step: int,
        shape: tuple[int, ...],
        original_name: str | None = None,
    ) -> None:
        self.name = name
        self.original_name = name if original_name is None else original_name
        self.mode = mode
        self.mode_step = mode_step
        self.shape = shape

    def to_dict(self) -> dict[str, Any]:
        return {
            "tensorname": self.name,
            "originalname": self.original_name,
            "shape": self.shape,
        }


class EventFileLocation:
    """The place of an event file, by step and worker."""

    type = "events"

    def __init__(self, step_num: int, worker_name: str) -> None:
        self.step_num = int(step_num)
        self.worker_name = worker_name

    def get_step_num_str(self) -> str:
        return f"{self.step_num:012d}"

    def get_filename(self) -> str:
        worker = _core.worker_to_file_name(self.worker_name)
        return f"{self.get_step_num_str()}_{worker}.tfevents"

    @classmethod
    def match_regex(cls, s: str) -> EventFileLocation | None:
        """The location that a file name stands for; None if it is no event file."""
        parsed = _core.parse_step_file_name(s)
        if parsed is None or not s.endswith(".tfevents"):
            return None
        return cls(*parsed)

    @classmethod
    def load_filename(cls, s: str, print_error: bool = True) -> EventFileLocation | None:
        return cls.match_regex(s)


class TensorFileLocation(EventFileLocation):
    """An event file of a run."""

    def get_file_location(self, trial_dir: str = "") -> str:
        return os.path.join(self.get_step_dir_path(trial_dir, self.step_num), self.get_filename())

    @staticmethod
    def get_dir(trial_dir: str) -> str:
        return os.path.join(trial_dir, "events")

    @classmethod
    def get_step_dir_path(cls, trial_dir: str, step_num: int) -> str:
        return os.path.join(cls.get_dir(trial_dir), f"{int(step_num):012d}")

    @classmethod
    def get_step_dirs(cls, trial_dir: str) -> list[str]:
        """The names of the folders of all steps."""
        folder = cls.get_dir(trial_dir)
        if not os.path.isdir(folder):
            return []
        return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())


class TensorboardFileLocation(EventFileLocation):
    """An event file for TensorBoard."""

    type = "tensorboard"

    def __init__(self, step_num: int, worker_name: str, mode: ModeKeys | None = None) -> None:
        super().__init__(step_num, worker_name)
        self.mode = mode

    def get_file_location(self, base_dir: str = "") -> str:
        mode = ModeKeys.GLOBAL if self.mode is None else self.mode
        return os.path.join(base_dir, mode.name, self.get_filename())


class IndexFileLocationUtils:
    """Paths of index files: a thousand steps to a folder."""

    MAX_INDEX_FILE_NUM_IN_INDEX_PREFIX = _STEPS_PER_PREFIX

    @staticmethod
    def get_index_prefix_for_step(step_num: int) -> str:
        return f"{step_num // _STEPS_PER_PREFIX:09d}"

    @staticmethod
    def next_index_prefix_for_step(step_num: int) -> str:
        return f"{step_num // _STEPS_PER_PREFIX + 1:09d}"

    @staticmethod
    def get_index_key_for_step(trial_prefix: str, step_num: int, worker_name: str) -> str:
        return os.path.join(trial_prefix, _core.index_file_name(step_num, worker_name))

    @staticmethod
    def get_index_path(path: str) -> str:
        return os.path.join(path, "index")

    @staticmethod
    def get_prefix_from_index_file(index_file: str) -> str:
        """The run's folder."""
        found = re.match(r"(.*?)/?index/\d+/[^/]*$", index_file)
        if found is None:
            raise IndexReaderException(f"'{index_file}' is not the path of an index file.")
        return found[1]

    @staticmethod
    def parse_step_from_index_file_name(index_file_name: str) -> int:
        return int(os.path.basename(index_file_name).partition("_")[0])


__all__ = [
    "STEP_NUMBER_FORMATTING_LENGTH",
    "EventFileLocation",
    "IndexFileLocationUtils",
    "TensorFileLocation",
    "TensorLocation",
    "TensorShape",
    "TensorboardFileLocation",
]
