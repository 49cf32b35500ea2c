"""S3 objects as files."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from typing import Any

from smdebug._core import S3Bucket
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import SMDebugNotImplementedError
from smdebug.ingested import Ingested


def bucket_of(name: str) -> S3Bucket:
    """The bucket as the environment of this moment reaches it; connections are kept."""
    settings = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    return _open_bucket(name, os.getpid(), settings)


@lru_cache(maxsize=16)
def _open_bucket(name: str, process: int, settings: tuple[tuple[str, str], ...]) -> S3Bucket:
    return S3Bucket.open(name, botocore_credentials)


class TSAccessS3(Ingested):
    """Written in memory and uploaded at close(), or read whole. The bucket must exist."""

    def __init__(
        self,
        bucket_name: str,
        key_name: str,
        aws_access_key_id: str | None = None,
        aws_secret_access_key: str | None = None,
        binary: bool = True,
    ) -> None:
        super().__init__()
        self.bucket_name = bucket_name
        self.key_name = re.sub("/+", "/", key_name)
        self.binary = binary
        self.flushed = False
        self.data: Any = bytearray() if binary else ""

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
        self._ingest(bucket_of(self.bucket_name).get(self.key_name))

    def _place(self) -> str:
        return f"object: s3://{self.bucket_name}/{self.key_name}"


__all__ = ["TSAccessS3"]
