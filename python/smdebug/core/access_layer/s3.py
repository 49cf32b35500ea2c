"""S3 objects as files."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from types import TracebackType
from typing import Any

from smdebug._core import S3Bucket
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import SMDebugError, SMDebugNotImplementedError


def bucket_of(name: str) -> S3Bucket:
    """The bucket as the environment of this moment reaches it; connections are kept."""
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    return _open_bucket(name, os.getpid(), settings)


@lru_cache(maxsize=16)
def _open_bucket(name: str, process: int, settings: tuple[tuple[str, str], ...]) -> S3Bucket:
    return S3Bucket.open(name, botocore_credentials)


class TSAccessS3:
    """Written in memory and uploaded at close(), or read whole. The bucket must exist."""

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        binary: bool = True,
    ) -> None:
        self.bucket_name = bucket_name
        self.key_name = re.sub("/+", "/", key_name)
        self.binary = binary
        self.flushed = False
        self.data: Any = bytearray() if binary else ""
        self._data = b""
        self._position = 0

    def open(self, bucket_name: str, mode: str) -> None:
        raise SMDebugNotImplementedError("An S3 object is opened by the constructor.")

    def write(self, _data: Any) -> list[int]:
        """[where it lies, how long it is]."""
        start = len(self.data)
        self.data += _data
        return [start, len(_data)]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self.flushed:
            return
        content = bytes(self.data) if self.binary else self.data.encode("utf-8")
        bucket_of(self.bucket_name).put(self.key_name, content)
        self.data = bytearray() if self.binary else ""
        self.flushed = True

    def ingest_all(self) -> None:
        """Reads the whole object, for read()."""
        self._data = bucket_of(self.bucket_name).get(self.key_name)
        self._position = 0

    def read(self, n: int) -> bytes:
        """The next n bytes of what ingest_all() read."""
        if self._position + n > len(self._data):
            raise SMDebugError(
                f"{n} bytes at {self._position} are beyond the {len(self._data)} bytes of the object: "
                f"s3://{self.bucket_name}/{self.key_name}"
            )
        data = self._data[self._position : self._position + n]
        self._position += n
        return data

    def has_data(self) -> bool:
        return self._position < len(self._data)

    def __enter__(self) -> TSAccessS3:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


__all__ = ["TSAccessS3"]
