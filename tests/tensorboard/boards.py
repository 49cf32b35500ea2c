"""Runs the real TensorBoard, which lives in an environment of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venvs" / "tensorboard" / "bin"
TIMEOUT_SECS = 120


def read(folder: Path) -> dict[str, Any]:
    """What TensorBoard's reader finds below a directory, by run."""
    script = Path(__file__).with_name("read_board.py")
    done = subprocess.run(
        [BIN / "python", script, folder],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


class Server:
    """A TensorBoard that serves a directory."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **query: str) -> Any:
        """The JSON answer to a request."""
        address = f"{self.address}data/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECS) as answer:
            return json.load(answer)


@contextlib.contextmanager
def serve(folder: Path, *options: str) -> Iterator[Server]:
    """Starts TensorBoard on a free port; ends it afterwards."""
    process = subprocess.Popen(
        [BIN / "python", "-m", "tensorboard.main", "--logdir", folder, "--port", "0", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        said = []
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"TensorBoard \S+ at http://\S+:(\d+)/", line):
                yield Server(f"http://localhost:{found[1]}/")
                return
        raise AssertionError("".join(said))
    finally:
        process.terminate()
        process.wait(TIMEOUT_SECS)


def wait_for(ask: Callable[[], Any], enough: Callable[[Any], bool]) -> Any:
    """The first answer that is enough: a server reads files in the background."""
    deadline = time.monotonic() + TIMEOUT_SECS
    while not enough(answer := ask()):
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)
    return answer
