"""The end of a job, and whether a folder exists, for tools written for the original."""

from __future__ import annotations

import os
import re
import time

from smdebug._core import END_MARKER, in_sagemaker
from smdebug.core.access_layer.file import TSAccessFile
from smdebug.core.access_layer.s3 import TSAccessS3, bucket_of
from smdebug.core.access_layer.s3handler import DeleteRequest, S3Handler
from smdebug.core.utils import is_s3

END_OF_JOB_FILENAME = END_MARKER
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60
_ENV_GRACE_TIME = "rule_stop_grace_time_secs"


def training_has_ended(trial_prefix: str) -> None:
    """Marks the job as ended, except in SageMaker, which has its own way."""
    if in_sagemaker():
        return
    path = os.path.join(trial_prefix, END_OF_JOB_FILENAME)
    on_s3, bucket, key = is_s3(path)
    if on_s3:
        TSAccessS3(bucket or "", key or "", binary=False).close()
    else:
        TSAccessFile(path, "w").close()


def has_training_ended(trial_prefix: str) -> bool:
    return file_exists(os.path.join(trial_prefix, END_OF_JOB_FILENAME))


def file_exists(file_path: str) -> bool:
    on_s3, bucket, key = is_s3(file_path)
    if on_s3:
        return bucket_of(bucket or "").exists(re.sub("/+", "/", key or ""))
    return os.path.exists(file_path)


def check_dir_exists(path: str) -> bool:
    """Whether the folder holds a finished job."""
    return has_training_ended(path)


def delete_s3_prefixes(bucket: str, keys: str | list[str]) -> None:
    """Deletes every object whose key begins with one of these."""
    S3Handler.delete_prefixes(
        [DeleteRequest(bucket, key) for key in (keys if isinstance(keys, list) else [keys])]
    )


def is_rule_signalled_gracetime_passed(trial_prefix: str) -> bool:
    """Whether the time that a rule was given to stop is over.

    The file that the environment names holds the second at which the signal was given.
    """
    name = os.getenv(ENV_RULE_STOP_SIGNAL_FILENAME)
    if name is None:
        return False
    path = os.path.join(trial_prefix, name)
    if not file_exists(path):
        return False
    try:
        signalled = float(_text_of(path))
        grace_time = float(os.getenv(_ENV_GRACE_TIME, DEFAULT_GRACETIME_FOR_RULE_STOP_SEC))
    except ValueError:
        return True
    return time.time() > signalled + grace_time


def _text_of(path: str) -> str:
    on_s3, bucket, key = is_s3(path)
    if on_s3:
        return bucket_of(bucket or "").get(key or "").decode("utf-8")
    with open(path, encoding="utf-8") as file:
        return file.read()


__all__ = [
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "END_OF_JOB_FILENAME",
    "ENV_RULE_STOP_SIGNAL_FILENAME",
    "check_dir_exists",
    "delete_s3_prefixes",
    "file_exists",
    "has_training_ended",
    "is_rule_signalled_gracetime_passed",
    "training_has_ended",
]
