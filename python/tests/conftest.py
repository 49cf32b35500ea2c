"""Fixtures that every test of the package shares."""

from __future__ import annotations

import importlib.util
import logging
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_models
import pytest
import s3_server as s3_server_module
import smdebug
from smdebug import singleton
from smdebug.logger import DuplicateLogFilter, get_logger

# Programs that hand over to Python find the one of the tests, as where an environment is active.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

# Tests of frameworks run in environments that have them.
FRAMEWORKS = {
    "keras": "test_keras*",
    "lightgbm": "test_lightgbm*",
    "mxnet": "test_mxnet*",
    "tensorflow": "test_tensorflow*",
    "tensorflow_estimator": "test_tensorflow_estimator*",
    "torch": "test_pytorch*",
    "xgboost": "test_xgboost*",
}
collect_ignore_glob = [
    tests for name, tests in FRAMEWORKS.items() if importlib.util.find_spec(name) is None
]

VARIABLES = (
    "USE_SMDEBUG",
    "SMDEBUG_CONFIG_FILE_PATH",
    "TENSORBOARD_CONFIG_FILE_PATH",
    "CHECKPOINT_CONFIG_FILE_PATH",
    "TRAINING_JOB_NAME",
    "SMDEBUG_STRICT",
    "SMDEBUG_LAYOUT",
    "RANK",
    "WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
)


# Tests of what readers see run over each layout on disk, unless they are about its files.
LAYOUTS = ("original", "packed")
OVER_BOTH_LAYOUTS = (
    "test_trial",
    "test_tensor",
    "test_diff",
    "test_rules",
    "test_hook_rules",
    "test_s3_layouts",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Repeats the tests of readers for each layout."""
    both = metafunc.module.__name__ in OVER_BOTH_LAYOUTS
    if both and not any(metafunc.definition.iter_markers("original_layout")):
        metafunc.parametrize("layout", LAYOUTS, indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Checks where tests stand, and leaves out those of other backends or generations of Keras."""
    others = []
    for item in items:
        # The server's environment is made for files of certain names alone.
        wanted = item.path.name.startswith(("test_s3_", "test_aws_"))
        if "s3_server" in getattr(item, "fixturenames", ()) and not wanted:
            raise pytest.UsageError(f"{item.nodeid} needs a server: move it to test_s3_*.py.")
        mark = item.get_closest_marker("keras_only")
        package = getattr(item, "callspec", None) and item.callspec.params.get("keras")
        if mark is not None and not keras_models.is_meant_for(package, **mark.kwargs):
            others.append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


@pytest.fixture(autouse=True)
def layout(
    request: pytest.FixtureRequest, clean_process: None, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The layout that hooks and `writing` use in this test."""
    chosen = getattr(request, "param", "original")
    if chosen != "original":
        monkeypatch.setenv("SMDEBUG_LAYOUT", chosen)
    return chosen


@pytest.fixture(autouse=True)
def clean_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable and no hook of another test is left."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    # Nothing arrives after the end marker, unless a test says so.
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    yield
    smdebug.del_hook()
    singleton.reset_enabled()


@pytest.fixture
def strict(clean_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures of ours are raised."""
    monkeypatch.setenv("SMDEBUG_STRICT", "1")


@pytest.fixture(params=keras_models.PACKAGES)
def keras(request: pytest.FixtureRequest) -> Any:
    """Each Keras package of the environment, from the same seed."""
    package = keras_models.load(request.param)
    package.utils.set_random_seed(1)
    return package


@pytest.fixture
def out_dir(tmp_path: Path) -> Path:
    """A directory for a run, which does not exist yet."""
    return tmp_path / "run"


class Messages(logging.Handler):
    """What was logged, as (level, text)."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelname, record.getMessage()))

    def containing(self, text: str) -> list[str]:
        """The messages in which the text is found."""
        return [message for _, message in self.lines if text in message]


@pytest.fixture
def messages() -> Iterator[Messages]:
    """The messages of the package's logger, as if none had been logged before."""
    logger = get_logger()
    for filter_ in logger.filters:
        if isinstance(filter_, DuplicateLogFilter):
            filter_._seen.clear()
    handler = Messages()
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3_server_module.Server]:
    """A real S3 server for all tests of the session."""
    with s3_server_module.running() as server:
        yield server


@pytest.fixture
def s3(s3_server: s3_server_module.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket of the test's own; the environment leads to it."""
    for name, value in s3_server_module.environment(s3_server.url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return s3_server.make_bucket(f"bucket-{uuid.uuid4().hex[:12]}")
