"""Opens recorded runs by the place where they are."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError, SMDebugValueError
from smdebug.trial import Trial


class LocalTrial(Trial):
    """A run in a local directory."""

    def __init__(
        self,
        name: str,
        dirname: str | os.PathLike[str],
        range_steps: Sequence[int | None] | None = None,
        parallel: bool = True,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
    ) -> None:
        self.parallel = parallel  # files are always read on several threads
        path = os.path.expanduser(os.fspath(dirname))
        super().__init__(name, path, range_steps, check, index_mode, cache)


class S3Trial(Trial):
    """A run in an object store."""

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: Sequence[int | None] | None = None,
        check: bool = False,
        index_mode: bool = True,
        cache: bool = False,
    ) -> None:
        self.bucket_name = bucket_name
        self.prefix_name = prefix_name.strip("/")
        path = f"s3://{bucket_name}/{self.prefix_name}"
        super().__init__(name, path, range_steps, check, index_mode, cache)

    def _token_root(self) -> str:
        return f"{self.prefix_name}/" if self.prefix_name else ""


def create_trial(
    path: str | os.PathLike[str] | None = None,
    name: str | None = None,
    profiler: bool = False,
    output_dir: str = "/opt/ml/processing/outputs/",
    *,
    out_dir: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Trial:
    """Opens the run in a local directory or under `s3://bucket/prefix`.

    Returns once the run has begun. `out_dir` is another name of `path`; further arguments are
    `range_steps`, `check`, `index_mode`, `cache` and, for directories, `parallel`.
    """
    if profiler:
        raise SMDebugNotImplementedError(
            "Profiler runs cannot be opened: smdebug records tensors, not profiles."
        )
    if (path is None) == (out_dir is None):
        raise SMDebugValueError("Give the run's place as path (or as out_dir, which is the same).")
    text = os.fspath(path if path is not None else out_dir)  # type: ignore[arg-type]
    if not isinstance(text, str) or not text.strip():
        raise SMDebugValueError(f"path must be a directory or s3://bucket/prefix, not {text!r}.")
    text = text.strip()
    if name is None:
        name = os.path.basename(text.rstrip("/"))
    if text.startswith("s3://"):
        bucket, _, prefix = text[len("s3://") :].partition("/")
        kwargs.pop("parallel", None)
        return S3Trial(name, bucket, re.sub("/+", "/", prefix), **kwargs)
    return LocalTrial(name, text, **kwargs)
