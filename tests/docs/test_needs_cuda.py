"""`make test-gpu` and `make bench-gpu` say in one sentence what a machine lacks for them."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TORCH = """
__version__ = "2.13.0"
class cuda:
    @staticmethod
    def is_available(): return {}
"""


def tried(folder: Path, **sources: str) -> tuple[int, list[str]]:
    """Exit status and lines, in a Python that has modules of these names and sources."""
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source)
    command = [
        sys.executable,
        "-I",
        "-c",
        f"""
import runpy, sys
sys.path = [{str(folder)!r}] + [path for path in sys.path if "site-packages" not in path]
sys.argv = ["needs_cuda.py", "extra"]
runpy.run_path({str(ROOT / "tools/needs_cuda.py")!r}, run_name="__main__")
""",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


@pytest.mark.parametrize("missing", ["torch", "extra", "smdebug"])
def test_a_missing_module_is_named(tmp_path, missing):
    there = {"torch": TORCH.format(True), "extra": "", "smdebug": ""}
    status, lines = tried(tmp_path, **{name: there[name] for name in there if name != missing})
    assert status == 1
    assert len(lines) == 1
    assert f"cannot import {missing}" in lines[0]
    assert "needs a CUDA device, and a python3 with torch, extra, smdebug." in lines[0]


def test_a_missing_device_is_told(tmp_path):
    status, lines = tried(tmp_path, torch=TORCH.format(False), extra="", smdebug="")
    assert status == 1
    assert len(lines) == 1
    assert lines[0].startswith(f"PyTorch 2.13.0 of {sys.executable} finds no CUDA device.")


def test_where_all_is_there_nothing_is_said(tmp_path):
    assert tried(tmp_path, torch=TORCH.format(True), extra="", smdebug="") == (0, [])
