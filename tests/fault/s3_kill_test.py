"""Kills recorders of packed runs at random moments while they send to an S3 server.

Each place sees one or two runs that are killed. After each kill, what was committed must be readable
as it is; after the files that were left behind have been sent, by the next recorder or by the
command sync, so must be every step that was reported as saved, and nothing is committed twice.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
import xml.etree.ElementTree as Xml
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from programs import ROOT, Cases, Programs

sys.path.insert(0, str(ROOT / "tests" / "support"))
import s3_server

PARALLEL = 2
LONGEST_SECS = 0.5
LEAST_SHARE = 0.5
# The last run, which ends by itself.
LAST_RUN_EVERY = 6
LAST_RUN_STEPS = 12


def keys(url: str, bucket: str, folder: str) -> list[str]:
    """The keys below a folder of the bucket; fewer than a page of them."""
    address = f"{url}/{bucket}?list-type=2&prefix={folder}/"
    with urllib.request.urlopen(address, timeout=30) as answer:
        tree = Xml.fromstring(answer.read())
    return [element.text for element in tree.iter() if element.tag.endswith("}Key")]


class Place:
    """One run in the store, the lives of its recorders and the moments of their deaths."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self.number = number
        self.lives = [(dice.randrange(1000), dice.uniform(0, LONGEST_SECS)) for _ in range(2)]
        self.options = ["--big-every", dice.choice([0, 16]), "--step-ms", dice.choice([10, 20])]
        if dice.random() < 0.1:
            self.options.append("--durable")
        self.segment_secs = dice.choice(["0", "0.02", "0.1", "10"])
        self.by_command = dice.random() < 0.5

    def run(self, programs: Programs, server: s3_server.Server, home: Path) -> "Outcome":
        """Problems, and how many kills left something saved."""
        bucket = server.make_bucket(f"kill-{self.number}-{random.randrange(10**9)}")
        uri = f"s3://{bucket}/run"
        environment = {
            **os.environ,
            **s3_server.environment(server.url, home),
            "SMDEBUG_SPOOL_DIR": str(home / f"spool{self.number}"),
            "SMDEBUG_SEGMENT_SECS": self.segment_secs,
        }
        outcome = Outcome()
        most_saved = 0
        for seed, delay in self.lives:
            process = programs.start(
                uri, "--seed", seed, "--report", "--packed", *self.options, env=environment
            )
            time.sleep(delay)  # the moment of the kill; nothing depends on it
            process.kill()
            reported = process.communicate()[0].splitlines(keepends=True)
            saved = [int(line) for line in reported if line.endswith("\n")][-1:] or [0]
            outcome.saved.append(saved[0])
            most_saved = max(most_saved, saved[0])
            checked = programs.check(uri, env=environment)
            outcome.committed.append(checked.steps)
            if checked.problems:
                outcome.problems.append(f"after {delay * 1000:.0f} ms: {checked.problems}")
            if self.by_command:
                self.sync(programs, uri, environment, outcome)
                checked = programs.check(uri, env=environment)
                if checked.problems or checked.steps < most_saved:
                    outcome.problems.append(
                        f"{most_saved} steps were saved, and {checked.steps} are readable after "
                        f"the command {checked.problems}"
                    )
        lives = len(self.lives)
        if self.number % LAST_RUN_EVERY == 0:
            lives += 1
            most_saved = max(most_saved, LAST_RUN_STEPS)
            self.last_run(programs, uri, environment, outcome)
        self.sync(programs, uri, environment, outcome)
        checked = programs.check(uri, env=environment)
        if checked.problems or checked.steps < most_saved:
            outcome.problems.append(
                f"{most_saved} steps were saved, and {checked.steps} are readable in the end "
                f"{checked.problems}"
            )
        # Each life tells of its collections once, and one that ends by itself of them again and of
        # the end.
        segments = len(keys(server.url, bucket, "run/v2/seg"))
        entries = len(keys(server.url, bucket, "run/v2/manifest"))
        if segments < 900 and not segments <= entries <= segments + lives + 2:
            outcome.problems.append(f"{entries} entries tell of {segments} segments")
        return outcome

    def sync(self, programs: Programs, uri: str, environment: dict, outcome: "Outcome") -> None:
        """Sends what is left behind with the command."""
        for files in Path(environment["SMDEBUG_SPOOL_DIR"]).glob("*/*/files"):
            if not any(path.is_file() for path in files.rglob("*")):
                continue
            done = subprocess.run(
                [programs.command, "sync", "--remove-source", files, uri],
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
                env=environment,
            )
            if done.returncode != 0:
                outcome.problems.append(f"sync: {done.stderr}")

    def last_run(self, programs: Programs, uri: str, environment: dict, outcome: "Outcome") -> None:
        """A run that ends by itself sends everything, whatever is left of the dead ones."""
        ended = programs.record(
            uri, "--seed", 7, "--steps", LAST_RUN_STEPS, "--packed", env=environment
        )
        checked = programs.check(uri, env=environment)
        if ended.status != 0 or ended.closed != "ok":
            outcome.problems.append(f"the last run: {ended.status} {ended.closed} {ended.log}")
        if checked.problems or checked.steps < LAST_RUN_STEPS or not checked.ended:
            outcome.problems.append(f"the last run: {checked.steps} steps {checked.problems}")


class Outcome:
    """What was found at one place."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.saved: list[int] = []
        self.committed: list[int] = []


def main() -> int:
    """Parses the command line and runs all kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--build", default="build/dev")
    arguments = parser.parse_args()
    programs = Programs(arguments.build)
    dice = random.Random(arguments.seed)
    places = [Place(i, dice) for i in range((arguments.kills + 1) // 2)]
    print(f"seed {arguments.seed}")
    cases = Cases()
    begun = time.monotonic()
    saved = committed = 0
    with tempfile.TemporaryDirectory(prefix="smd-s3-kill-") as root, s3_server.running() as server:

        def run(place: Place) -> Outcome:
            return place.run(programs, server, Path(root))

        with ThreadPoolExecutor(PARALLEL) as pool:
            for place, outcome in zip(places, pool.map(run, places), strict=True):
                cases.record(f"place {place.number}", outcome.problems)
                saved += sum(count > 0 for count in outcome.saved)
                committed += sum(count > 0 for count in outcome.committed)
    total = 2 * len(places)
    few = [] if saved / total > LEAST_SHARE else [f"only {saved} of {total} kills had saved steps"]
    cases.record("enough kills hit a run that had saved steps", few)
    none = [] if committed else ["no kill hit a run that had committed steps"]
    cases.record("some kills hit a run that had committed steps", none)
    print(
        f"{total} kills in {time.monotonic() - begun:.1f} s, {saved} with saved steps, "
        f"{committed} with committed ones"
    )
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
