"""Asks everything of a run that a reader can ask, and notes what it was told."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import good_run
import numpy as np
from cases import Case
from smdebug import modes
from smdebug.exceptions import SMDebugError
from smdebug.logger import get_logger
from smdebug.trials import create_trial

# Giant runs are looked at here and there.
MOST_TENSORS = 12
MOST_STEPS = 8
# What is kept of a message.
MOST_TEXT = 4000


class Probe:
    """The notes on one run, for check=False or True."""

    def __init__(self, case: Case, run: Path, out: Path) -> None:
        self.case = case
        self.run = run
        self.out = out
        self.messages: list[str] = []
        self.failures: list[str] = []
        self.wrong_steps: list[int] = []
        self.opened = False
        self.leaked = False

    def note(self, text: str) -> None:
        self.leaked = self.leaked or good_run.SECRET_NAME in text or "root:x:0" in text
        self.messages.append(text[:MOST_TEXT] + text[-MOST_TEXT:])

    def attempt(self, action: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """The result; None after an exception of ours. Any other exception is a failure."""
        try:
            result = action(*args, **options)
        except SMDebugError as error:
            self.note(f"{type(error).__name__}: {error}")
            return None
        except BaseException:
            self.failures.append(traceback.format_exc()[-3000:])
            return None
        self.look(result)
        return result

    def look(self, result: Any) -> None:
        """Whether something came out that lies outside of the run; and it must be printable."""
        if isinstance(result, np.ndarray) and result.dtype.kind == "f":
            self.leaked = self.leaked or bool((result == good_run.SECRET).any())
        elif isinstance(result, str):
            self.leaked = self.leaked or good_run.SECRET_NAME in result
            result.encode()
            if any(ord(c) < 32 and c != "\n" for c in result):
                self.failures.append(f"Control characters are printed: {result[:200]!r}")
        elif isinstance(result, list | tuple | dict):
            for item in list(result)[:1000]:
                self.look(item) if isinstance(item, np.ndarray) else None

    def all(self, check: bool) -> None:
        logger = get_logger()
        handler = logging.Handler()
        handler.emit = lambda record: self.note(record.getMessage())  # type: ignore[method-assign]
        logger.handlers = [handler]
        logger.setLevel(logging.WARNING)
        trial = self.attempt(create_trial, str(self.run), check=check)
        self.opened = trial is not None
        if trial is None:
            return
        self.trial(trial)
        if self.case.during is not None:
            self.case.during(self.run)
            self.trial(trial)
        if not self.case.golden:
            self.values_of_w(trial)

    def trial(self, trial: Any) -> None:
        ask = self.attempt
        names = ask(trial.tensor_names) or []
        ask(trial.tensor_names, regex="w")
        ask(trial.modes)
        ask(trial.workers)
        ask(trial.training_ended)
        for name in ask(trial.collections) or {}:
            ask(trial.tensor_names, collection=name)
        for mode in modes:
            for step in (ask(trial.steps, mode) or [])[:MOST_STEPS]:
                ask(trial.tensor_names, step=step, mode=mode)
                ask(trial.has_passed_step, step, mode)
                ask(trial.global_step, mode, step)
        for step in (0, 1, 2, 3, -1, 2**63 - 1, 2**63, -(2**70)):
            ask(trial.has_passed_step, step)
            ask(trial.mode, step)
            ask(trial.mode_step, step)
        ask(lambda: [trial.last_index_token])
        ask(str, trial)
        ask(repr, trial)
        ask(trial._repr_html_)
        ask(trial.export, self.out / "frame.csv")
        for name in names[: MOST_TENSORS // 2] + names[-MOST_TENSORS // 2 :]:
            tensor = ask(trial.tensor, name)
            if tensor is not None:
                self.tensor(tensor)

    def tensor(self, tensor: Any) -> None:
        ask = self.attempt
        steps = ask(tensor.steps) or []
        for step in [*steps[:MOST_STEPS], 99]:
            for worker in [None, *(ask(tensor.workers, step) or [])[:2], "nobody"]:
                ask(tensor.value, step, worker=worker)
                ask(tensor.reduction_values, step, worker=worker)
                ask(tensor.reduction_value, step, "mean", worker=worker)
                ask(tensor.reduction_value, step, "max", worker=worker, abs=True)
                ask(tensor.shape, step, worker=worker)
        ask(tensor.values)
        ask(tensor.shapes)
        ask(tensor.series)
        ask(tensor.series, "mean")
        ask(lambda: [tensor.original_name])
        ask(str, tensor)
        ask(repr, tensor)
        ask(tensor._repr_html_)

    def values_of_w(self, trial: Any) -> None:
        for step in self.case.untouched:
            found = self.attempt(lambda step=step: trial.tensor("w").value(step))
            right = found is not None and np.array_equal(found, good_run.weights(step))
            if not right:
                self.wrong_steps.append(step)

    def report(self) -> dict[str, Any]:
        unique = list(dict.fromkeys(self.messages))
        return {
            "opened": self.opened,
            "leaked": self.leaked,
            "wrong_steps": self.wrong_steps,
            "failures": self.failures[:5],
            "messages": unique[:60],
        }
