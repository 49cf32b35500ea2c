"""Runs the S3 server with conditional writes that are atomic, as those of S3 are.

The server looks whether an object fits the condition and writes it in two steps, between which
another thread may write; here one conditional write waits for the other.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto import server

CONDITIONS = ("HTTP_IF_MATCH", "HTTP_IF_NONE_MATCH")
Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


def atomic(application: Application) -> Application:
    """The same application; conditional writes happen one after the other."""
    lock = threading.Lock()

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        writes = environ["REQUEST_METHOD"] == "PUT"
        if not writes or not any(name in environ for name in CONDITIONS):
            return application(environ, start)
        with lock:
            return list(application(environ, start))

    return answer


def main() -> None:
    """The server's own main program with another application."""
    plain = server.run_simple

    def run(host: str, port: int, application: Application, **options: Any) -> None:
        plain(host, port, atomic(application), **options)

    server.run_simple = run
    server.main(sys.argv[1:])


if __name__ == "__main__":
    main()
