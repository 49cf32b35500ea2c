"""The commands of the program `smdebug` that are written in Python.

The native program parses the arguments, so that only right ones arrive, and then runs
`python3 -m smdebug.cli NAME ARGUMENTS...` with the interpreter that stands beside it.
A command is a function that takes the arguments after its name and returns the exit code; its name,
help and options stand in `smd/cli/commands/<name>.cpp` like those of every other command.
"""

from __future__ import annotations

import argparse
import json
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import metadata

from smdebug._core import VERSION

WELL = 0
USAGE = 2
INTERRUPTED = 130

# What a report of a problem should name.
PACKAGES = ("numpy", "torch", "tensorflow", "mxnet", "xgboost", "pandas", "pyarrow", "ml_dtypes")


def parser(name: str) -> argparse.ArgumentParser:
    """A parser with the options that every command has."""
    made = argparse.ArgumentParser(prog=f"smdebug {name}", allow_abbrev=False)
    made.add_argument("--json", action="store_true")
    made.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    return made


def versions() -> dict[str, str]:
    """The version of each package that is installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def environment(arguments: Sequence[str]) -> int:
    """Prints the versions of Python, of smdebug and of the packages it works with."""
    options = parser("environment").parse_args(arguments)
    about = {
        "smdebug": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
    }
    packages = versions()
    if options.json:
        print(json.dumps({**about, "packages": packages}))
        return WELL
    rows = {**about, **packages}
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:{width}}  {value}")
    return WELL


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"environment": environment}


def main(arguments: Sequence[str]) -> int:
    """Runs the command that the first argument names; the exit code."""
    command = COMMANDS.get(arguments[0]) if arguments else None
    if command is None:
        name = arguments[0] if arguments else ""
        print(
            f"smdebug: '{name}' is not a command in Python; there are {', '.join(COMMANDS)}.",
            file=sys.stderr,
        )
        return USAGE
    # A reader that goes away ends the program without words.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        return command(arguments[1:])
    except KeyboardInterrupt:
        return INTERRUPTED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
