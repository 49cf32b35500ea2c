#!/usr/bin/env python3
"""Many clients of a server beside a training that writes: errors, step times, memory.

    run.py [--clients N] [--seconds S] [--pause S] [--json]

Measures the steps of the training alone, then with the server and its clients. Fails when an answer is
an error, when a listener is dropped, or when the server grows beyond its bound. Times are printed, not
judged. The clients have the lowest priority, as they would run on other machines.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from clients import besiege

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
PYTHON = ROOT / ".venvs/dev/bin/python"
# What its two caches may hold, and some more.
MOST_MIB = 1024
WARM_UP_STEPS = 20


@dataclass
class Result:
    """What was measured; times in seconds."""

    clients: int
    answers: int
    answers_per_sec: float
    answer_median: float
    answer_99: float
    events: int
    mib: float
    errors: list[str]
    step_alone: float
    step_served: float
    server_begin_mib: float
    server_most_mib: float


def train(folder: Path, name: str) -> tuple[subprocess.Popen[bytes], Path, Path]:
    """Starts the training; it ends when the second path is there, its times are in the first."""
    times, end = folder / f"{name}.json", folder / f"{name}.end"
    command = [PYTHON, ROOT / "tests/load/training.py", folder / name, times, "--until", end]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1"}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    process = subprocess.Popen([str(part) for part in command], env=environment, stdout=sys.stderr)
    return process, times, end


def step_time(times: Path) -> float:
    """The median, without the first steps."""
    return statistics.median(json.loads(times.read_text())[WARM_UP_STEPS:])


def memory_mib(pid: int, key: str) -> float:
    """VmRSS or VmHWM of a process."""
    found = re.search(rf"^{key}:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.M)
    return int(found[1]) / 1024 if found else 0.0


def measure(clients: int, seconds: float, pause: float) -> Result:
    """One round."""
    with tempfile.TemporaryDirectory(prefix="smdebug-load.") as name:
        folder = Path(name)
        training, alone, end = train(folder, "alone")
        time.sleep(min(seconds, 10))
        end.touch()
        training.wait()

        training, served, end = train(folder, "served")
        server = subprocess.Popen(
            [str(PROGRAM), "serve", "--json", "--port", "0", str(folder / "served")],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            port = int(re.search(r":(\d+)/", json.loads(server.stdout.readline())["address"])[1])
            time.sleep(2)
            begin_mib = memory_mib(server.pid, "VmRSS")
            os.setpriority(os.PRIO_PROCESS, 0, 19)
            tally = besiege(port, "served", clients, seconds, pause)
            most_mib = memory_mib(server.pid, "VmHWM")
        finally:
            end.touch()
            training.wait()
            server.terminate()
            server.wait()
        return Result(
            clients=clients,
            answers=len(tally.seconds),
            answers_per_sec=len(tally.seconds) / seconds,
            answer_median=tally.at(0.5),
            answer_99=tally.at(0.99),
            events=tally.events,
            mib=tally.bytes / 2**20,
            errors=tally.errors,
            step_alone=step_time(alone),
            step_served=step_time(served),
            server_begin_mib=begin_mib,
            server_most_mib=most_mib,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--pause", type=float, default=1, help="seconds between two questions")
    parser.add_argument("--json", action="store_true", help="print JSON for programs")
    args = parser.parse_args()
    result = measure(args.clients, args.seconds, args.pause)
    is_well = not result.errors and result.answers > 0 and result.server_most_mib < MOST_MIB
    if args.json:
        print(json.dumps({**asdict(result), "is_well": is_well}))
        return 0 if is_well else 1
    print(
        f"{result.clients} clients for {args.seconds:.0f} s: {result.answers} answers "
        f"({result.answers_per_sec:.0f}/s, {result.mib:.0f} MiB), {result.events} events, "
        f"{len(result.errors)} errors\n"
        f"an answer takes {result.answer_median * 1e3:.1f} ms, 99 % at most {result.answer_99 * 1e3:.0f} ms\n"
        f"a training step takes {result.step_alone * 1e3:.2f} ms alone, "
        f"{result.step_served * 1e3:.2f} ms beside the server and its clients\n"
        f"the server's memory: {result.server_begin_mib:.0f} MiB before, at most {result.server_most_mib:.0f} MiB"
    )
    for error in result.errors[:10]:
        print(error)
    print("1 passed, 0 failed" if is_well else "0 passed, 1 failed")
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
