#!/usr/bin/env python3
"""Records, reads, judges and shows runs for a while, and kills processes at random.

    run.py [--minutes M] [--seed N] [--patience SECS] [--browser] [--keep]

In the end everything that was reported as saved must be readable with the right values, no process
may have been stuck or have ended by itself, and memory and open files must not grow. Prints a report;
the exit code is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/support"), str(ROOT / "tests/fault")]

import s3_server  # noqa: E402
from conductor import Conductor  # noqa: E402
from report import judge, machine_kind  # noqa: E402
from stage import Stage  # noqa: E402


def main() -> int:
    """Parses the command line, conducts a soak and judges it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--patience", type=float, default=90, help="most seconds without progress")
    parser.add_argument("--browser", action="store_true", help="also open the page in Chromium")
    parser.add_argument("--keep", action="store_true", help="keep the folder of the soak")
    args = parser.parse_args()
    print(f"soak of {args.minutes:g} minutes, seed {args.seed}, {machine_kind()}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="smdebug-soak-"))
    begin = time.monotonic()
    try:
        with s3_server.running() as store:
            stage = Stage(folder, store, args.seed, args.browser)
            conductor = Conductor(stage, random.Random(args.seed), args.patience)
            conductor.conduct(args.minutes * 60)
            status = judge(stage, conductor)
    finally:
        if args.keep:
            print(f"kept {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{time.monotonic() - begin:.0f} s in all")
    return status


if __name__ == "__main__":
    sys.exit(main())
