"""A reader of a soak: follows a run with the trial API and checks every step that appears.

    reader.py RUN HEARTBEAT --number N [--recent STEPS]

With --recent it begins so many steps before the last, as the test server answers a few hundred
requests a second. Ends when the run has ended and everything was read. Prints one line for each step that is wrong, and
the number of steps that it checked.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import scene
import smdebug
from heartbeat import Heartbeat
from smdebug.exceptions import SMDebugError

POLL_SECS = 0.2
# A step that a killed recorder had not reported may be replaced by its successor while it is read.
RETRIES = 5


def is_right(trial: smdebug.Trial, number: int, step: int) -> bool:
    """Whether a step holds what some life of its recorder has saved."""
    life, checksum = scene.read_step(trial, step)
    return checksum == scene.expected_checksum(number, life, step)


def check(path: str, trial: smdebug.Trial, number: int, step: int) -> None:
    """Tells of a step that stays wrong."""
    problem = ""
    for attempt in range(RETRIES):
        try:
            if is_right(trial, number, step):
                return
            problem = "holds values that nobody saved together"
        except SMDebugError as error:
            problem = f"cannot be read: {error}"
        time.sleep(POLL_SECS * 2**attempt)
        trial = smdebug.create_trial(path)
    print(f"step {step} {problem}", flush=True)


def main() -> None:
    """Follows the run to its end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("heartbeat", type=Path)
    parser.add_argument("--number", type=int, required=True)
    parser.add_argument("--recent", type=int, default=1 << 62)
    args = parser.parse_args()
    heartbeat = Heartbeat(args.heartbeat)
    trial = smdebug.create_trial(args.run)
    last = max(trial.steps(), default=-1) - args.recent
    checked = 0
    while True:
        has_ended = trial.loaded_all_steps
        for step in trial.steps():
            if step > last:
                check(args.run, trial, args.number, step)
                last = step
                checked += 1
                heartbeat.beat()
        if has_ended:
            break
        time.sleep(POLL_SECS)
    print(f"checked {checked}", flush=True)


if __name__ == "__main__":
    main()
