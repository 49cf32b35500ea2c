#!/usr/bin/env python3
"""Checks who may include whom below smd/, and writes the module table of ARCHITECTURE.md.

    tools/check_layers.py [--root DIR]          check; prints file:line: message and exits with 1
    tools/check_layers.py --write-docs          also rewrite the table between the markers

MODULES below is the only place where the table stands.
The build (CMakeLists.txt) and the documentation are checked against it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Module:
    uses: tuple[str, ...]  # what it may include, with everything those may include
    holds: str


# In the order of the layers, lowest first.
MODULES: dict[str, Module] = {
    "base": Module((), "errors and results, bytes, checksum, JSON text, log, clock, bounded queue"),
    "types": Module(("base",), "mode, step, worker and tensor names, durability"),
    "tensor": Module(("base",), "element types, views of tensors, widening of small floats"),
    "storage": Module(
        ("base",), "files of a run behind one interface; one backend per scheme; spool"
    ),
    "reduce": Module(("tensor",), "statistics of a tensor in one pass; one file per kind"),
    "gpu": Module(
        ("reduce",), "statistics of tensors on a device: kernels, their compilation and launch"
    ),
    "format": Module(("types", "tensor"), "records, index and file names: bytes, no files"),
    "config": Module(("types", "reduce"), "save, reduction and hook configuration; environment"),
    "collection": Module(("config",), "named groups of tensors and the matching of names"),
    "packed": Module(
        ("format", "storage"), "packed segments as files: how they are read and committed"
    ),
    "summary": Module(
        ("format", "storage", "collection"), "files that TensorBoard shows: scalars, histograms"
    ),
    "writer": Module(("format", "storage"), "queue, writer thread, claim; one sink per layout"),
    "hook": Module(
        ("collection", "writer", "packed", "summary"),
        "step clock, save plan, NaN watch, guard, facade",
    ),
    "trial": Module(
        ("packed", "collection"),
        "a run read back: snapshots, step states, values, damage; one source per layout",
    ),
    "picture": Module(("base",), "curves and bars as SVG, and text that is safe to show"),
    "rules": Module(
        ("trial", "picture"), "what rules see of a step, rules, runner, findings; one file per rule"
    ),
    "watch": Module(
        ("hook", "rules"), "rules inside of the training process; stands above both halves"
    ),
    "repack": Module(
        ("trial", "writer"), "a run copied into another layout; index files beside a packed run"
    ),
    "native": Module(
        ("hook", "trial"), "what C++ and C programs include: `smd/smd.h`, `smd/c_api.h`"
    ),
    "server": Module(
        ("rules",), "runs over HTTP: live snapshots, the page, reports; one file per route"
    ),
    "cli": Module(("server", "summary", "repack"), "the program `smdebug`; one file per command"),
}

# Files directly in smd/ are the public headers.
TOP_MODULE = "native"
SOURCES = {".h", ".hpp", ".inc", ".c", ".cc", ".cpp"}
FRAMEWORKS = {
    "torch",
    "pytorch",
    "tensorflow",
    "keras",
    "mxnet",
    "gluon",
    "xgboost",
    "lightgbm",
    "jax",
    "flax",
    "paddle",
    "horovod",
    "deepspeed",
}

# Names of rules and of the files they write, which users of the original know.
PUBLIC_NAMES = re.compile(r"(create_)?xgboost_report")

INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^">]+)[">]')
FRAMEWORK = re.compile(rf"(?<![a-z0-9])({'|'.join(sorted(FRAMEWORKS))})(?![a-z0-9])", re.IGNORECASE)
CMAKE_MODULE = re.compile(r"^\s*smd_module\(\s*(\w+)([^)]*)\)", re.MULTILINE)
CMAKE_KEYWORDS = {"LINK", "CATALOG", "PROGRAM", "EMBED"}

DOCS = "ARCHITECTURE.md"
BEGIN = "<!-- modules: written by tools/check_layers.py --write-docs -->"
END = "<!-- end of modules -->"


def reachable(module: str) -> set[str]:
    """The module and everything it may include."""
    found = {module}
    for used in MODULES[module].uses:
        found |= reachable(used)
    return found


def module_of(path: str) -> str:
    """The module of smd/<module>/…, or of a file directly in smd/."""
    parts = path.split("/")
    return parts[1] if len(parts) > 2 else TOP_MODULE


def check_include(path: str, target: str) -> str | None:
    """What is wrong with `path` including `target`; None: nothing."""
    module = module_of(path)
    if target.startswith("python/"):
        return f"smd/ must not include the Python package: {target}"
    if not target.startswith("smd/"):
        return None
    other = module_of(target)
    if other not in MODULES:
        return f"{target} belongs to no module of the table"
    if other not in reachable(module):
        allowed = ", ".join(sorted(reachable(module) - {module})) or "nothing"
        return f"{module} must not include {other} ({target}); it may include {allowed}"
    if "internal" in target.split("/")[2:] and other != module:
        return f"{target} is private to {other}"
    return None


def check_file(root: Path, file: Path) -> Iterator[str]:
    path = file.relative_to(root).as_posix()
    if module_of(path) not in MODULES:
        yield f"{path}:1: {module_of(path)} is no module of the table in tools/check_layers.py"
        return
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        include = INCLUDE.match(line)
        problem = check_include(path, include[1]) if include else None
        if problem:
            yield f"{path}:{number}: {problem}"
        named = FRAMEWORK.search(PUBLIC_NAMES.sub("", line))
        if named:
            yield f"{path}:{number}: the core knows no framework, but this line names {named[1]}"


def check_build(root: Path) -> Iterator[str]:
    """The modules that CMakeLists.txt lists must use what the table says."""
    file = root / "CMakeLists.txt"
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    for match in CMAKE_MODULE.finditer(text):
        name, uses, reading = match[1], [], False
        for word in match[2].split():
            if word == "USES" or word in CMAKE_KEYWORDS:
                reading = word == "USES"
            elif reading:
                uses.append(word)
        place = f"CMakeLists.txt:{text.count(chr(10), 0, match.start()) + 1}"
        if name not in MODULES:
            yield f"{place}: {name} is no module of the table in tools/check_layers.py"
        elif set(uses) != set(MODULES[name].uses):
            wanted = ", ".join(MODULES[name].uses) or "nothing"
            yield f"{place}: {name} must use {wanted}, not {', '.join(uses) or 'nothing'}"


def module_table() -> str:
    rows = ["| module | may include | holds |", "|---|---|---|"]
    for name, module in MODULES.items():
        rows.append(f"| `{name}` | {', '.join(module.uses) or '–'} | {module.holds} |")
    return "\n".join(rows)


def with_table(text: str) -> str | None:
    """The document with the present table; None: the markers are not there."""
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        return None
    return f"{text[: begin + len(BEGIN)]}\n\n{module_table()}\n\n{text[end:]}"


def check_docs(root: Path, write: bool) -> Iterator[str]:
    file = root / DOCS
    if not file.exists():
        return
    text = file.read_text(encoding="utf-8")
    wanted = with_table(text)
    if wanted is None:
        yield f"{DOCS}:1: the markers of the module table are missing"
    elif wanted != text and write:
        file.write_text(wanted, encoding="utf-8")
    elif wanted != text:
        line = text.count("\n", 0, text.find(BEGIN)) + 1
        yield f"{DOCS}:{line}: the module table is old; run tools/check_layers.py --write-docs"


def check(root: Path, write_docs: bool = False) -> list[str]:
    """Every problem below `root`, sorted by file."""
    problems = []
    for file in sorted((root / "smd").rglob("*")):
        if file.is_file() and file.suffix in SOURCES:
            problems += check_file(root, file)
    return problems + list(check_build(root)) + list(check_docs(root, write_docs))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).resolve().parents[1], help="the repository"
    )
    parser.add_argument("--write-docs", action="store_true", help=f"rewrite the table in {DOCS}")
    arguments = parser.parse_args(argv)
    if not (arguments.root / "smd").is_dir():
        parser.error(f"there is no folder smd/ in {arguments.root}")
    problems = check(arguments.root, arguments.write_docs)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
