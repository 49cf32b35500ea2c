"""Signals during a run: what was committed stays readable, and a storm of them costs nothing."""

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path

from programs import Cases, Ended, Programs, finish

RUN_SECS = 0.25
STORM_STEPS = 400
STORM_PAUSE_SECS = 0.0001
LEAST_SIGNALS = 100


def interrupted(programs: Programs, folder: Path, number: signal.Signals, *options: str) -> Ended:
    """A run that gets one signal."""
    process = programs.start(folder, *options)
    time.sleep(RUN_SECS)
    process.send_signal(number)
    return finish(process)


def default_action(
    programs: Programs, folder: Path, number: signal.Signals, *options: str
) -> list[str]:
    """The signal ends the process at once; committed steps are readable."""
    ended = interrupted(programs, folder, number, *options)
    checked = programs.check(folder)
    problems = [checked.problems] if checked.problems else []
    if ended.status != -number:
        problems.append(f"the exit status is {ended.status}")
    if checked.steps == 0:
        problems.append("no step was committed")
    if checked.ended:
        problems.append("the job looks finished")
    return problems


def handler_closes(
    programs: Programs, folder: Path, number: signal.Signals, *options: str
) -> list[str]:
    """A program that closes in reaction to the signal ends the job with every step."""
    ended = interrupted(programs, folder, number, "--handle-signals", *options)
    checked = programs.check(folder)
    problems = [checked.problems] if checked.problems else []
    if ended.status != 0 or ended.closed != "ok":
        problems.append(f"exit status {ended.status}, close: {ended.closed}")
    if checked.steps != ended.steps:
        problems.append(f"{checked.steps} of {ended.steps} steps are there")
    if not checked.ended:
        problems.append("the end marker is missing")
    return problems


def storm(programs: Programs, folder: Path, *options: str) -> tuple[list[str], str]:
    """Signals at a high rate while steps are written: nothing is lost, nothing is logged."""
    process = programs.start(folder, "--steps", STORM_STEPS, *options)
    while process.poll() is None:
        process.send_signal(signal.SIGUSR1)
        time.sleep(STORM_PAUSE_SECS)
    ended = finish(process)
    checked = programs.check(folder)
    problems = [checked.problems] if checked.problems else []
    if ended.status != 0 or ended.closed != "ok":
        problems.append(f"exit status {ended.status}, close: {ended.closed}")
    if checked.steps != STORM_STEPS:
        problems.append(f"{checked.steps} of {STORM_STEPS} steps are there")
    if ended.errors():
        problems.append(f"logged: {ended.errors()[0]}")
    if (ended.signals or 0) < LEAST_SIGNALS:
        problems.append(f"only {ended.signals} signals arrived")
    return problems, f"{ended.signals} signals"


def main() -> int:
    """Parses the command line and runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/dev")
    programs = Programs(parser.parse_args().build)
    cases = Cases()
    with tempfile.TemporaryDirectory(prefix="smd-signal-") as root:
        for layout in ("original", "packed"):
            options = ("--packed",) if layout == "packed" else ()
            folder = Path(root) / layout
            for number in (signal.SIGTERM, signal.SIGINT):
                cases.record(
                    f"{layout}: {number.name} without a handler",
                    default_action(programs, folder / number.name, number, *options),
                )
                cases.record(
                    f"{layout}: {number.name} with a handler that closes",
                    handler_closes(programs, folder / f"{number.name}-handled", number, *options),
                )
            stormed = storm(programs, folder / "storm", *options)
            cases.record(f"{layout}: a storm of signals", *stormed)
            durable = storm(programs, folder / "durable", "--durable", *options)
            cases.record(f"{layout}: a storm of signals with durable steps", *durable)
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
