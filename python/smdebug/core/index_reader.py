"""Which index files have been read, for tools written for the original."""

from __future__ import annotations


class ReadIndexFilesCache:
    """Remembers names; above the limit it forgets those that sort before the key."""

    def __init__(self) -> None:
        self.lookup_set: set[str] = set()
        self.cache_limit = 1000

    def has_not_read(self, index_file: str) -> bool:
        return index_file not in self.lookup_set

    def add(self, index_file: str, start_after_key: str | None) -> None:
        if len(self.lookup_set) > self.cache_limit and start_after_key is not None:
            self.lookup_set = {name for name in self.lookup_set if name >= start_after_key}
        self.lookup_set.add(index_file)


__all__ = ["ReadIndexFilesCache"]
