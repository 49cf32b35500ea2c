"""Carries the numbers of a run to other tools: MLflow, Weights & Biases, OpenTelemetry.

An exporter is given the numbers of one step after the other, by a hook while it records or by
`Trial.export_to` afterwards. Each tool has a file of its own here and needs its package only when an
exporter is made.
"""

from __future__ import annotations

import abc
import contextlib
import importlib
import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from smdebug import _core
from smdebug._core import ModeKeys
from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugTypeError,
    SMDebugValueError,
)

__all__ = ["Choice", "Exporter", "StepNumbers", "create_exporter"]

# The worker of a run that has one: it needs no name.
_FIRST_WORKER = "worker_0"


@dataclass(frozen=True, slots=True)
class StepNumbers:
    """What one worker saved at one step, as numbers."""

    step: int  # global
    mode: ModeKeys
    mode_step: int
    wall_secs: float  # when it was recorded, since 1970
    worker: str
    numbers: Mapping[str, float]  # scalars by their names, reductions by `reduction_name`

    @property
    def prefix(self) -> str:
        """What tools put before each name, so that modes and workers do not mix.

        `train/` for the worker `worker_0`, `train/worker_1/` for another one; a step without a mode
        has no mode there.
        """
        mode = "" if self.mode == ModeKeys.GLOBAL else f"{self.mode.name.lower()}/"
        worker = "" if self.worker == _FIRST_WORKER else f"{self.worker}/"
        return mode + worker


def reduction_name(tensor: str, reduction: str) -> str:
    """The name under which a reduction of a tensor is exported."""
    return f"{tensor}/{reduction}"


class Choice:
    """Which numbers an exporter is given. Immutable, so any thread may ask.

    Every tensor that is a single number is exported under its own name. Of the others these
    reductions are, and with `include_regex` only of those in whose names one of the patterns is found.
    """

    def __init__(
        self,
        reductions: str | Iterable[str] = (),
        include_regex: str | Iterable[str] | None = None,
    ) -> None:
        names = [reductions] if isinstance(reductions, str) else list(reductions)
        known = [prefix + name for prefix in ("", "abs_") for name, _ in _core.reduction_names()]
        for name in names:
            if name not in known:
                raise SMDebugValueError(
                    f"{name!r} is no reduction; there are {', '.join(known)}."
                    f"{_core.did_you_mean(str(name), known)}"
                )
        self._reductions = tuple(dict.fromkeys(names))
        self._patterns: _core.Collection | None = None
        if include_regex is not None:
            self._patterns = _core.Collection("exported")
            self._patterns.include(
                include_regex if isinstance(include_regex, str) else list(include_regex)
            )

    @property
    def reductions(self) -> tuple[str, ...]:
        """The reductions that are exported."""
        return self._reductions

    def reductions_of(self, tensor: str) -> tuple[str, ...]:
        """The reductions of a tensor that are exported, if it is not a single number."""
        if self._patterns is not None and not self._patterns.holds(tensor):
            return ()
        return self._reductions

    def parts(self, name: str) -> tuple[str, str | None]:
        """The tensor and the reduction that a name stands for; None: the tensor is a number.

        A number that is called like a reduction, such as `x/mean`, is taken for one, unless it was
        saved as a scalar.
        """
        tensor, slash, last = name.rpartition("/")
        is_reduction = slash and not name.startswith(_core.SCALAR_PREFIX)
        if is_reduction and last in self.reductions_of(tensor):
            return tensor, last
        return name, None


class Exporter(abc.ABC):
    """Carries the numbers of steps to one tool. One thread at a time, which need not be the main one.

    Making one checks its settings and imports the tool's package; the first step connects. Prints
    nothing. What fails is raised, and the exporter is not used again then, except for `close()`.
    """

    def __init__(
        self,
        *,
        reductions: str | Iterable[str] = (),
        include_regex: str | Iterable[str] | None = None,
    ) -> None:
        self.choice = Choice(reductions, include_regex)

    @abc.abstractmethod
    def export(self, step: StepNumbers) -> None:
        """Takes the numbers that `choice` selects of a step; they may be sent later."""

    @abc.abstractmethod
    def close(self) -> None:
        """Sends what is left and lets go of the tool; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with contextlib.suppress(Exception):  # what failed first is what people want to know
            self.close()


_CLASSES = {
    "mlflow": "MLflowExporter",
    "opentelemetry": "OpenTelemetryExporter",
    "wandb": "WandbExporter",
}


def create_exporter(name: str, /, **settings: Any) -> Exporter:
    """The exporter of this name: `mlflow`, `opentelemetry` or `wandb`.

    `settings` are the arguments of its class; `reductions` and `include_regex` are common to all.
    """
    if name not in _CLASSES:
        raise SMDebugValueError(
            f"There is no exporter {name!r}; there are {', '.join(_CLASSES)}."
            f"{_core.did_you_mean(str(name), list(_CLASSES))}"
        )
    made: type[Exporter] = getattr(
        importlib.import_module(f"smdebug.exporters.{name}"), _CLASSES[name]
    )
    known = list(inspect.signature(made).parameters)
    for setting in settings:
        if setting not in known:
            raise SMDebugTypeError(
                f"The exporter '{name}' has no setting '{setting}'; there are {', '.join(known)}."
                f"{_core.did_you_mean(setting, known)}"
            )
    return made(**settings)


def import_package(module: str, package: str, exporter: str) -> Any:
    """A module of a tool; `package` is what pip calls it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the package is there, but something that it needs is not
        raise SMDebugNotImplementedError(
            f"The exporter '{exporter}' needs the package {package}, which is not installed; "
            f"install it with: pip install {package}"
        ) from error
