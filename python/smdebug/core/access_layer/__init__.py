"""Files of a run, local or in S3, for tools written for the original."""

from smdebug.core.access_layer.file import TSAccessFile
from smdebug.core.access_layer.s3 import TSAccessS3
from smdebug.core.access_layer.utils import (
    DEFAULT_GRACETIME_FOR_RULE_STOP_SEC,
    ENV_RULE_STOP_SIGNAL_FILENAME,
    check_dir_exists,
    delete_s3_prefixes,
    has_training_ended,
    is_rule_signalled_gracetime_passed,
    training_has_ended,
)

__all__ = [
    "DEFAULT_GRACETIME_FOR_RULE_STOP_SEC",
    "ENV_RULE_STOP_SIGNAL_FILENAME",
    "TSAccessFile",
    "TSAccessS3",
    "check_dir_exists",
    "delete_s3_prefixes",
    "has_training_ended",
    "is_rule_signalled_gracetime_passed",
    "training_has_ended",
]
