"""Disks that fail under a run: full, read-only, gone, in the way, forbidden.

In every case the training loop ends with status 0, each kind of error is logged once, close() says
what went wrong and how many steps are lost, and all other steps, before and after, are readable.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

from programs import ROOT, Cases, Ended, Programs, finish

STEPS = 120
STEP_MS = 8
OPTIONS = ("--steps", STEPS, "--step-ms", STEP_MS, "--big-every", 0, "--seed", 5)
STEPS_BEFORE = 10
FAULT_SECS = 0.25
MOUNT_MIB = 4
NOT_PERMITTED = 77
NOBODY = ("setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups")


class NotPermittedError(Exception):
    """This process may not do what a case needs."""


@contextmanager
def small_disk():
    """A file system of a few MiB."""
    script = ROOT / "tools" / "loopfs.sh"
    made = subprocess.run(
        [script, "mount", str(MOUNT_MIB)], capture_output=True, text=True, check=False
    )
    if made.returncode == NOT_PERMITTED:
        raise NotPermittedError(made.stderr.strip())
    made.check_returncode()
    path = Path(made.stdout.strip())
    try:
        yield path
    finally:
        subprocess.run([script, "umount", path], check=True)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Polls, for at most ten seconds."""
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.002)


def wait_for_steps(folder: Path) -> None:
    """Waits until some steps are committed."""
    index = folder / "index" / "000000000"
    wait_until(
        lambda: index.is_dir() and len(list(index.glob("*.json"))) >= STEPS_BEFORE,
        f"{STEPS_BEFORE} steps in {folder}",
    )


def fill(disk: Path) -> Path:
    """Takes all the space that is left, to the last byte."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return ballast


def remount(disk: Path, how: str) -> None:
    """Fails while the writer has a file open, so it is tried often."""

    def tried() -> bool:
        command = ["mount", "-o", f"remount,{how}", disk]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    wait_until(tried, f"remount {how}")


def judge(programs: Programs, ended: Ended, folders: list[Path], reason: str) -> list[str]:
    """What every case has in common. The folders together hold the steps that are not lost."""
    checks = [programs.check(folder) for folder in folders]
    problems = [checked.problems for checked in checks if checked.problems]
    if ended.status != 0:
        problems.append(f"the training ended with status {ended.status}: {ended.log}")
    saved = sum(checked.steps for checked in checks)
    if saved + ended.lost != STEPS:
        problems.append(f"{saved} steps saved and {ended.lost} reported lost, of {STEPS}")
    if ended.lost > 0 and reason not in (ended.closed or ""):
        problems.append(f"close() does not say '{reason}': {ended.closed}")
    logged = ended.errors()
    if ended.lost > 0 and (len(logged) != 1 or reason not in logged[0]):
        problems.append(f"{len(logged)} errors logged instead of one: {ended.log}")
    return problems


def judge_recovery(programs: Programs, ended: Ended, folders: list[Path], reason: str) -> list[str]:
    """As above; some steps must be lost, and the last ones saved."""
    problems = judge(programs, ended, folders, reason)
    last = programs.check(folders[-1])
    if ended.lost == 0:
        problems.append("the fault cost nothing: it did not happen")
    if last.last != STEPS - 1 or not last.ended:
        problems.append(f"saving did not begin again: the last step is {last.last}")
    return problems


def full_disk(programs: Programs, _root: Path) -> list[str]:
    """Space runs out and comes back."""
    with small_disk() as disk:
        folder = disk / "run"
        process = programs.start(folder, *OPTIONS)
        wait_for_steps(folder)
        ballast = fill(disk)
        time.sleep(FAULT_SECS)
        ballast.unlink()
        return judge_recovery(programs, finish(process), [folder], "No space left")


def full_disk_under_a_packed_run(programs: Programs, _root: Path) -> list[str]:
    """Space runs out in the middle of a growing file and comes back."""
    with small_disk() as disk:
        folder = disk / "run"
        process = programs.start(folder, *OPTIONS, "--packed")
        wait_until(
            lambda: folder.is_dir() and programs.check(folder).steps >= STEPS_BEFORE,
            f"{STEPS_BEFORE} steps in {folder}",
        )
        ballast = fill(disk)
        time.sleep(FAULT_SECS)
        ballast.unlink()
        return judge_recovery(programs, finish(process), [folder], "No space left")


def full_from_the_start(programs: Programs, _root: Path) -> list[str]:
    """There is no space for the first files, collections included; later there is."""
    with small_disk() as disk:
        folder = disk / "run"
        ballast = fill(disk)
        process = programs.start(folder, *OPTIONS)
        time.sleep(FAULT_SECS)
        ballast.unlink()
        return judge_recovery(programs, finish(process), [folder], "No space left")


def full_to_the_end(programs: Programs, _root: Path) -> list[str]:
    """Space runs out for good."""
    with small_disk() as disk:
        folder = disk / "run"
        process = programs.start(folder, *OPTIONS)
        wait_for_steps(folder)
        fill(disk)
        ended = finish(process)
        problems = judge(programs, ended, [folder], "No space left")
        if ended.lost == 0:
            problems.append("no step was lost")
        return problems


def read_only(programs: Programs, _root: Path) -> list[str]:
    """The file system becomes read-only and writable again."""
    with small_disk() as disk:
        folder = disk / "run"
        process = programs.start(folder, *OPTIONS)
        wait_for_steps(folder)
        remount(disk, "ro")
        time.sleep(FAULT_SECS)
        remount(disk, "rw")
        return judge_recovery(programs, finish(process), [folder], "Read-only file system")


def directory_taken_away(programs: Programs, root: Path) -> list[str]:
    """The directory disappears: it is made again, at most the step being written is lost."""
    folder = root / "gone"
    aside = root / "gone-aside"
    process = programs.start(folder, *OPTIONS)
    wait_for_steps(folder)
    folder.rename(aside)
    ended = finish(process)
    problems = judge(programs, ended, [aside, folder], "No such file")
    if ended.lost > 1:
        problems.append(f"{ended.lost} steps were lost")
    if programs.check(folder).last != STEPS - 1:
        problems.append("the last step is missing")
    return problems


def file_in_the_way(programs: Programs, root: Path) -> list[str]:
    """A file takes the directory's name and goes away again."""
    folder = root / "blocked"
    aside = root / "blocked-aside"
    process = programs.start(folder, *OPTIONS)
    wait_for_steps(folder)
    folder.rename(aside)
    try:
        folder.write_text("in the way")
    except IsADirectoryError:
        return file_in_the_way_again(process, folder)
    time.sleep(FAULT_SECS)
    folder.unlink()
    return judge_recovery(programs, finish(process), [aside, folder], "Not a directory")


def file_in_the_way_again(process: subprocess.Popen, folder: Path) -> list[str]:
    """The recorder was faster."""
    process.kill()
    process.communicate()
    return [f"{folder} was made again before the file could take its place"]


def forbidden(programs: Programs, root: Path, prefix: tuple, *, later: bool) -> list[str]:
    """The directory may not be written, for good or until somebody allows it."""
    parent = root / f"forbidden-{later}"
    parent.mkdir(mode=0o555)
    folder = parent / "run"
    process = programs.start(folder, *OPTIONS, prefix=prefix)
    time.sleep(FAULT_SECS)
    if later:
        parent.chmod(0o777)
        return judge_recovery(programs, finish(process), [folder], "Permission denied")
    ended = finish(process)
    parent.chmod(0o755)
    problems = judge(programs, ended, [folder], "Permission denied")
    if ended.lost != STEPS:
        problems.append(f"{ended.lost} steps were lost")
    return problems


def as_ordinary_user(root: Path) -> tuple:
    """The command prefix under which permissions bind."""
    root.chmod(0o755)
    return NOBODY if os.geteuid() == 0 else ()


def main() -> int:
    """Parses the command line and runs all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/dev")
    parser.add_argument(
        "--allow-skip", action="store_true", help="no mount permission is no failure"
    )
    arguments = parser.parse_args()
    programs = Programs(arguments.build)
    cases = Cases()
    with tempfile.TemporaryDirectory(prefix="smd-disk-") as name:
        root = Path(name)
        user = as_ordinary_user(root)
        table = {
            "a full disk": lambda: full_disk(programs, root),
            "a full disk under a packed run": lambda: full_disk_under_a_packed_run(programs, root),
            "a disk that is full from the start": lambda: full_from_the_start(programs, root),
            "a disk that stays full": lambda: full_to_the_end(programs, root),
            "a read-only disk": lambda: read_only(programs, root),
            "a directory that is taken away": lambda: directory_taken_away(programs, root),
            "a file in the place of the directory": lambda: file_in_the_way(programs, root),
            "no permission": lambda: forbidden(programs, root, user, later=False),
            "permission given later": lambda: forbidden(programs, root, user, later=True),
        }
        for case, run in table.items():
            try:
                cases.record(case, run())
            except NotPermittedError as error:
                print(f"SKIPPED {case}: {error}")
                if not arguments.allow_skip:
                    cases.record(case, ["skipped"])
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
