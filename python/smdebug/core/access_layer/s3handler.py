"""Listing, reading and deleting S3 objects, for tools written for the original."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from smdebug.core.access_layer.s3 import bucket_of
from smdebug.core.utils import is_s3
from smdebug.exceptions import SMDebugError, SMDebugTypeError

_THREADS = 16
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class ListRequest:
    """Objects below a prefix."""

    def __init__(
        self, Bucket: str, Prefix: str = "", Delimiter: str = "", StartAfter: str = ""
    ) -> None:
        self.bucket = Bucket
        self.prefix = Prefix
        self.delimiter = Delimiter
        self.start_after = StartAfter


class DeleteRequest:
    """Objects below a prefix."""

    def __init__(self, Bucket: str, Prefix: str = "") -> None:
        self.bucket = Bucket
        self.prefix = Prefix


class ReadObjectRequest:
    """An object, or a range of its bytes."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        self.is_s3, self.bucket, key = is_s3(path)
        self.key = path if key is None else key
        self.start = 0 if start is None else start
        self.length = length
        self.download_entire_file = start is None


class S3Handler:
    """Static methods only; credentials and endpoint come from the environment."""

    @staticmethod
    def list_prefix(lr: ListRequest) -> list[str]:
        """Keys, after the folders if there is a delimiter."""
        keys, folders = bucket_of(lr.bucket).list(lr.prefix, lr.start_after or "", lr.delimiter)
        return [*folders, *keys]

    @staticmethod
    def list_prefixes(list_requests: list[ListRequest]) -> list[list[str]]:
        if not isinstance(list_requests, list):
            raise SMDebugTypeError("list_prefixes needs a list of ListRequest objects.")
        return [S3Handler.list_prefix(request) for request in list_requests]

    @staticmethod
    def get_object(object_request: ReadObjectRequest) -> bytes:
        """The bytes; SMDebugError if there is no such object."""
        if object_request.bucket is None:
            raise SMDebugError(f"'{object_request.key}' is no place in S3.")
        try:
            return bucket_of(object_request.bucket).get(
                object_request.key, object_request.start, _length_of(object_request)
            )
        except FileNotFoundError as error:
            raise SMDebugError(str(error)) from error

    @staticmethod
    def get_objects(
        object_requests: list[ReadObjectRequest],
        use_multiprocessing: bool = True,
        n_process: int | None = None,
    ) -> list[bytes]:
        """In the order of the requests, several at a time."""
        if not isinstance(object_requests, list):
            raise SMDebugTypeError("get_objects needs a list of ReadObjectRequest objects.")
        return _all_at_once(S3Handler.get_object, object_requests)

    @staticmethod
    def delete_prefix(path: str | None = None, delete_request: DeleteRequest | None = None) -> None:
        if path is not None and delete_request is not None:
            raise SMDebugError("Either a path or a delete_request is needed, not both.")
        if path is not None:
            found, bucket, prefix = is_s3(path)
            if not found:
                raise SMDebugError(f"'{path}' is no place in S3.")
            delete_request = DeleteRequest(bucket or "", prefix or "")
        if delete_request is not None:
            S3Handler.delete_prefixes([delete_request])

    @staticmethod
    def delete_prefixes(delete_requests: list[DeleteRequest] | None) -> None:
        for request in delete_requests or []:
            bucket = bucket_of(request.bucket)
            _all_at_once(bucket.remove, bucket.list(request.prefix)[0])


def _length_of(request: ReadObjectRequest) -> int | None:
    return None if request.download_entire_file else request.length


def _all_at_once(call: Callable[[_In], _Out], arguments: list[_In]) -> list[_Out]:
    if len(arguments) < 2:
        return [call(argument) for argument in arguments]
    with ThreadPoolExecutor(min(_THREADS, len(arguments))) as pool:
        return list(pool.map(call, arguments))


__all__ = ["DeleteRequest", "ListRequest", "ReadObjectRequest", "S3Handler"]
