"""Runs tasks on a Ray cluster. The workers must see the runs and have smdebug."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from smdebug.exceptions import SMDebugNotImplementedError


class RayExecutor(Executor):
    """Each task is a remote function; `options` are those of Ray, such as `num_cpus`.

    Connects to Ray if nobody has; Ray stays up when the executor is shut down.
    """

    def __init__(self, **options: Any) -> None:
        try:
            import ray
        except ModuleNotFoundError as error:
            raise SMDebugNotImplementedError(
                "Running rules on Ray needs its package; install it with: pip install ray"
            ) from error
        self._ray: Any = ray
        self._options = options
        if not ray.is_initialized():
            ray.init()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Starts the function on a worker."""
        remote = self._ray.remote(_call)
        if self._options:
            remote = remote.options(**self._options)
        future: Future[Any] = remote.remote(fn, args, kwargs).future()
        return future


def _call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ray makes an actor of a class and nothing of a built-in function; of this, a task."""
    return fn(*args, **kwargs)
