"""Listing S3 objects, for tools written for the original."""

from __future__ import annotations

from smdebug.core.access_layer.s3handler import ListRequest, S3Handler


def list_s3_objects(
    bucket: str, prefix: str, start_after_key: str | None = None, delimiter: str = ""
) -> tuple[list[str], str | None]:
    """(keys after the given one, the last of them or None)."""
    request = ListRequest(bucket, prefix, delimiter, start_after_key or prefix)
    keys = S3Handler.list_prefix(request)
    return keys, keys[-1] if keys else None


__all__ = ["list_s3_objects"]
