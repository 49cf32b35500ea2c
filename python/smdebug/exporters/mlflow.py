"""Carries numbers to MLflow as metrics of one of its runs."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from smdebug.exceptions import SMDebugRuntimeError, SMDebugValueError
from smdebug.exporters import Exporter, StepNumbers, import_package
from smdebug.exporters.batch import Batch

# What a server takes in one request.
_MAX_METRICS = 1000
_MAX_NAME = 250
_NOT_ALLOWED = re.compile(r"[^\w.\- :/]")
_MARK = 8  # hexadecimal digits that tell apart names that would be the same


class MLflowExporter(Exporter):
    """Metrics of an MLflow run. The step is the global one, the time that of the recording.

    Names begin with the mode, and with the worker unless it is `worker_0`: `train/scalar/loss`.
    NaN and infinities go as they are; MLflow keeps NaN and makes infinities the largest doubles.

    With `run_id` the metrics join a run, which stays as it is at the end; otherwise a run is made and
    ended by `close()`. Numbers wait up to `batch_secs` for others to be sent with.
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        experiment: str = "Default",
        run_id: str | None = None,
        run_name: str | None = None,
        batch_secs: float = 1.0,
        *,
        reductions: str | Iterable[str] = (),
        include_regex: str | Iterable[str] | None = None,
    ) -> None:
        super().__init__(reductions=reductions, include_regex=include_regex)
        if run_id and run_name:
            raise SMDebugValueError(
                f"Give run_id or run_name, not both: {run_id!r} is there already, and a run named "
                f"{run_name!r} would be made."
            )
        self._tracking_uri = tracking_uri
        self._experiment = experiment
        self._run_name = run_name
        self._run_id = run_id
        self._is_ours = not run_id
        self._names = _MetricNames()
        self._batch: Batch[Any] = Batch(self._send, _MAX_METRICS, batch_secs)
        self._metric = import_package("mlflow.entities", "mlflow", "mlflow").Metric
        self._client: Any = None
        self._is_closed = False

    @property
    def run_id(self) -> str | None:
        """MLflow's name for the run; None before the first step of a run that is to be made."""
        return self._run_id

    def export(self, step: StepNumbers) -> None:
        if self._is_closed:
            raise SMDebugRuntimeError("The exporter to MLflow is closed.")
        if self._client is None:
            self._connect()
        milliseconds = int(step.wall_secs * 1000)
        prefix = step.prefix
        self._batch.add(
            self._metric(self._names.clean(prefix + name), number, milliseconds, step.step)
            for name, number in step.numbers.items()
        )

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self._client is None:
            return
        self._batch.flush()
        if self._is_ours:
            with _quiet():
                self._client.set_terminated(self._run_id)

    def _connect(self) -> None:
        mlflow = import_package("mlflow", "mlflow", "mlflow")
        with _quiet():
            client = mlflow.MlflowClient(tracking_uri=self._tracking_uri)
            if not self._is_ours:
                client.get_run(self._run_id)  # tells at once that there is none
            else:
                experiment = self._experiment_id(client, mlflow.exceptions.MlflowException)
                run = client.create_run(experiment, run_name=self._run_name)
                self._run_id = run.info.run_id
        self._client = client

    def _experiment_id(self, client: Any, error: type[Exception]) -> str:
        found = client.get_experiment_by_name(self._experiment)
        if found is not None:
            return found.experiment_id
        try:
            return client.create_experiment(self._experiment)
        except error:
            # Another worker may have made it in between.
            found = client.get_experiment_by_name(self._experiment)
            if found is None:
                raise
            return found.experiment_id

    def _send(self, metrics: list[Any]) -> None:
        self._client.log_batch(self._run_id, metrics=metrics)


class _MetricNames:
    """Names that MLflow allows for names that it may not, always the same and different ones."""

    def __init__(self) -> None:
        self._clean: dict[str, str] = {}
        self._taken: set[str] = set()

    def clean(self, name: str) -> str:
        found = self._clean.get(name)
        if found is None:
            found = allowed_name(name)
            if found in self._taken:
                mark = hashlib.sha256(name.encode()).hexdigest()[:_MARK]
                found = f"{found[: _MAX_NAME - _MARK - 1]}_{mark}"
            self._clean[name] = found
            self._taken.add(found)
        return found


def allowed_name(name: str) -> str:
    """The closest name that MLflow allows: letters, digits, ` _-.:/`, and a clean path."""
    path = _NOT_ALLOWED.sub("_", name)
    if path.startswith(".."):
        path = f"__{path[2:]}"
    path = _clean_path(path)
    if len(path) > _MAX_NAME:
        path = _clean_path(path[: _MAX_NAME - 1])  # a cut after a slash adds one character
    return path


def _clean_path(path: str) -> str:
    # Empty parts, `.` and `..` would make two names one file.
    parts = path.split("/")
    return "/".join("_" * max(len(p), 1) if p in ("", ".", "..") else p for p in parts)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the lines that MLflow prints when it makes a database or ends a run."""
    key = "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"
    before = os.environ.get(key)
    loggers = [logging.getLogger(name) for name in ("mlflow.store.db.utils", "alembic")]
    levels = [logger.level for logger in loggers]
    os.environ[key] = "true"
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if before is None:
            os.environ.pop(key, None)
        else:
            os.environ[key] = before
