"""The commands of the program `smdebug` that are written in Python.

The native program parses the arguments, so that only right ones arrive, and then runs
`python3 -m smdebug.cli NAME ARGUMENTS...` with the interpreter that stands beside it.
A command is a function that takes the arguments after its name and returns the exit code; its name,
help and options stand in `smd/cli/commands/<name>.cpp` like those of every other command.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import metadata

from smdebug import _core
from smdebug._core import VERSION
from smdebug.compact import compact as write_tables
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import SMDebugError
from smdebug.frame import Frame
from smdebug.logger import core_log

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


def export(arguments: Sequence[str]) -> int:
    """Writes the numbers of a run to a file, in the format of its suffix."""
    made = parser("export")
    made.add_argument("run")
    made.add_argument("out")
    made.add_argument("--regex", action="append")
    made.add_argument("--reduction", action="append")
    made.add_argument("--mode", default="global")
    made.add_argument("--worker")
    options = made.parse_args(arguments)
    mode = _core.ModeKeys[options.mode.upper()]
    run = os.path.expanduser(options.run)
    # Of what is there now: a run whose workers have not all begun has numbers, too.
    storage = _core.Storage.open(run, credentials=botocore_credentials)
    trial = _core.Trial.open(storage, begin=0, end=None, check=False, log=core_log)
    trial.refresh()
    names = trial.tensor_names(mode, None, options.regex, None)
    frame = Frame(
        _core.make_frame(
            trial, tensors=names, reductions=options.reduction, mode=mode, worker=options.worker
        )
    )
    frame.export(options.out)
    size_bytes = os.stat(options.out).st_size
    if options.json:
        about = {"run": trial.place, "file": options.out, "bytes": size_bytes}
        print(json.dumps({**about, "tensors": len(names), "columns": frame.columns}))
    else:
        print(f"wrote {options.out}: {len(names)} tensors, {size_bytes} bytes")
    return WELL


def compact(arguments: Sequence[str]) -> int:
    """Writes the numbers of a run as Parquet tables."""
    made = parser("compact")
    made.add_argument("run")
    made.add_argument("--parquet", required=True)
    options = made.parse_args(arguments)
    storage = _core.Storage.open(os.path.expanduser(options.run), credentials=botocore_credentials)
    trial = _core.Trial.open(storage, begin=0, end=None, check=False, log=core_log)
    trial.refresh()
    rows = write_tables(trial, options.parquet)
    if options.json:
        print(json.dumps({"run": trial.place, "directory": options.parquet, "rows": rows}))
    else:
        for name, count in rows.items():
            print(f"wrote {os.path.join(options.parquet, name)}: {count} rows")
    return WELL


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "compact": compact,
    "environment": environment,
    "export": export,
}


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
    except (SMDebugError, OSError) as error:
        print(f"smdebug: {error}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
