"""Has flight recorders written when the process dies by an exception or by SIGTERM.

Nothing is installed before a hook has a recorder, and what was there before is called afterwards.
Forked children write nothing. SIGKILL cannot be caught: what was in memory is lost then.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import weakref
from types import FrameType, TracebackType
from typing import Any, Protocol


class Speaker(Protocol):
    """Who has something to write. Never fails."""

    def _last_words(self, reason: str, may_go_on: bool = False) -> None: ...


_speakers: weakref.WeakSet[Any] = weakref.WeakSet()
_pid = 0
_excepthook_before: Any = None
_sigterm_before: Any = None


def register(speaker: Speaker) -> None:
    """From now on `speaker` is told when the process dies."""
    global _pid
    if os.getpid() != _pid:
        _speakers.clear()  # those of a parent process
        _pid = os.getpid()
    _speakers.add(speaker)
    _install()


def unregister(speaker: Speaker) -> None:
    """The speaker has nothing to write any more."""
    _speakers.discard(speaker)
    if not _speakers:
        _uninstall()


def died_of() -> str | None:
    """The exception that ended the program, as far as the interpreter tells."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return None if error is None else describe(error)


def describe(error: BaseException) -> str:
    """Type and message in one line."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _install() -> None:
    global _excepthook_before, _sigterm_before
    if sys.excepthook is not _on_exception:
        _excepthook_before, sys.excepthook = sys.excepthook, _on_exception
    if threading.current_thread() is not threading.main_thread():
        return
    handler = signal.getsignal(signal.SIGTERM)
    # None: a handler that is not Python's could not be called afterwards.
    if handler not in (None, signal.SIG_IGN, _on_sigterm):
        _sigterm_before = handler
        signal.signal(signal.SIGTERM, _on_sigterm)


def _uninstall() -> None:
    global _excepthook_before, _sigterm_before
    if sys.excepthook is _on_exception:
        sys.excepthook = _excepthook_before
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is _on_sigterm:
        signal.signal(signal.SIGTERM, _sigterm_before)


def _speak(reason: str, may_go_on: bool = False) -> None:
    if os.getpid() == _pid:
        for speaker in list(_speakers):
            speaker._last_words(reason, may_go_on)


def _on_exception(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    _speak(describe(error))
    _excepthook_before(kind, error, traceback)


def _on_sigterm(number: int, frame: FrameType | None) -> None:
    if callable(_sigterm_before):
        # Many handlers only note that the training is to end after this step.
        _speak("SIGTERM", may_go_on=True)
        _sigterm_before(number, frame)
        return
    _speak("SIGTERM")
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
