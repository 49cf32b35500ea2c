"""Listing S3 objects: not in this version."""

from __future__ import annotations

from typing import NoReturn

from smdebug.core.access_layer.s3 import refuse_s3


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> NoReturn:
    refuse_s3(f"s3://{bucket}/{prefix}")


__all__ = ["list_s3_objects"]
