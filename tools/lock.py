#!/usr/bin/env python3
"""Knows the hashes of the files behind the pins of tools/requirements/*.txt.

    tools/lock.py               look every pin up and write tools/requirements/hashes.lock
    tools/lock.py --print NAME  print the pins of NAME.txt with their hashes, as pip wants them

Pins are looked up wherever pip is configured to look: its index, further ones, folders of files.
A hash that is known stays as long as its pin does, since not every machine has the same places.
Where a folder has a file for a pin, such as a build of PyTorch for CPUs, only that one is meant: of
several files pip takes those first whose hashes an index tells.
Only what Linux on x86-64 and ARM can install is kept, for the versions of Python in PYTHONS.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shlex
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

REQUIREMENTS = Path(__file__).resolve().parent / "requirements"
LOCK = "hashes.lock"
PYTHONS = ("cp311", "cp312", "cp313", "cp314")
PIN = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)==(?P<version>[^\s;\\]+)")
SYSTEM = re.compile(r"any|(many)?linux\w*_(x86_64|aarch64)")
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")

Hashes = dict["Pin", frozenset[str]]


class Pin(NamedTuple):
    """A project, its name as indexes write it, and the one version of it that is wanted."""

    name: str
    version: str

    @classmethod
    def parse(cls, line: str) -> Pin:
        match = PIN.match(line)
        if match is None:
            raise ValueError(f"'{line}' is no pin such as numpy==2.4.6.")
        return cls(normal(match["name"]), match["version"])

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def normal(name: str) -> str:
    """The name of a project as indexes write it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def pins_of(path: Path) -> list[Pin]:
    """The pins of a requirements file."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [Pin.parse(line) for line in lines if line and not line.startswith("#")]


def all_pins(folder: Path) -> set[Pin]:
    """The pins of all requirements files."""
    return {pin for path in folder.glob("*.txt") for pin in pins_of(path)}


def read_lock(path: Path) -> Hashes:
    """The hashes of each pin in a lock file."""
    if not path.exists():
        return {}
    entries = path.read_text().replace("\\\n", " ").splitlines()
    return {
        Pin.parse(entry): frozenset(HASH.findall(entry))
        for entry in entries
        if entry.strip() and not entry.startswith("#")
    }


def entry(pin: Pin, hashes: frozenset[str]) -> str:
    """A pin and its hashes, in the syntax of requirements files."""
    return " \\\n".join([str(pin), *(f"    --hash={value}" for value in sorted(hashes))])


def write_lock(path: Path, hashes: Hashes) -> None:
    """Writes the lock file, in the order of names and versions."""
    head = (
        "# Written by tools/lock.py: the files that each pin of this folder may be installed from."
    )
    path.write_text("\n".join([head, *(entry(pin, hashes[pin]) for pin in sorted(hashes))]) + "\n")


# ---- what places offer


def is_for_us(file: str, pin: Pin) -> bool:
    """Whether a file belongs to the pin and can be installed on the machines that are meant."""
    if file.endswith(".whl"):
        parts = file.removesuffix(".whl").split("-")
        name, version, (python, abi, platform) = parts[0], parts[1], parts[-3:]
        pythons = python.split(".")
        fits = any(tag.startswith("py3") or tag in PYTHONS for tag in pythons) or abi == "abi3"
        fits = fits and not abi.endswith("t")  # without the lock of the interpreter
        fits = fits and any(SYSTEM.fullmatch(tag) for tag in platform.split("."))
    else:
        match = re.fullmatch(r"(.+)-([^-]+)\.(tar\.gz|tar\.bz2|zip)", file)
        if match is None:
            return False
        name, version, fits = match[1], match[2], True
    # A build of the same version, such as 2.13.0+cpu, is what the pin asks for, too.
    return fits and normal(name) == pin.name and version.split("+")[0] == pin.version


class Links(HTMLParser):
    """The links of a page of an index: file name and hash."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = urlsplit(dict(attrs).get("href") or "")
        kind, _, value = link.fragment.partition("=")
        if tag == "a" and kind == "sha256":
            self.found.append((unquote(link.path.rsplit("/", 1)[-1]), f"sha256:{value}"))


def ask_index(index: str, pin: Pin) -> set[str]:
    """The hashes that an index gives for a pin. Nothing, if it does not know the project."""
    page = f"{index.rstrip('/')}/{pin.name}/"
    if page.startswith("file:"):
        page += "index.html"
    request = urllib.request.Request(page, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return set()
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):
            return set()
        raise
    links = Links()
    links.feed(text)
    return {value for file, value in links.found if is_for_us(file, pin)}


def ask_folder(folder: Path, pin: Pin) -> set[str]:
    """The hashes of the files for a pin in a folder."""
    found = set()
    for path in folder.iterdir():
        if is_for_us(path.name, pin):
            with path.open("rb") as file:
                found.add(f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")
    return found


def places() -> tuple[list[str], list[Path]]:
    """The indexes and the folders where pip looks."""
    from pip._internal.models.index import PyPI  # what pip takes when nothing is configured

    command = [sys.executable, "-m", "pip", "config", "list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    options: dict[str, list[str]] = {}
    for line in lines:
        key, _, value = line.partition("=")
        options[key.rsplit(".", 1)[-1]] = " ".join(shlex.split(value)).split()
    indexes = options.get("index-url", [PyPI.simple_url]) + options.get("extra-index-url", [])
    folders = [Path(urlsplit(place).path) for place in options.get("find-links", [])]
    return indexes, [folder for folder in folders if folder.is_dir()]


def choose(
    known: frozenset[str], in_folders: frozenset[str], in_indexes: frozenset[str]
) -> frozenset[str]:
    """The hashes to keep of a pin."""
    if in_folders:
        return in_folders
    # What no index offers came from a folder of another machine.
    return known if known - in_indexes else known | in_indexes


def write() -> int:
    """Looks all pins up and writes the lock file."""
    known = read_lock(REQUIREMENTS / LOCK)
    indexes, folders = places()

    def find(pin: Pin) -> frozenset[str]:
        in_folders = frozenset(found for folder in folders for found in ask_folder(folder, pin))
        in_indexes = frozenset(found for index in indexes for found in ask_index(index, pin))
        return choose(known.get(pin, frozenset()), in_folders, in_indexes)

    pins = sorted(all_pins(REQUIREMENTS))
    with ThreadPoolExecutor(8) as pool:
        hashes = dict(zip(pins, pool.map(find, pins), strict=True))
    missing = [str(pin) for pin in pins if not hashes[pin]]
    if missing:
        print(f"lock: nobody offers a file for {', '.join(missing)}.", file=sys.stderr)
        return 1
    write_lock(REQUIREMENTS / LOCK, hashes)
    count = sum(len(of_pin) for of_pin in hashes.values())
    print(f"lock: wrote {count} hashes of {len(pins)} pins.")
    return 0


def show(name: str) -> int:
    """Prints the pins of an environment with their hashes."""
    known = read_lock(REQUIREMENTS / LOCK)
    pins = pins_of(REQUIREMENTS / f"{name}.txt")
    missing = [str(pin) for pin in pins if not known.get(pin)]
    if missing:
        print(
            f"lock: there is no hash of {', '.join(missing)}; tools/lock.py looks it up.",
            file=sys.stderr,
        )
        return 1
    print("\n".join(entry(pin, known[pin]) for pin in pins))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--print", metavar="NAME", help="an environment of tools/requirements/")
    args = parser.parse_args()
    try:
        return show(args.print) if args.print else write()
    except (ValueError, OSError) as error:
        print(f"lock: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
