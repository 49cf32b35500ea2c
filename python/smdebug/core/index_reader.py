"""Index files of a run, for tools written for the original."""

from __future__ import annotations

import os
from collections.abc import Sequence

from smdebug import _core
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import IndexReaderException


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


class IndexReader:
    """What the readers of directories and of buckets share."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.index_file_cache = ReadIndexFilesCache()
        self._storage = _core.Storage.open(path, credentials=botocore_credentials)
        self._root = os.path.join(path, "")

    def _list(
        self, folder: str, suffixes: tuple[str, ...], start_after_key: str | None
    ) -> list[str]:
        found = [
            self._root + name for name, _ in self._storage.list(folder) if name.endswith(suffixes)
        ]
        return [name for name in found if start_after_key is None or name > start_after_key]

    def _index_files(self, start_after_key: str | None = None) -> list[str]:
        return self._list("index", (".json", ".csv"), start_after_key)

    def list_event_files(self, start_after_key: str | None = None) -> list[str]:
        """Sorted event files, those that come after the key."""
        return self._list("events", (".tfevents",), start_after_key)

    def read_index_files(
        self, start_after_key: str | None, range_steps: Sequence[int | None] | None = None
    ) -> tuple[list[bytes], list[int], str | None, list[str]]:
        """(contents, steps, the last file's name, workers) of the index files that are new.

        A file is read once. `range_steps` is (begin, end), half open; either may be None.
        """
        contents, steps, workers = [], [], []
        begin, end = range_steps or (None, None)
        names = self._index_files()
        for name in names:
            parsed = _core.parse_step_file_name(name)
            if parsed is None:
                raise IndexReaderException(f"This is not the name of an index file: {name}")
            step, worker = parsed
            inside = (begin is None or step >= begin) and (end is None or step < end)
            after = start_after_key is None or name >= start_after_key
            if not inside or not after or not self.index_file_cache.has_not_read(name):
                continue
            contents.append(self._storage.read(name[len(self._root) :]))
            steps.append(step)
            workers.append(worker)
            self.index_file_cache.add(name, start_after_key)
        return contents, steps, names[-1] if names else start_after_key, workers


class LocalIndexReader(IndexReader):
    """Index files of a run in a local directory, by their paths."""

    def list_index_files(self, start_after_key: str | None = None) -> list[str]:
        """Sorted index files, those that come after the key."""
        return self._index_files(start_after_key)


class S3IndexReader(IndexReader):
    """Index files of a run in an object store, by their keys."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        _, _, rest = path.partition("://")
        self.bucket_name, _, prefix = rest.partition("/")
        self.prefix_name = prefix.strip("/")
        self._root = f"{self.prefix_name}/" if self.prefix_name else ""

    def list_index_files(self, start_after_key: str | None = None) -> tuple[list[str], str | None]:
        """Sorted keys of index files, those that come after the key, and the last of them."""
        found = self._index_files(start_after_key)
        return found, found[-1] if found else start_after_key


__all__ = ["IndexReader", "LocalIndexReader", "ReadIndexFilesCache", "S3IndexReader"]
