"""Starts the recorder and the checker; counts the cases of a fault-injection script."""

import re
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
END_MARKER = "training_job_end.ts"


class Programs:
    """The two executables of one build directory."""

    def __init__(self, build: str) -> None:
        folder = ROOT / build / "tests" / "fault"
        self.recorder = folder / "smd_fault_recorder"
        self.checker = folder / "smd_fault_checker"
        self.command = ROOT / build / "smdebug"
        if not self.recorder.exists() or not self.checker.exists():
            sys.exit(f"The programs are not built: cmake --build {build} -j2")

    def start(
        self,
        folder: Path | str,
        *options: object,
        prefix: tuple = (),
        env: dict[str, str] | None = None,
    ) -> subprocess.Popen:
        """A recorder that has printed `ready`."""
        command = [*prefix, self.recorder, folder, *options]
        process = subprocess.Popen(
            [str(part) for part in command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_default_signals,
            env=env,
        )
        line = process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"The recorder did not start: {process.communicate()[1]}")
        return process

    def record(
        self, folder: Path | str, *options: object, env: dict[str, str] | None = None
    ) -> "Ended":
        """Runs a recorder to its end."""
        return finish(self.start(folder, *options, env=env))

    def check(self, folder: Path | str, env: dict[str, str] | None = None) -> "Checked":
        """What is readable in the folder, and what is wrong with it."""
        done = subprocess.run(
            [self.checker, folder],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=env,
        )
        numbers = {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", done.stdout)}
        return Checked(numbers, done.stderr if done.returncode != 0 else "")


class Checked:
    """The checker's answer."""

    def __init__(self, numbers: dict[str, int], problems: str) -> None:
        self.steps = numbers.get("steps", 0)
        self.last = numbers.get("last", -1)
        self.ended = numbers.get("ended", 0) == 1
        self.problems = problems


class Ended:
    """How a recorder ended: exit status, its last line, what it logged."""

    def __init__(self, status: int, out: str, log: str) -> None:
        self.status = status
        self.log = log
        found = re.search(r"^steps=(\d+) signals=(\d+) close=(.*)$", out, re.MULTILINE)
        self.steps = int(found[1]) if found else None
        self.signals = int(found[2]) if found else None
        self.closed = found[3] if found else None

    @property
    def lost(self) -> int:
        """Steps that close() reported as lost."""
        found = re.search(r"\((\d+) steps? could not be saved", self.closed or "")
        return int(found[1]) if found else 0

    def errors(self) -> list[str]:
        """The errors that were logged."""
        return [line for line in self.log.splitlines() if "error" in line.lower()]


def _default_signals() -> None:
    """In the child: a job that a shell runs in the background ignores SIGINT, and so would we."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):
        signal.signal(number, signal.SIG_DFL)


def finish(process: subprocess.Popen, timeout_secs: float = 60) -> Ended:
    """Waits for the end of a recorder; one that does not end is killed."""
    try:
        out, log = process.communicate(timeout=timeout_secs)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ended(process.returncode, out, log)


class Cases:
    """Counts passed and failed cases and prints each failure."""

    def __init__(self) -> None:
        self.passed = 0
        self.failed = 0

    def record(self, name: str, problems: list[str], note: str = "") -> None:
        """One case; no problems means that it passed."""
        if problems:
            self.failed += 1
            print(f"FAIL {name}: " + "; ".join(problem.strip() for problem in problems))
        else:
            self.passed += 1
            if note:
                print(f"ok   {name}: {note}")

    def finish(self) -> int:
        """Prints the last line; the exit status."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0
