"""A visitor of a soak: keeps the events of a server open and asks what the page asks.

    visitor.py PORT HEARTBEAT FAILURES [--seed N]

A round of answers with at least one new event is progress. Failures go to a file of JSON lines with
their time, since only the conductor knows when the server was down. SIGTERM ends it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import signal
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

from heartbeat import Heartbeat

HOST = "127.0.0.1"
TIMEOUT_SECS = 60
PAUSE_SECS = 0.5
# Runs of these names come and go while they are asked about.
PASSING = "cycle-"
QUESTIONS = [
    "",
    "/tensors",
    "/steps",
    "/metrics",
    "/findings",
    "/heatmap?statistic=max&rows=100&columns=200",
    "/series?tensor=reduced%2Fa&points=400",
    "/histograms?tensor=layers.0%2Fweight",
    "/values.npy?tensor=layers.0%2Fbias",
]


class Failures:
    """Appends what went wrong; any thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def add(self, what: str) -> None:
        self._file.write(json.dumps({"at": time.time(), "what": what}) + "\n")


class Listener(threading.Thread):
    """Holds the stream of events, and opens it anew when it ends."""

    def __init__(self, port: int, failures: Failures) -> None:
        super().__init__(daemon=True)
        self.events = 0
        self._port = port
        self._failures = failures

    def run(self) -> None:
        while True:
            try:
                self._listen()
            except (OSError, http.client.HTTPException) as error:
                self._failures.add(f"events: {error!r}")
            time.sleep(PAUSE_SECS)

    def _listen(self) -> None:
        connection = http.client.HTTPConnection(HOST, self._port, timeout=TIMEOUT_SECS)
        connection.request("GET", "/api/events")
        answer = connection.getresponse()
        while line := answer.readline():
            self.events += line.startswith(b"event:")
        self._failures.add("events: the stream has ended")


def ask(port: int, path: str) -> tuple[int, bytes]:
    """Status and body of an answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=TIMEOUT_SECS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def ask_about(port: int, run: dict[str, Any], question: str, failures: Failures) -> None:
    """Asks one question about a run."""
    status, body = ask(port, f"/api/runs/{urllib.parse.quote(run['id'], safe='')}{question}")
    is_passing = PASSING in run["id"]
    has_begun = run.get("steps", 0) > 0
    if status != 200 and has_begun and not is_passing:
        failures.add(f"{status} for {run['id']}{question}: {body[:200]!r}")


def main() -> None:
    """Asks until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("heartbeat", type=Path)
    parser.add_argument("failures", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    dice = random.Random(args.seed)
    failures = Failures(args.failures)
    heartbeat = Heartbeat(args.heartbeat)
    listener = Listener(args.port, failures)
    listener.start()
    heard = 0
    while True:
        try:
            status, body = ask(args.port, "/api/runs")
            runs = json.loads(body)["runs"] if status == 200 else []
            if status != 200:
                failures.add(f"{status} for /api/runs: {body[:200]!r}")
            for run in runs:
                ask_about(args.port, run, dice.choice(QUESTIONS), failures)
            if runs and listener.events > heard:
                heard = listener.events
                heartbeat.beat()
        except (OSError, http.client.HTTPException) as error:
            failures.add(f"question: {error!r}")
        time.sleep(PAUSE_SECS)


if __name__ == "__main__":
    main()
