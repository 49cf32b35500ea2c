"""A local file that appears under its name only when it is complete."""

from __future__ import annotations

import os
from typing import IO, Any

from smdebug.exceptions import SMDebugError
from smdebug.ingested import Ingested

SMDEBUG_TEMP_PATH_SUFFIX = ".tmp"


def get_temp_path(file_path: str) -> str:
    """Where a file lies while it is being written."""
    return file_path + SMDEBUG_TEMP_PATH_SUFFIX


class TSAccessFile(Ingested):
    """Opened for writing it replaces the file at close(); opened for reading it reads it whole."""

    def __init__(self, path: str, mode: str) -> None:
        super().__init__()
        self.path = path
        self.mode = mode
        self.temp_path: str | None = None
        self._accessor: IO[Any] | None = None
        self.open(path, mode)

    def open(self, path: str, mode: str) -> None:
        if mode[0] == "r":
            self._accessor = open(path, mode)  # noqa: SIM115
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self.temp_path = get_temp_path(path)
        # What a crashed process may have left there is not ours to continue.
        self._accessor = open(self.temp_path, mode.replace("a", "w"))  # noqa: SIM115

    def write(self, _str: Any) -> list[int]:
        """[where it lies, how long it is]."""
        file = self._opened()
        start = file.tell()
        return [start, file.write(_str)]

    def flush(self) -> None:
        self._opened().flush()

    def close(self) -> None:
        if self._accessor is None:
            return
        self._accessor.close()
        self._accessor = None
        if self.temp_path is not None:
            os.replace(self.temp_path, self.path)

    def ingest_all(self) -> None:
        """Reads the whole file, for read()."""
        self._ingest(self._opened().read())

    def _opened(self) -> IO[Any]:
        if self._accessor is None:
            raise SMDebugError(f"The file is closed: {self.path}")
        return self._accessor

    def _place(self) -> str:
        return f"file: {self.path}"


__all__ = ["SMDEBUG_TEMP_PATH_SUFFIX", "TSAccessFile", "get_temp_path"]
