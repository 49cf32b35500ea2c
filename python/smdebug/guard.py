"""What a failure of ours does to the training: nothing, unless SMDEBUG_STRICT is set."""

from __future__ import annotations

from smdebug.exceptions import TrainingStopRequested
from smdebug.logger import get_logger

MOST_FAILURES = 10


class Guard:
    """Logs each kind of failure once and gives up after too many different ones."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict
        self._seen: set[tuple[str, type[BaseException]]] = set()
        self.disabled = False

    def handle(self, site: str, error: Exception) -> None:
        """`site` says what was being done.

        Raises the error again in strict mode, and if somebody asked for the training to stop.
        """
        if self._strict or isinstance(error, TrainingStopRequested):
            raise error
        kind = (site, type(error))
        if kind in self._seen:
            return
        self._seen.add(kind)
        get_logger().error(
            f"{site} failed; training goes on. {type(error).__name__}: {error}",
            exc_info=error,
        )
        if len(self._seen) >= MOST_FAILURES:
            self.disabled = True
            get_logger().error(
                f"Recording stops after {MOST_FAILURES} different failures; training goes on."
            )
