"""The end of a job, and whether a folder exists, for tools written for the original."""

from __future__ import annotations

import os
import time

from smdebug._core import END_MARKER, in_sagemaker
from smdebug.core.access_layer.file import TSAccessFile
from smdebug.core.access_layer.s3 import refuse_s3
from smdebug.core.utils import is_s3

END_OF_JOB_FILENAME = END_MARKER
ENV_RULE_STOP_SIGNAL_FILENAME = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
DEFAULT_GRACETIME_FOR_RULE_STOP_SEC = 60
_ENV_GRACE_TIME = "rule_stop_grace_time_secs"


def training_has_ended(trial_prefix: str) -> None:
    """Marks the job as ended, except in SageMaker, which has its own way."""
    if in_sagemaker():
        return
    _refuse(trial_prefix)
    TSAccessFile(os.path.join(trial_prefix, END_OF_JOB_FILENAME), "w").close()


def has_training_ended(trial_prefix: str) -> bool:
    return file_exists(os.path.join(trial_prefix, END_OF_JOB_FILENAME))


def file_exists(file_path: str) -> bool:
    _refuse(file_path)
    return os.path.exists(file_path)


def check_dir_exists(path: str) -> bool:
    """Whether the folder holds a finished job."""
    return has_training_ended(path)


def delete_s3_prefixes(bucket: str, keys: str | list[str]) -> None:
    refuse_s3(f"s3://{bucket}")


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
        with open(path, encoding="utf-8") as file:
            signalled = float(file.read())
        grace_time = float(os.getenv(_ENV_GRACE_TIME, DEFAULT_GRACETIME_FOR_RULE_STOP_SEC))
    except ValueError:
        return True
    return time.time() > signalled + grace_time


def _refuse(path: str) -> None:
    if is_s3(path)[0]:
        refuse_s3(path)


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
