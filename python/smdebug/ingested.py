"""Content that is read whole and then taken piece by piece, as tools written for the original do."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from smdebug.exceptions import SMDebugError


class Ingested:
    """What files of all places have in common. Used by one thread at a time."""

    def __init__(self) -> None:
        self._data: Any = b""
        self._position = 0

    def _ingest(self, data: Any) -> None:
        self._data = data
        self._position = 0

    def read(self, n: int) -> Any:
        """The next n bytes of what ingest_all() read."""
        if self._position + n > len(self._data):
            raise SMDebugError(
                f"{n} bytes at {self._position} are beyond the {len(self._data)} bytes of the "
                f"{self._place()}"
            )
        data = self._data[self._position : self._position + n]
        self._position += n
        return data

    def has_data(self) -> bool:
        return self._position < len(self._data)

    def _place(self) -> str:
        """What it is and where, for messages."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
