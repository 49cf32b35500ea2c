"""S3 objects as files: not in this version."""

from __future__ import annotations

from typing import Any, NoReturn

from smdebug.exceptions import SMDebugNotImplementedError


def refuse_s3(what: str) -> NoReturn:
    """Says that S3 cannot be used."""
    raise SMDebugNotImplementedError(f"{what}: this version of smdebug does not read or write S3.")


class TSAccessS3:
    """Raises SMDebugNotImplementedError."""

    def __init__(self, bucket_name: str, key_name: str, *args: Any, **kwargs: Any) -> None:
        refuse_s3(f"s3://{bucket_name}/{key_name}")


__all__ = ["TSAccessS3"]
