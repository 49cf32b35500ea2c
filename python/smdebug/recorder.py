"""What the recorders of all frameworks have in common: names with an index, and what was dropped."""

from __future__ import annotations

from typing import Any

from smdebug.logger import get_logger


class BaseRecorder:
    """Counts names within a step, and tensors that could not be saved. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self.indices: dict[str, int] = {}  # may be shared with callbacks of the core
        self.dropped: dict[str, int] = {}

    def next_name(self, stem: str) -> str:
        """`<stem>_<i>`, counted within a step."""
        index = self.indices.get(stem, 0)
        self.indices[stem] = index + 1
        return f"{stem}_{index}"

    def restart_names(self) -> None:
        """A step has begun."""
        self.indices.clear()

    def drop(self, name: str, reason: str) -> None:
        """Counts a tensor that cannot be saved, and says so the first time."""
        if name not in self.dropped:
            get_logger().warning(f"'{name}' cannot be saved: {reason.splitlines()[0]}")
        self.dropped[name] = self.dropped.get(name, 0) + 1
