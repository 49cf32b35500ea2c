"""Every pin of tools/requirements has hashes, and tools/lock.py takes the right files for them."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tools/requirements"
sys.path.insert(0, str(ROOT / "tools"))

import lock  # noqa: E402
from lock import Pin  # noqa: E402

ENVIRONMENTS = sorted(path.stem for path in FOLDER.glob("*.txt"))
NUMPY = Pin("numpy", "2.4.6")


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_pin_has_a_hash(name: str) -> None:
    known = lock.read_lock(FOLDER / lock.LOCK)
    pins = lock.pins_of(FOLDER / f"{name}.txt")
    assert pins
    assert [str(pin) for pin in pins if not known.get(pin)] == []


def test_no_hash_is_without_its_pin() -> None:
    assert set(lock.read_lock(FOLDER / lock.LOCK)) == lock.all_pins(FOLDER)


def test_the_lock_says_nothing_of_where_files_came_from() -> None:
    text = (FOLDER / lock.LOCK).read_text()
    assert re.findall(r"https?:|file:|@|--index|--find-links", text) == []


def test_an_environment_is_printed_with_hashes() -> None:
    command = [sys.executable, ROOT / "tools/lock.py", "--print", "nvrtc"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    entries = done.stdout.replace("\\\n", " ").splitlines()
    assert [lock.Pin.parse(line) for line in entries] == lock.pins_of(FOLDER / "nvrtc.txt")
    assert all(lock.HASH.search(line) for line in entries)


def test_a_pin_without_a_hash_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.txt").write_text("# Two.\nnumpy==2.4.6\nNew_Thing==1.0\n")
    lock.write_lock(tmp_path / lock.LOCK, {NUMPY: frozenset(["sha256:" + "0" * 64])})
    monkeypatch.setattr(lock, "REQUIREMENTS", tmp_path)
    assert lock.show("small") == 1
    captured = capsys.readouterr()
    assert "new-thing==1.0" in captured.err and "numpy" not in captured.err
    assert captured.out == ""


def test_a_line_that_is_no_pin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loose.txt").write_text("numpy>=2\n")
    with pytest.raises(ValueError, match="'numpy>=2' is no pin"):
        lock.pins_of(tmp_path / "loose.txt")


def test_the_lock_is_read_as_it_was_written(tmp_path: Path) -> None:
    hashes = {
        NUMPY: frozenset(["sha256:" + "1" * 64, "sha256:" + "a" * 64]),
        Pin("a", "1.0"): frozenset(["sha256:" + "b" * 64]),
    }
    lock.write_lock(tmp_path / "x.lock", hashes)
    assert lock.read_lock(tmp_path / "x.lock") == hashes


@pytest.mark.parametrize(
    "file",
    [
        "numpy-2.4.6.tar.gz",
        "numpy-2.4.6-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
        "numpy-2.4.6-cp313-cp313-manylinux_2_27_aarch64.whl",
        "numpy-2.4.6-cp38-abi3-manylinux_2_17_x86_64.whl",
        "NumPy-2.4.6-py2.py3-none-any.whl",
        "numpy-2.4.6+cpu-cp311-cp311-linux_x86_64.whl",
        "numpy-2.4.6-1-py3-none-any.whl",
        "numpy-2.4.6-py3-none-manylinux_2_5_x86_64.manylinux1_x86_64.musllinux_1_1_x86_64.whl",
    ],
)
def test_files_that_can_be_installed_are_taken(file: str) -> None:
    assert lock.is_for_us(file, NUMPY)


@pytest.mark.parametrize(
    "file",
    [
        "numpy-2.4.5.tar.gz",
        "numpy-2.4.6.exe",
        "numpy_more-2.4.6-py3-none-any.whl",
        "numpy-2.4.6-cp310-cp310-manylinux_2_17_x86_64.whl",
        "numpy-2.4.6-cp313-cp313t-manylinux_2_17_x86_64.whl",
        "numpy-2.4.6-cp311-cp311-musllinux_1_2_x86_64.whl",
        "numpy-2.4.6-cp311-cp311-macosx_14_0_arm64.whl",
        "numpy-2.4.6-cp311-cp311-win_amd64.whl",
        "numpy-2.4.6-py2-none-any.whl",
    ],
)
def test_other_files_are_left(file: str) -> None:
    assert not lock.is_for_us(file, NUMPY)


def test_indexes_and_folders_are_asked(tmp_path: Path) -> None:
    wheel, value = "numpy-2.4.6%2Bcpu-py3-none-any.whl", "c" * 64
    page = tmp_path / "simple/numpy/index.html"
    page.parent.mkdir(parents=True)
    page.write_text(
        f'<a href="../../files/{wheel}#sha256={value}">x</a>\n'
        f'<a href="../../files/numpy-2.4.5.tar.gz#sha256={"d" * 64}">y</a>\n'
    )
    index = (tmp_path / "simple").as_uri()
    assert lock.ask_index(index, NUMPY) == {f"sha256:{value}"}
    assert lock.ask_index(index, Pin("unknown", "1")) == set()

    (tmp_path / "numpy-2.4.6.zip").write_bytes(b"source")
    expected = hashlib.sha256(b"source").hexdigest()
    assert lock.ask_folder(tmp_path, NUMPY) == {f"sha256:{expected}"}


def is_installed_here(package: dict[str, Any]) -> bool:
    """Whether npm installs a package on Linux for x86-64 with the GNU C library."""
    wanted = {"os": "linux", "cpu": "x64", "libc": "glibc"}
    return all(value in package.get(key, [value]) for key, value in wanted.items())


@pytest.mark.parametrize("folder", ["viewer", "tests/browser"])
def test_packages_of_the_page_have_a_hash(folder: str) -> None:
    packages = json.loads((ROOT / folder / "package-lock.json").read_text())["packages"]
    named = {name: package for name, package in packages.items() if name}
    assert named
    without = [name for name, package in named.items() if "integrity" not in package]
    assert [name for name in without if is_installed_here(named[name])] == []
    assert [name for name in without if not named[name].get("optional")] == []


@pytest.mark.parametrize(
    ("known", "in_folders", "in_indexes", "kept"),
    [
        ("", "", "ab", "ab"),
        ("a", "", "ab", "ab"),  # a file was added to the release
        ("a", "c", "ab", "c"),  # a build at hand is the one that is meant
        ("c", "", "ab", "c"),  # and stays so where it is not at hand
    ],
)
def test_a_file_of_a_folder_goes_before_those_of_indexes(
    known: str, in_folders: str, in_indexes: str, kept: str
) -> None:
    sets = (frozenset(known), frozenset(in_folders), frozenset(in_indexes))
    assert lock.choose(*sets) == frozenset(kept)
