#!/usr/bin/env python3
"""Writes docs/reference/original-names.md: every public name of the original, and its state here.

    tools/original_names.py            # writes the page
    tools/original_names.py --check    # exit code 1 if the page is old

Both packages are imported and compared, each framework's part in an environment that has the
framework. The original is that of .venvs/original. `dropped_names.py` says why names are missing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from dropped_names import CHANGED, DROPPED

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/original-names.md"
INVENTORY = ROOT / "tools/name_inventory.py"
FRAMEWORKS = {"pytorch": "torch", "mxnet": "mxnet", "xgboost": "xgboost17", "tensorflow": "tf215"}
ENVIRONMENTS = ["original", *FRAMEWORKS.values()]
LONGEST_LINE = 160
MOST_ARGUMENTS = 4
VARIABLE = ("VAR_POSITIONAL", "VAR_KEYWORD")

HEADER = """\
# Names of the original

Every public name of `smdebug` 1.0.34 and what has become of it.
`tools/original_names.py` writes this page; it imports both packages, and a test does the same.
[The guide](../guide/migrate.md) tells what behaves differently behind the same name.

| state | means |
|---|---|
| same | it is here, under the same import path, and takes the same arguments |
| extended | the same, and it takes further arguments or has further members |
| changed | it is here, but an argument or a member differs; the table says which and why |
| dropped | it is not here; the table says why |

Attributes that constructors make, and names with a leading underscore, are not compared.
"""


@dataclass(frozen=True)
class Row:
    """A name of the original: its module, its state and what there is to say about it."""

    module: str
    name: str
    state: str
    note: str = ""


def python_of(environment: str) -> Path:
    return ROOT / ".venvs" / environment / "bin/python"


def is_available() -> bool:
    return all(python_of(name).exists() for name in ENVIRONMENTS)


def ask(environment: str, *arguments: str, path: str = "", given: Any = None) -> dict[str, Any]:
    """What the inventory prints in an environment."""
    done = subprocess.run(
        [python_of(environment), "-W", "ignore", INVENTORY, *arguments],
        input=json.dumps(given),
        # The original's messages are older than the protobuf of the frameworks.
        env={
            **os.environ,
            "PYTHONPATH": path,
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
            "SMDEBUG_LOG_LEVEL": "off",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode != 0:
        raise RuntimeError(f"The names cannot be listed in .venvs/{environment}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def original_packages() -> str:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(ROOT / f".venvs/original/lib/{version}/site-packages")


@cache
def inventories() -> tuple[dict[str, list[str]], dict[str, Any], dict[str, Any]]:
    """Names by module; what they are in the original; what they are here."""
    parts = {"smdebug": ("original", "dev")}
    parts |= {f"smdebug.{name}": (venv, venv) for name, venv in FRAMEWORKS.items()}
    names: dict[str, list[str]] = {}
    theirs: dict[str, Any] = {}
    ours: dict[str, Any] = {}
    for package, (their_environment, our_environment) in parts.items():
        without = [one for one in parts if one != package and one.startswith(package)]
        arguments = ["list", package, "--path", original_packages(), "--without", *without]
        listed = ask(their_environment, *arguments)
        here = ask(our_environment, "describe", path=str(ROOT / "python"), given=listed["names"])
        names |= listed["names"]
        theirs |= listed["described"]
        ours |= here["described"]
    return names, theirs, ours


def lost_arguments(original: Any, here: Any) -> list[str] | None:
    """Arguments of the original that ours does not take in the same place; None: nobody knows."""
    if original is None or here is None:
        return None
    named = {name for name, kind, _ in here if kind not in VARIABLE}
    takes_any = any(kind == "VAR_KEYWORD" for _, kind, _ in here)
    places = [name for name, kind, _ in here if kind.startswith("POSITIONAL")]
    takes_more = any(kind == "VAR_POSITIONAL" for _, kind, _ in here)
    wrong = []
    for place, (name, kind, _) in enumerate(original):
        if kind in VARIABLE:
            continue
        by_name = name in named or takes_any
        in_place = places[place : place + 1] == [name] or takes_more
        if not by_name or (kind.startswith("POSITIONAL") and not in_place):
            wrong.append(name)
    optional = {name for name, _, default in original if default}
    needed = {name for name, kind, default in here if not default and kind not in VARIABLE}
    known = {name for name, _, _ in original}
    return wrong + sorted(n for n in needed if n in optional or n not in known)


def further_arguments(original: Any, here: Any) -> bool:
    known = {name for name, _, _ in original or []}
    return any(name not in known for name, kind, _ in here or [] if kind not in VARIABLE)


def reason(table: dict[str, str], module: str, name: str) -> str:
    """The first reason whose pattern fits `module:name`."""
    key = f"{module}:{name}"
    return next((text for pattern, text in table.items() if fnmatchcase(key, pattern)), "")


def change(lost: list[str], original: Any, module: str, name: str) -> str:
    """What there is to say about arguments: those of the original that are not taken, and why."""
    theirs = [one for one, _, _ in original["signature"] if one in lost] or lost
    shown = listed(theirs[:MOST_ARGUMENTS]) + (" …" if len(theirs) > MOST_ARGUMENTS else "")
    return f"{shown}: {reason(CHANGED, module, name)}"


def judge(module: str, name: str, original: Any, here: Any) -> list[Row]:
    """The row of a name, and one for each member that is not as it was."""
    if here is None or original is None:
        return [Row(module, name, "dropped", reason(DROPPED, module, name))]
    lost = lost_arguments(original.get("signature"), here.get("signature"))
    extended = not lost and further_arguments(original.get("signature"), here.get("signature"))
    members: list[Row] = []
    theirs, ours = original.get("members", {}), here.get("members", {})
    for member, told in theirs.items():
        full = f"{name}.{member}"
        if member not in ours:
            members.append(Row(module, full, "dropped", reason(DROPPED, module, full)))
            continue
        missing = lost_arguments(told.get("signature"), ours[member].get("signature"))
        if missing:
            members.append(Row(module, full, "changed", change(missing, told, module, full)))
        extended = extended or further_arguments(
            told.get("signature"), ours[member].get("signature")
        )
    extended = extended or bool(set(ours) - set(theirs))
    if lost:
        return [Row(module, name, "changed", change(lost, original, module, name)), *members]
    if members:
        return [Row(module, name, "changed", "as some of its members are, see there"), *members]
    return [Row(module, name, "extended" if extended else "same")]


def rows() -> list[Row]:
    names, theirs, ours = inventories()
    found: list[Row] = []
    for module, public in sorted(names.items()):
        for name in public:
            original = (theirs[module] or {}).get(name)
            found += judge(module, name, original, (ours[module] or {}).get(name))
    return found


def without_reason(found: list[Row]) -> list[str]:
    """Names that are not as they were, and nobody has said why."""
    return [
        f"{row.module}:{row.name}"
        for row in found
        if row.state in ("dropped", "changed") and (not row.note or row.note.endswith(": "))
    ]


def listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def paragraph(label: str, names: list[str]) -> list[str]:
    text = textwrap.fill(f"{label}: {listed(names)}.", LONGEST_LINE, break_on_hyphens=False)
    return [*text.splitlines(), ""] if names else []


def section(module: str, found: list[Row]) -> list[str]:
    """A module: lists of names that are here, a table of those that differ."""
    lines = [f"### {module}", ""]
    notes = Counter(row.note for row in found if row.state == "dropped")
    common = [note for note, times in notes.items() if times > 3]
    lines += paragraph("Same", [row.name for row in found if row.state == "same"])
    lines += paragraph("Extended", [row.name for row in found if row.state == "extended"])
    for note in common:
        names = [row.name for row in found if row.state == "dropped" and row.note == note]
        lines += paragraph(f"Dropped ({note})", names)
    apart = [
        row
        for row in found
        if row.state == "changed" or (row.state == "dropped" and row.note not in common)
    ]
    if apart:
        lines += ["| name | state | |", "|---|---|---|"]
        lines += [f"| `{row.name}` | {row.state} | {row.note} |" for row in apart] + [""]
    return lines


def page() -> str:
    found = rows()
    missing = without_reason(found)
    if missing:
        raise RuntimeError("Say in tools/dropped_names.py why these differ: " + " ".join(missing))
    groups: dict[str, list[Row]] = {}
    for row in found:
        groups.setdefault(row.module, []).append(row)
    packages = ("profiler", "core", "tensorflow", "pytorch", "mxnet", "xgboost", "rules", "trials")
    counts: dict[str, Counter[str]] = {}
    for row in found:
        second = row.module.split(".")[1:2]
        label = f"smdebug.{second[0]}" if second and second[0] in packages else "smdebug"
        if "." not in row.name:
            counts.setdefault(label, Counter())[row.state] += 1
    states = ("same", "extended", "changed", "dropped")
    lines = [HEADER, "## How many", "", "| part | " + " | ".join(states) + " |"]
    lines += ["|---|" + "---|" * len(states)]
    for label, count in sorted(counts.items()):
        numbers = " | ".join(str(count[state]) for state in states)
        lines.append(f"| `{label}` | {numbers} |")
    total: Counter[str] = sum(counts.values(), Counter())
    lines += ["| together | " + " | ".join(str(total[state]) for state in states) + " |", ""]
    lines += ["## Names", ""]
    for module, members in sorted(groups.items()):
        lines += section(module, members)
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    fresh = page()
    if options.check:
        return 0 if PAGE.read_text(encoding="utf-8") == fresh else 1
    PAGE.write_text(fresh, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
