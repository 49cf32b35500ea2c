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
from typing import Any

from smdebug import _core, plan, run, sagemaker_local
from smdebug._core import VERSION
from smdebug.compact import compact as write_tables
from smdebug.credentials import botocore_credentials
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugValueError
from smdebug.exporters import create_exporter
from smdebug.exporters.recorded import Selection, carry
from smdebug.frame import Frame
from smdebug.logger import core_log

WELL = 0
USAGE = 2
INTERRUPTED = 130

# The variables that steer smdebug, but for secrets; docs/reference/environment.md explains them.
VARIABLES = (
    "USE_SMDEBUG",
    "SMDEBUG_CONFIG_FILE_PATH",
    "TENSORBOARD_CONFIG_FILE_PATH",
    "CHECKPOINT_CONFIG_FILE_PATH",
    "SAGEMAKER_METRICS_DIRECTORY",
    "TRAINING_JOB_NAME",
    "SMDEBUG_LAYOUT",
    "SMDEBUG_STRICT",
    "SMDEBUG_SPOOL_DIR",
    "SMDEBUG_SPOOL_DRAIN_SECS",
    "SMDEBUG_SPOOL_MAX_BYTES",
    "RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "SLURM_NTASKS",
    "SMDEBUG_TRAINING_END_DELAY_REFRESH",
    "TRAINING_END_DELAY_REFRESH",
    "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW",
    "INCOMPLETE_STEP_WAIT_WINDOW",
    "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT",
    "MISSING_EVENT_FILE_RETRY_LIMIT",
    "SMDEBUG_LOG_LEVEL",
    "SMDEBUG_LOG_CONTEXT",
    "SMDEBUG_LOG_ALL_TO_STDOUT",
    "SMDEBUG_LOG_PATH",
    "AWS_PROFILE",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE",
    "rule_stop_grace_time_secs",
)

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
    """Prints versions of Python, smdebug and its packages, and the variables that are set."""
    options = parser("environment").parse_args(arguments)
    about = {
        "smdebug": VERSION,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
    }
    packages = versions()
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    if options.json:
        print(json.dumps({**about, "packages": packages, "variables": variables}))
        return WELL
    rows = {**about, **packages}
    width = max(map(len, rows))
    for name, value in rows.items():
        print(f"{name:{width}}  {value}")
    for name, value in variables.items():
        print(f"{name}={value}")
    return WELL


def export(arguments: Sequence[str]) -> int:
    """Writes the numbers of a run to a file, in the format of its suffix, or to another tool."""
    made = parser("export")
    made.add_argument("run")
    made.add_argument("out", nargs="?")
    made.add_argument("--to")
    made.add_argument("--set", action="append", default=[])
    made.add_argument("--regex", action="append")
    made.add_argument("--reduction", action="append")
    made.add_argument("--mode", default="global")
    made.add_argument("--worker")
    options = made.parse_intermixed_args(arguments)
    mode = _core.ModeKeys[options.mode.upper()]
    run = os.path.expanduser(options.run)
    # Of what is there now: a run whose workers have not all begun has numbers, too.
    storage = _core.Storage.open(run, credentials=botocore_credentials)
    trial = _core.Trial.open(storage, begin=0, end=None, check=False, log=core_log)
    trial.refresh()
    names = trial.tensor_names(mode, None, options.regex, None)
    if options.to is not None:
        return export_to(trial, names, mode, options)
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


def export_to(
    trial: _core.Trial, names: list[str], mode: _core.ModeKeys, options: argparse.Namespace
) -> int:
    """Carries these tensors over to the tool that `--to` names."""
    settings: dict[str, Any] = dict(setting.split("=", 1) for setting in options.set)
    for taken, option in (("reductions", "--reduction"), ("include_regex", "--regex")):
        if taken in settings:
            raise SMDebugValueError(f"Give {option} instead of --set {taken}=….")
    settings["reductions"] = options.reduction or ()
    exporter = create_exporter(options.to, **settings)
    try:
        with exporter:
            carried = carry(trial, exporter, Selection(names, mode, options.worker))
    except (SMDebugError, OSError):
        raise
    except Exception as error:  # whatever the tool's package raises
        raise SMDebugRuntimeError(f"The exporter '{options.to}' failed: {error}") from error
    if options.json:
        about = {"run": trial.place, "to": options.to, "steps": carried.steps}
        print(json.dumps({**about, "names": carried.names, "numbers": carried.numbers}))
    else:
        print(
            f"carried over to {options.to}: {carried.steps} steps, {carried.names} names, "
            f"{carried.numbers} numbers"
        )
    return WELL


def sagemaker_local_command(arguments: Sequence[str]) -> int:
    """Runs a script as a training job of SageMaker would; its exit code."""
    made = parser("sagemaker-local")
    made.add_argument("--root", default="sagemaker-local")
    made.add_argument("--config", action="append", default=[])
    made.add_argument("script")
    made.add_argument("arguments", nargs=argparse.REMAINDER)
    options = made.parse_args(arguments)
    found = sagemaker_local.run(options.root, options.config, options.script, options.arguments)
    if options.json:
        print(json.dumps(found))
    else:
        sagemaker_local.show(found)
    return found["exit_code"]


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
    "plan": plan.main,
    "run": run.main,
    "sagemaker-local": sagemaker_local_command,
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
