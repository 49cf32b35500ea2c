"""Prints what a package offers: public modules, their names, members and signatures, as JSON.

    python tools/name_inventory.py list PACKAGE [--without SUBPACKAGE …] [--path FOLDER]
    python tools/name_inventory.py describe [--path FOLDER] < list.json

`list` walks a package; `describe` tells the same of names that a list holds, as far as they exist.
FOLDER is looked at after the environment's own packages. Runs in the environment of either package
and needs nothing but the standard library. The document is the last line of the output.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

# [name, kind, whether it has a default] of each parameter; None: nobody knows.
Signature = list[tuple[str, str, bool]] | None
PLAIN = (bool, int, float, str, bytes, type(None))


def names_in(source: str, *, is_package: bool) -> list[str]:
    """The public names that a module defines; of a package also those that it hands on."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(target.id for target in targets if isinstance(target, ast.Name))
        elif isinstance(node, ast.ImportFrom) and is_package:
            inner = node.level > 0 or (node.module or "").split(".")[0] == "smdebug"
            found.update(a.asname or a.name for a in node.names if inner and a.name != "*")
    return sorted(name for name in found if not name.startswith("_"))


def walk(package: str, without: list[str]) -> dict[str, list[str]]:
    """Public names by module."""
    root = Path(importlib.import_module(package).__path__[0])
    found = {}
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        parts = parts[:-1] if is_package else parts
        name = ".".join((package, *parts))
        private = any(part.startswith("_") for part in parts)
        if not private and not any((name + ".").startswith(one + ".") for one in without):
            found[name] = names_in(file.read_text(encoding="utf-8"), is_package=is_package)
    return found


def core_signature(thing: Any) -> Signature:
    """The signature that a function of our extension tells in its own way."""
    texts = getattr(thing, "__nb_signature__", None)
    if not texts:
        return None
    text = re.sub(r"\\\d+", "None", texts[0][0])
    function = ast.parse(text + ": ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    places = [arg.arg for arg in (*function.args.posonlyargs, *function.args.args)]
    needed = len(places) - len(function.args.defaults)
    found = [(name, "POSITIONAL_OR_KEYWORD", i >= needed) for i, name in enumerate(places)]
    defaults = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    found += [(arg.arg, "KEYWORD_ONLY", default is not None) for arg, default in defaults]
    if function.args.vararg:
        found.append((function.args.vararg.arg, "VAR_POSITIONAL", True))
    if function.args.kwarg:
        found.append((function.args.kwarg.arg, "VAR_KEYWORD", True))
    return found


def signature_of(thing: Any) -> Signature:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return None  # raised by the package, not by its users
    init = getattr(thing, "__init__", None)
    told = core_signature(init if inspect.isclass(thing) else thing)
    if told is None:
        try:
            parameters = inspect.signature(thing).parameters.values()
        except (TypeError, ValueError):
            return None
        told = [(p.name, p.kind.name, p.default is not p.empty) for p in parameters]
    return [one for one in told if one[0] not in ("self", "cls")]


def describe_value(thing: Any) -> dict[str, Any]:
    if inspect.isclass(thing):
        return {"kind": "class", "signature": signature_of(thing), "members": members_of(thing)}
    if callable(thing) and not isinstance(thing, PLAIN):
        return {"kind": "function", "signature": signature_of(thing)}
    return {"kind": "value", "value": repr(thing) if isinstance(thing, PLAIN) else None}


def members_of(thing: type) -> dict[str, Any]:
    """Public members, without those of bases that come from other packages."""
    found: dict[str, Any] = {}
    for base in thing.__mro__:
        if not base.__module__.startswith("smdebug"):
            continue
        for name in vars(base):
            if name.startswith("_") or name in found:
                continue
            member = inspect.getattr_static(thing, name)
            if isinstance(member, staticmethod | classmethod):
                member = getattr(thing, name)
            if inspect.isclass(member) or not callable(member):
                found[name] = {"kind": "value", "value": None}
            else:
                found[name] = {"kind": "function", "signature": signature_of(member)}
    return found


def describe(names: dict[str, list[str]]) -> dict[str, Any]:
    """Module → name → what it is. A missing module is None, and so is a missing name."""
    described: dict[str, Any] = {}
    for module, wanted in names.items():
        try:
            there = importlib.import_module(module)
        except ImportError:
            described[module] = None
            continue
        described[module] = {
            name: describe_value(getattr(there, name)) if hasattr(there, name) else None
            for name in wanted
        }
    return described


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["list", "describe"])
    parser.add_argument("package", nargs="?")
    parser.add_argument("--without", nargs="*", default=[])
    parser.add_argument("--path")
    options = parser.parse_args()
    if options.path:
        sys.path.append(options.path)
    if options.verb == "list":
        names = walk(options.package, options.without)
    else:
        names = json.load(sys.stdin)
    described = {"names": names, "described": describe(names)}
    print("\n" + json.dumps(described, sort_keys=True))


if __name__ == "__main__":
    main()
