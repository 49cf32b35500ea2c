"""Listing, reading and deleting S3 objects: not in this version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from smdebug.core.access_layer.s3 import refuse_s3


@dataclass
class ListRequest:
    """Objects below a prefix."""

    Bucket: str
    Prefix: str = ""
    Delimiter: str = ""
    StartAfter: str = ""


@dataclass
class DeleteRequest:
    """Objects below a prefix."""

    Bucket: str
    Prefix: str = ""


class ReadObjectRequest:
    """An object, or a range of its bytes."""

    def __init__(self, path: str, start: int | None = None, length: int | None = None) -> None:
        self.path = path
        self.start = start
        self.length = length


class S3Handler:
    """Every method raises SMDebugNotImplementedError."""

    @staticmethod
    def list_prefix(lr: ListRequest) -> NoReturn:
        refuse_s3("list_prefix")

    @staticmethod
    def list_prefixes(lrs: list[ListRequest]) -> NoReturn:
        refuse_s3("list_prefixes")

    @staticmethod
    def get_object(request: ReadObjectRequest) -> NoReturn:
        refuse_s3("get_object")

    @staticmethod
    def get_objects(requests: list[ReadObjectRequest]) -> NoReturn:
        refuse_s3("get_objects")

    @staticmethod
    def delete_prefix(path: Any = None, delete_request: DeleteRequest | None = None) -> NoReturn:
        refuse_s3("delete_prefix")

    @staticmethod
    def delete_prefixes(delete_requests: list[DeleteRequest]) -> NoReturn:
        refuse_s3("delete_prefixes")


__all__ = ["DeleteRequest", "ListRequest", "ReadObjectRequest", "S3Handler"]
