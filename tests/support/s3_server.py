"""A real S3 server for tests: moto, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venvs/moto/bin/python"
PROGRAM = Path(__file__).with_name("moto_atomic.py")
READY_SECS = 60
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A running server; buckets live as long as it does."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._process = subprocess.Popen(
            [str(PYTHON), str(PROGRAM), "-H", "127.0.0.1", "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_until_ready()

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECS
        while time.monotonic() < deadline:
            assert self._process.poll() is None, "The S3 server ended at once."
            try:
                urllib.request.urlopen(f"{self.url}/moto-api/", timeout=5).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError(f"The S3 server was not ready after {READY_SECS} s.")

    def make_bucket(self, name: str) -> str:
        request = urllib.request.Request(f"{self.url}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=10).close()
        return name

    def pause(self) -> None:
        """The server accepts connections but answers nothing."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(timeout=10)


@contextmanager
def running(port: int | None = None) -> Iterator[Server]:
    server = Server(port)
    try:
        yield server
    finally:
        server.stop()


def environment(url: str, home: Path) -> dict[str, str]:
    """Variables that lead to the server and to nothing else."""
    return {
        **KEYS,
        "AWS_ENDPOINT_URL": url,
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
        "AWS_EC2_METADATA_DISABLED": "true",
        "SMDEBUG_SPOOL_DIR": str(home / "spool"),
        "PYTHONPATH": os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")]),
    }
