"""Where a hook writes, for tools written for the original."""

from __future__ import annotations

import os

from smdebug.core.access_layer.utils import check_dir_exists
from smdebug.core.json_config import get_tensorboard_dir_from_json_config
from smdebug.core.utils import is_s3
from smdebug.exceptions import SMDebugRuntimeError


def verify_and_get_out_dir(out_dir: str | None) -> str:
    """The directory with `~` expanded. SMDebugRuntimeError if it holds a finished job."""
    if out_dir is None:
        raise RuntimeError("out_dir is needed: a directory for the recorded run.")
    if not is_s3(out_dir)[0]:
        out_dir = os.path.expanduser(out_dir)
    if check_dir_exists(out_dir):
        raise SMDebugRuntimeError(f"The output directory already holds a finished job: {out_dir}")
    return out_dir


def get_tensorboard_dir(
    export_tensorboard: bool, tensorboard_dir: str | None, out_dir: str
) -> str | None:
    """Where TensorBoard files go; None: nowhere. The job's configuration file wins."""
    configured = get_tensorboard_dir_from_json_config()
    if configured is not None:
        return configured
    if tensorboard_dir is not None:
        return os.path.expanduser(tensorboard_dir)
    return os.path.join(out_dir, "tensorboard") if export_tensorboard else None


__all__ = ["get_tensorboard_dir", "verify_and_get_out_dir"]
