"""Keeps failures of the debugger away from the training, for tools written for the original.

Our own hooks have a guard of their own, in the core.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

from smdebug.logger import get_logger

BASE_ERROR_MESSAGE = "smdebug failed and is switched off for the rest of the training job."


class ErrorHandlingAgent:
    """One per process: whether the debugger is switched off, and the hook it looks at."""

    _agent: ClassVar[ErrorHandlingAgent | None] = None

    def __init__(self) -> None:
        self.disable_smdebug = False
        self.hook: Any = None

    @classmethod
    def get_error_handling_agent(cls) -> ErrorHandlingAgent:
        if cls._agent is None:
            cls._agent = cls()
        return cls._agent

    def set_hook(self, hook: Any) -> None:
        self.hook = hook

    def catch_smdebug_errors(
        self, default_return_val: Any = None
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """A decorator: with a default configuration an exception switches the debugger off.

        The call then gives the default value, or what it returns if it can be called.
        With any other configuration the exception goes on.
        """

        def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(function)
            def guarded(*args: Any, **kwargs: Any) -> Any:
                if not self.disable_smdebug:
                    try:
                        return function(*args, **kwargs)
                    except Exception:
                        if self.hook is not None and not self.hook.has_default_hook_configuration():
                            raise
                        get_logger().exception(BASE_ERROR_MESSAGE)
                        self.disable_smdebug = True
                if callable(default_return_val):
                    return default_return_val(*args, **kwargs)
                return default_return_val

            return guarded

        return decorate


__all__ = ["BASE_ERROR_MESSAGE", "ErrorHandlingAgent"]
