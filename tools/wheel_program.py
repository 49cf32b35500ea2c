#!/usr/bin/env python3
"""Puts the program of a wheel that auditwheel repaired back among its scripts.

    tools/wheel_program.py WHEEL OUT_DIR    prints the path of the wheel that it wrote

auditwheel moves the program into the package and leaves a Python script in its place. Starting an
interpreter takes longer than most commands do, and the program could not tell any more which
interpreter it was installed beside. Here it stays a native program beside its interpreter and
knows where, seen from there, every way of installing puts the libraries of the wheel.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from auditwheel.wheeltools import InWheelCtx

PROGRAM = "smdebug"
LIBRARIES = "smdebug.libs"
NEWEST = 20  # Python 3.20: a wheel for the stable ABI serves those that are still to come


def versions(wheel: Path) -> list[str]:
    """The versions of Python that a wheel is for, from its name."""
    python, abi = wheel.stem.split("-")[2:4]
    first = int(python.removeprefix("cp3"))
    return [f"3.{minor}" for minor in range(first, NEWEST + 1 if abi == "abi3" else first + 1)]


def library_folders(pythons: list[str]) -> list[str]:
    """Where the libraries may lie, seen from the folder of the program."""
    # pip install --target; then virtual environments, prefixes and --user; then those of Fedora
    # and of Debian's own Python.
    packages = [".."]
    for python in pythons:
        packages += [
            f"../lib/python{python}/site-packages",
            f"../lib64/python{python}/site-packages",
            f"../lib/python{python}/dist-packages",
        ]
    return [f"$ORIGIN/{folder}/{LIBRARIES}" for folder in packages]


def restore_program(wheel: Path, out_dir: Path) -> Path:
    """Writes the wheel with its program restored into `out_dir`."""
    out_dir.mkdir(parents=True, exist_ok=True)
    written = out_dir.resolve() / wheel.name
    with InWheelCtx(wheel.resolve()) as context:
        context.out_wheel = written
        moved = context.path / f"{PROGRAM}.scripts" / PROGRAM
        [script] = context.path.glob(f"*.data/scripts/{PROGRAM}")
        moved.replace(script)
        moved.parent.rmdir()
        path = ":".join(library_folders(versions(wheel)))
        subprocess.run(["patchelf", "--set-rpath", path, script], check=True)
    return written


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: tools/wheel_program.py WHEEL OUT_DIR", file=sys.stderr)
        return 2
    print(restore_program(Path(sys.argv[1]), Path(sys.argv[2])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
