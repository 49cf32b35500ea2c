"""Small functions that tools written for the original import."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from smdebug import _core
from smdebug.core.config_constants import (
    CLAIM_FILENAME,
    CONFIG_FILE_PATH_ENV_STR,
    DEFAULT_SAGEMAKER_OUTDIR,
    DEFAULT_SAGEMAKER_TENSORBOARD_PATH,
    TENSORBOARD_CONFIG_FILE_PATH_ENV_STR,
)
from smdebug.core.error_handling_agent import ErrorHandlingAgent
from smdebug.exceptions import (
    IndexReaderException,
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
)

if TYPE_CHECKING:
    import numpy as np

error_handling_agent = ErrorHandlingAgent.get_error_handling_agent()


class FRAMEWORK(Enum):
    """The frameworks of the original."""

    PYTORCH = "pytorch"
    TENSORFLOW = "tensorflow"
    MXNET = "mxnet"
    XGBOOST = "xgboost"


def is_framework_version_supported(framework_type: FRAMEWORK) -> bool:
    """True: an unknown version is tried, not refused."""
    if not isinstance(framework_type, FRAMEWORK):
        raise SMDebugNotImplementedError(f"There is no framework {framework_type!r}.")
    return True


# ---- text and lists


def split(comma_separated_string: str) -> list[str]:
    """The items between commas, without white space around them."""
    return [item.strip() for item in comma_separated_string.split(",")]


def flatten(lis: Iterable[Any]) -> list[Any]:
    """The items of nested lists, in order."""
    out: list[Any] = []
    for item in lis:
        if isinstance(item, Iterable) and not isinstance(item, str):
            out += flatten(item)
        else:
            out.append(item)
    return out


def match_inc(tname: str, include: str | Iterable[str]) -> bool:
    """Whether one of the patterns is found in the name."""
    patterns = [include] if isinstance(include, str) else include
    return any(re.search(pattern, tname) for pattern in patterns)


def index(sorted_list: list[Any], elem: Any) -> int:
    """Where the element is in the list; SMDebugValueError if it is not."""
    try:
        return sorted_list.index(elem)
    except ValueError:
        raise SMDebugValueError(f"{elem!r} is not in the list.") from None


def merge_two_dicts(x: dict[Any, Any], y: dict[Any, Any]) -> dict[Any, Any]:
    """Both; y wins."""
    return {**x, **y}


def load_json_as_dict(s: str | None) -> Any:
    return None if s is None else json.loads(s)


def step_in_range(range_steps: tuple[int | None, int | None], step: int) -> bool:
    """Whether begin <= step < end; None is no limit."""
    begin, end = range_steps
    return (begin is None or step >= begin) and (end is None or step < end)


# ---- tensors


def make_numpy_array(x: Any) -> np.ndarray[Any, Any]:
    """As an array; a single number or text has the shape (1)."""
    import numpy as np

    if x is None:
        raise SMDebugTypeError("None is no tensor.")
    array = np.asarray(x)
    return array if isinstance(x, np.ndarray) or array.ndim > 0 else array.reshape(1)


def size_and_shape(t: Any) -> tuple[int, Any]:
    """(bytes, shape)."""
    if isinstance(t, (bytes, str)):
        return len(t), [len(t)]
    return t.nbytes, t.shape


def validate_custom_tensor_value(tensor_value: Any, make_numpy_fn: Callable[[Any], Any]) -> bool:
    """Whether the value can be saved."""
    try:
        make_numpy_fn(tensor_value)
    except SMDebugTypeError:
        return False
    return True


# ---- names of files


def is_s3(path: str) -> tuple[bool, str | None, str | None]:
    """(whether it is one, bucket, prefix)."""
    if not path.startswith("s3://"):
        return False, None, None
    bucket, _, prefix = path.removeprefix("s3://").partition("/")
    return True, bucket, prefix


def serialize_tf_device(device: str) -> str:
    """The device's name as it stands in file names."""
    return _core.worker_to_file_name(device)


def deserialize_tf_device(device_name: str) -> str:
    return _core.worker_from_file_name(device_name)


def parse_worker_name_from_file(filename: str) -> str:
    """The worker that wrote an event or index file."""
    parsed = _core.parse_step_file_name(filename)
    if parsed is None:
        raise IndexReaderException(f"'{filename}' is not the name of an event or index file.")
    return parsed[1]


def get_worker_name_from_collection_file(filename: str) -> str:
    """The worker that wrote a collections file."""
    found = re.fullmatch(r"(.*)_collections\.(json|ts)", os.path.basename(filename))
    if found is None:
        raise IndexReaderException(f"'{filename}' is not the name of a collections file.")
    return _core.worker_from_file_name(found[1])


def get_relative_event_file_path(path: str) -> str:
    """The last three parts: events/<step>/<file>."""
    return os.path.join(*Path(path).parts[-3:])


def get_path_to_collections(directory: str) -> str:
    return os.path.join(directory, "collections", "000000000", "")


def get_path_to_events_directory(path: str) -> str:
    return os.path.join(path, "events", "")


# ---- files


def ensure_dir(file_path: str, is_file: bool = True) -> None:
    """Makes the folder of a file, or the folder itself."""
    folder = os.path.dirname(file_path) if is_file else file_path
    os.makedirs(folder or ".", exist_ok=True)


def get_immediate_subdirectories(a_dir: str) -> list[str]:
    return [entry.name for entry in os.scandir(a_dir) if entry.is_dir()]


def list_files_in_directory(directory: str, file_regex: str | None = None) -> list[str]:
    """All files below the folder whose names match, sorted within each folder."""
    paths = [os.path.join(root, n) for root, _, names in os.walk(directory) for n in sorted(names)]
    return [p for p in paths if file_regex is None or re.match(file_regex, os.path.basename(p))]


def list_collection_files_in_directory(directory: str) -> list[str]:
    return list_files_in_directory(directory, r".*collections\.json$")


def remove_file_if_exists(file_path: str) -> None:
    Path(file_path).unlink(missing_ok=True)


def remove_claim_file(path: str) -> None:
    """Gives up what is_first_process(path) claimed."""
    if not is_s3(path)[0]:
        remove_file_if_exists(os.path.join(path, CLAIM_FILENAME))


def is_first_process(path: str, is_dir: bool = True) -> bool:
    """True for exactly one of the processes that ask; always true for S3."""
    if is_s3(path)[0]:
        return True
    claim = os.path.join(path, CLAIM_FILENAME) if is_dir else path
    ensure_dir(claim)
    try:
        with open(claim, "x"):
            return True
    except FileExistsError:
        return False


# ---- this process


def get_tb_worker() -> str:
    """The worker in names of TensorBoard files."""
    return f"{os.getpid()}_{socket.gethostname()}"


def get_node_id() -> str:
    from smdebug.core.json_config import get_node_id_from_resource_config

    return get_node_id_from_resource_config() or f"{os.getpid()}-{socket.gethostname()}"


def get_region() -> str | None:
    """AWS_REGION; None if it is not set or blank."""
    return os.getenv("AWS_REGION", "").strip() or None


class SagemakerSimulator:
    """The environment of a managed training job while a `with` block runs."""

    def __init__(
        self,
        json_config_path: str = "/tmp/zcc_config.json",
        tensorboard_dir: str = "/tmp/tensorboard",
        training_job_name: str = "sm_job",
        json_file_contents: str = "{}",
        cleanup: bool = True,
    ) -> None:
        self.out_dir = DEFAULT_SAGEMAKER_OUTDIR
        self.json_config_path = json_config_path
        self.tb_json_config_path = DEFAULT_SAGEMAKER_TENSORBOARD_PATH
        self.tensorboard_dir = tensorboard_dir
        self.training_job_name = training_job_name
        self.json_file_contents = json_file_contents
        self.cleanup = cleanup

    def __enter__(self) -> SagemakerSimulator:
        if self.cleanup:
            shutil.rmtree(self.out_dir, ignore_errors=True)
        tensorboard = json.dumps({"LocalPath": self.tensorboard_dir})
        for path, text in (
            (self.json_config_path, self.json_file_contents),
            (self.tb_json_config_path, tensorboard),
        ):
            ensure_dir(path)
            Path(path).write_text(text, encoding="utf-8")
        self._before = dict(os.environ)
        os.environ[CONFIG_FILE_PATH_ENV_STR] = self.json_config_path
        os.environ[TENSORBOARD_CONFIG_FILE_PATH_ENV_STR] = self.tb_json_config_path
        os.environ["TRAINING_JOB_NAME"] = self.training_job_name
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.environ.clear()
        os.environ.update(self._before)
        if self.cleanup:
            remove_file_if_exists(self.json_config_path)
            remove_file_if_exists(self.tb_json_config_path)


class ScriptSimulator:
    """A script outside of a managed job: its output folder is removed before and after."""

    def __init__(self, out_dir: str = "/tmp/test", tensorboard_dir: str | None = None) -> None:
        self.out_dir = out_dir
        self.tensorboard_dir = tensorboard_dir

    def __enter__(self) -> ScriptSimulator:
        self._remove()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._remove()

    def _remove(self) -> None:
        for folder in (self.out_dir, self.tensorboard_dir):
            if folder:
                shutil.rmtree(folder, ignore_errors=True)
