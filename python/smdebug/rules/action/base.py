"""What all actions have in common: when they act, and that a failure of theirs stays theirs."""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, ClassVar

from smdebug import run_control
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.logger import get_logger
from smdebug.rules.hit import SEVERITIES, Hit, severity_argument


class ActionFailed(Exception):
    """An action could not do its work; the text says why. Logged, never seen by the rule."""


class Action(abc.ABC):
    """Acts when the condition of a rule is met. One thread at a time.

    `cooldown_s`: seconds during which it does not act again. `max_fires`: how often it acts at all;
    0 is without limit. `min_severity`: hits below it are ignored. `dry_run`: only logs what it would
    do. `any_host`: acts for runs of other hosts, too. Numbers and flags may be texts.
    """

    default_max_fires: ClassVar[int] = 0

    def __init__(
        self,
        *,
        cooldown_s: float | str = 0.0,
        max_fires: int | str | None = None,
        min_severity: str = SEVERITIES[0],
        dry_run: bool | str = False,
        any_host: bool | str = False,
    ) -> None:
        self.rule_name = ""
        self.cooldown_s = number(cooldown_s, "cooldown_s")
        limit = self.default_max_fires if max_fires is None else max_fires
        self.max_fires = int(number(limit, "max_fires"))
        self.min_severity = severity_argument(str(min_severity).strip().lower())
        self.dry_run = flag(dry_run, "dry_run")
        self.any_host = flag(any_host, "any_host")
        self._fires = 0
        self._last_fire_secs: float | None = None
        self._now_secs = time.monotonic

    @abc.abstractmethod
    def perform(self, hit: Hit) -> str:
        """Acts, and says in a sentence what was done. Raises ActionFailed or anything else."""

    @abc.abstractmethod
    def intent(self, hit: Hit) -> str:
        """What `perform` would do, to follow "would"."""

    def invoke(self, message: str = "", hit: Hit | None = None) -> None:
        """Acts, unless its options forbid it. Logs what happened and raises nothing."""
        hit = Hit(self.rule_name, -1, message) if hit is None else hit
        name, logger = type(self).__name__, get_logger()
        try:
            reason = self._reason_not_to_act(hit)
            if reason:
                logger.info(f"Action {name} of rule {hit.rule} does not act: {reason}")
                return
            with broken_pipes_as_errors():
                done = f"It would {self.intent(hit)}." if self.dry_run else self.perform(hit)
        except ActionFailed as error:
            logger.error(f"Action {name} of rule {hit.rule} failed: {error}")
        except Exception as error:  # a failing action must not hide the hit
            logger.error(
                f"Action {name} of rule {hit.rule} failed: {type(error).__name__}: {error}"
            )
        else:
            self._count()
            logger.info(f"Action {name} of rule {hit.rule}: {done}")

    def _count(self) -> None:
        self._fires += 1
        self._last_fire_secs = self._now_secs()

    def _reason_not_to_act(self, hit: Hit) -> str:
        if SEVERITIES.index(severity_argument(hit.severity)) < SEVERITIES.index(self.min_severity):
            return f"the severity {hit.severity} is below {self.min_severity}."
        if self.max_fires and self._fires >= self.max_fires:
            return f"it has acted {self._fires} times, which is the limit."
        if self._last_fire_secs is not None:
            passed = self._now_secs() - self._last_fire_secs
            if passed < self.cooldown_s:
                return f"it acted {passed:.0f} s ago, and waits {self.cooldown_s:g} s in between."
        if not self.any_host and hit.path and is_of_another_host(hit.path):
            return f"the run is not known to be of this host, and any_host is not set: {hit.path}"
        return ""


@contextlib.contextmanager
def broken_pipes_as_errors() -> Iterator[None]:
    """A peer that goes away is an error in this thread, even where SIGPIPE ends the program."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
    try:
        yield
    finally:
        if signal.SIGPIPE not in before:
            signal.sigtimedwait({signal.SIGPIPE}, 0)  # one that came is not delivered later
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def is_of_another_host(path: str) -> bool:
    """Whether a run lies in an object store, or no process that announced it is of this host."""
    if "://" in path:
        return True
    announced = run_control.records(path)
    return bool(announced) and not any(record.is_of_this_host for record in announced)


def number(value: Any, name: str) -> float:
    """A number that is not negative, or its text."""
    try:
        if isinstance(value, bool):
            raise ValueError
        found = float(value)
    except (TypeError, ValueError):
        raise SMDebugValueError(f"{name} must be a number, not {value!r}.") from None
    if not 0 <= found < float("inf"):
        raise SMDebugValueError(f"{name} must be a number from 0 on, not {value!r}.")
    return found


def flag(value: Any, name: str) -> bool:
    """True or False, or one of their texts."""
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = words.get(str(value).strip().lower())
    if found is None:
        raise SMDebugValueError(f"{name} must be true or false, not {value!r}.")
    return found


def text(value: Any, name: str) -> str:
    """A text that is not empty."""
    if not isinstance(value, str):
        raise SMDebugTypeError(f"{name} must be a text, not {value!r}.")
    if not value.strip():
        raise SMDebugValueError(f"{name} must not be empty.")
    return value.strip()


def secret(variable: str) -> str:
    """What the environment variable of this name holds, when it is needed."""
    found = os.environ.get(variable)
    if not found:
        raise ActionFailed(
            f"The environment variable {variable}, which holds the secret, is not set."
        )
    return found
