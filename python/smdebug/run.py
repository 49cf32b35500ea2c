"""Runs a script and records it without a change of the script: `smdebug run`, `python -m smdebug.run`.

The script is a process of its own with our streams. A folder with a `sitecustomize` comes first on
its PYTHONPATH, so it and every Python process that it starts are activated.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NoReturn

from smdebug import _core, run_config
from smdebug.child import run_child
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugValueError
from smdebug.run_config import Choice

USAGE = 2
SITE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "zcc", "site")
PROGRAMS = ("python", "python3", "torchrun", "accelerate", "mpirun", "srun", "horovodrun")


class Parser(argparse.ArgumentParser):
    """Raises instead of ending the process, and leaves the program's words alone."""

    def error(self, message: str) -> NoReturn:
        raise SMDebugValueError(f"{message[:1].upper()}{message[1:]}.")

    def split(self, words: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
        """Our options, and the words of the program behind them."""
        values = {name: a for a in self._actions for name in a.option_strings}
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] not in ("--", "-m"):
            name, equals, _ = words[at].partition("=")
            if name not in values:
                near = get_close_matches(name, values, 1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise SMDebugValueError(f"'{self.prog}' has no option '{name}'.{hint}")
            at += 1 if equals or values[name].nargs == 0 else 2
        options = self.parse_args(words[:at])
        program = list(words[at:])
        return options, program[1:] if program[:1] == ["--"] else program


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `smdebug run` and `smdebug plan`, as smd/cli/recording_options.cpp has them."""
    parser.add_argument("--config")
    parser.add_argument("--out")
    parser.add_argument("--save")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--reductions")
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--interval", type=positive)
    parser.add_argument("--workers", choices=("one", "all"))
    parser.add_argument("--layout", choices=("packed", "original"))


def positive(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number of at least 1")
    return int(text)


def choice_of(options: argparse.Namespace) -> Choice:
    """What the options ask for."""
    names = Choice.__dataclass_fields__
    values = {name: getattr(options, name) for name in names}
    return Choice(**values | {"include": tuple(options.include)})


def command_of(program: Sequence[str]) -> list[str]:
    """The words that start a program; the word python may be missing."""
    if not program:
        raise SMDebugValueError(
            "There is no program to run. Usage: smdebug run [options] python train.py ..."
        )
    first = program[0]
    if first == "-m":
        if len(program) < 2:
            raise SMDebugValueError("-m needs the name of a module.")
        return [sys.executable, *program]
    if first.endswith(".py"):
        if not os.path.isfile(first):
            folder = os.path.dirname(first) or "."
            scripts = (
                [n for n in os.listdir(folder) if n.endswith(".py")]
                if os.path.isdir(folder)
                else []
            )
            near = get_close_matches(os.path.basename(first), scripts, 1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise SMDebugValueError(
                f"There is no script to run.{hint} It was looked for here: {first}"
            )
        return [sys.executable, *program]
    if shutil.which(first) is None:
        near = get_close_matches(first, PROGRAMS, 1)
        hint = f" Did you mean '{near[0]}'?" if near else ""
        raise SMDebugValueError(f"There is no program '{first}'.{hint}")
    return list(program)


def script_of(program: Sequence[str]) -> str:
    """What the run is named after: the first .py file or module among the words."""
    for at, word in enumerate(program):
        if word.endswith(".py"):
            return word
        if word == "-m" and at + 1 < len(program):
            return program[at + 1].rpartition(".")[2]
    return program[0]


def environment_of(config: str) -> dict[str, str]:
    """What makes the script and its children record."""
    before = os.environ.get("PYTHONPATH")
    path = SITE if not before else f"{SITE}{os.pathsep}{before}"
    return {**os.environ, "PYTHONPATH": path, "SMDEBUG_CONFIG_FILE_PATH": config}


def has_recorded(place: str) -> bool:
    """Whether anything was written there."""
    return "://" in place or (os.path.isdir(place) and any(os.scandir(place)))


def run(choice: Choice, program: Sequence[str]) -> int:
    """Runs a program and records it; its exit code, -n after signal n."""
    command = command_of(program)
    configured = os.environ.get("SMDEBUG_CONFIG_FILE_PATH")
    if choice == Choice() and configured:
        choice = Choice(config=configured)
    document = run_config.document_of(choice, run_config.place_of(choice.out, script_of(program)))
    place = document.get("LocalPath", "")
    is_on = _core.use_smdebug()
    if not is_on:
        say("USE_SMDEBUG switches recording off")
    elif choice.config is None:
        say(run_config.describe(document))
    with tempfile.TemporaryDirectory(prefix="smdebug-run-") as folder:
        code = run_child(command, environment_of(run_config.write(document, folder)))
    if is_on and place and not has_recorded(place):
        say("nothing was recorded: no model that is trained was found in the script")
    return code


def say(what: str) -> None:
    """A line for people, beside what the script prints."""
    print(f"smdebug: {what}", file=sys.stderr, flush=True)


def end_like(code: int) -> int:
    """The exit code; ends this process by the signal that ended the script."""
    if code >= 0:
        return code
    number = signal.Signals(-code)
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number  # for signals that cannot end this process


def main(words: Sequence[str]) -> int:
    """The command; the exit code."""
    parser = Parser(
        prog="smdebug run", allow_abbrev=False, usage="smdebug run [options] PROGRAM ..."
    )
    add_options(parser)
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    try:
        options, program = parser.split(words)
        if options.json:
            raise SMDebugRuntimeError(
                "'smdebug run' prints what the script prints; --json has no use."
            )
        code = run(choice_of(options), program)
    except (SMDebugError, OSError) as error:
        print(f"smdebug: {error}", file=sys.stderr)
        return USAGE
    return end_like(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
