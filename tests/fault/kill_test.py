"""Kills recorders at random moments: what was committed stays readable, and the next run goes on.

Each directory sees a run that is killed, a check, a second run that takes over the claim of the dead
one and is killed as well, a check, and now and then a last run that ends by itself. Every
second directory is a packed one.
"""

import argparse
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import Cases, Programs

PARALLEL = 2
# The kills spread over this many times what a recorder needs to commit its first step here and now.
LONGEST_STARTS = 3
LEAST_SECS = 0.030
PATIENCE_SECS = 60
# A claim of a dead process is taken over only after a short wait, which the second kill allows for.
TAKE_OVER_SECS = 0.110
LAST_RUN_EVERY = 10
LAST_RUN_STEPS = 12
LEAST_SHARE = 0.5


class Kill:
    """One directory and the moments of its two kills."""

    def __init__(self, number: int, dice: random.Random, longest_secs: float) -> None:
        self.number = number
        self.seeds = [dice.randrange(1000) for _ in range(3)]
        self.delays = [dice.uniform(0, longest_secs) for _ in range(2)]
        self.delays[1] += TAKE_OVER_SECS if dice.random() < 0.8 else 0
        self.options = ["--big-every", dice.choice([0, 2, 4, 16])]
        if dice.random() < 0.1:
            self.options.append("--durable")
        self.layout = ["--packed"] if number % 2 else []

    def run(self, programs: Programs, folder: Path) -> tuple[list[str], list[int]]:
        """Problems, and the steps that were readable after each kill."""
        problems: list[str] = []
        steps = []
        for seed, delay in zip(self.seeds, self.delays, strict=False):
            process = programs.start(
                folder, "--seed", seed, "--report", *self.options, *self.layout
            )
            time.sleep(delay)
            process.kill()
            reported = process.communicate()[0].splitlines(keepends=True)
            saved = [int(line) for line in reported if line.endswith("\n")]
            checked = programs.check(folder)
            steps.append(checked.steps)
            if checked.problems:
                problems.append(f"after {delay * 1000:.2f} ms: {checked.problems}")
            if saved and checked.steps < saved[-1]:
                problems.append(f"{saved[-1]} steps were saved, and {checked.steps} are readable")
        # A run in the original's layout that begins again replaces one step after the other.
        if steps[1] < steps[0] - (0 if self.layout else 1):
            problems.append(f"{steps[0]} steps were readable, and {steps[1]} after the next kill")
        if self.number % LAST_RUN_EVERY < 2:
            problems += self.last_run(programs, folder)
        shutil.rmtree(folder, ignore_errors=True)  # there may be none yet
        return problems, steps

    def last_run(self, programs: Programs, folder: Path) -> list[str]:
        """A run that ends by itself saves every step, whatever is left of the dead ones."""
        ended = programs.record(
            folder, "--seed", self.seeds[2], "--steps", LAST_RUN_STEPS, *self.layout
        )
        checked = programs.check(folder)
        problems = [checked.problems] if checked.problems else []
        if ended.status != 0 or ended.closed != "ok":
            problems.append(f"the last run: {ended.status} {ended.closed} {ended.log}")
        if checked.steps < LAST_RUN_STEPS or not checked.ended:
            problems.append(f"the last run saved only {checked.steps} steps")
        return problems


def first_step_secs(programs: Programs, folder: Path) -> float:
    """How long a recorder takes until its first step can be read."""
    begun = time.monotonic()
    process = programs.start(folder, "--seed", 0)
    while not any(folder.glob("index/*/*.json")):
        if time.monotonic() - begun > PATIENCE_SECS or process.poll() is not None:
            raise SystemExit("kill_test: the recorder committed no step.")
        time.sleep(0.0005)
    secs = time.monotonic() - begun
    process.kill()
    process.communicate()
    shutil.rmtree(folder, ignore_errors=True)
    return secs


def main() -> int:
    """Parses the command line and runs all kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--build", default="build/dev")
    parser.add_argument("--any-share", action="store_true", help="for builds that start slowly")
    arguments = parser.parse_args()
    programs = Programs(arguments.build)
    dice = random.Random(arguments.seed)
    cases = Cases()
    committed = 0
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="smd-kill-") as root:
        with ThreadPoolExecutor(PARALLEL) as pool:
            folders = [Path(root) / f"start{i}" for i in range(2 * PARALLEL + 1)]
            starts = sorted(pool.map(lambda folder: first_step_secs(programs, folder), folders))
        longest_secs = max(LEAST_SECS, LONGEST_STARTS * starts[len(starts) // 2])
        kills = [Kill(i, dice, longest_secs) for i in range((arguments.kills + 1) // 2)]
        print(f"seed {arguments.seed}, kills within {longest_secs * 1000:.0f} ms")

        def run(kill: Kill) -> tuple[list[str], list[int]]:
            return kill.run(programs, Path(root) / str(kill.number))

        with ThreadPoolExecutor(PARALLEL) as pool:
            for kill, (problems, steps) in zip(kills, pool.map(run, kills), strict=True):
                cases.record(f"directory {kill.number}", problems)
                committed += sum(count > 0 for count in steps)
    total = 2 * len(kills)
    share = committed / total
    if not arguments.any_share:
        few = [] if share > LEAST_SHARE else [f"only {share:.0%} of the kills had a committed step"]
        cases.record("enough kills hit a run that had committed steps", few)
    print(f"{total} kills in {time.monotonic() - begun:.1f} s, {committed} with committed steps")
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
