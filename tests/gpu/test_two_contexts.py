"""Several devices, where there is one: two contexts of it, which the real driver keeps apart."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "python/tests/test_simulated_devices.py"


def loaded(stem: str) -> Path | None:
    """A library of this process."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = Path(line.split(maxsplit=5)[-1])
        if path.name.startswith(stem):
            return path
    return None


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """The folder of a driver that makes two devices of the first one."""
    out = tmp_path / "split"
    out.mkdir()
    compiled = ["c++", "-std=c++20", "-O1", "-Wall", "-Werror", "-fPIC", "-shared"]
    source = str(HERE / "split_cuda.cpp")
    subprocess.run([*compiled, source, "-o", str(out / "libcuda.so.1"), "-ldl"], check=True)
    return out


@pytest.mark.parametrize("delay_us", ["0", "300"])
def test_what_is_simulated_elsewhere_holds_on_two_contexts(tmp_path, driver, delay_us):
    torch.zeros(1, device="cuda") + 1
    torch.cuda._sleep(1)
    real, compiler = loaded("libcuda.so"), loaded("libnvrtc.so")
    assert real is not None
    folders = [str(compiler.parent)] if compiler else []
    folders += filter(None, [os.environ.get("LD_LIBRARY_PATH")])
    own = {
        "SIMULATED_CUDA_DIR": str(driver),
        "SPLIT_CUDA_REAL": str(real),
        "SPLIT_CUDA_DELAY_US": delay_us,
        "LD_LIBRARY_PATH": os.pathsep.join(folders),
    }
    # A real device cannot be told to fail, or to be slow for a while.
    words = ["--noconftest", "-p", "no:cacheprovider"]
    words += ["-k", "not fails and not cannot and not room"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", str(TESTS), *words],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None and int(passed[1]) >= 20, done.stdout
