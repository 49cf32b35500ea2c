"""The kernels for CUDA devices compile with NVIDIA's compiler; no device is needed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from smdebug import _core
from smdebug.exceptions import SMDebugError

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / ".venvs/nvrtc/lib"


def library() -> str:
    """NVRTC from the virtual environment of this suite."""
    (path,) = PACKAGES.glob("python*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")
    return str(path)


# Ampere, Ada, Hopper; newer devices get an intermediate form.
@pytest.mark.parametrize("capability", [80, 89, 90])
def test_every_element_type_compiles(capability):
    sizes = dict(_core.compile_kernels(library(), capability))
    assert len(sizes) == 15
    assert {"float32", "bfloat16", "float8_e4m3fn", "int64", "bool"} <= set(sizes)
    assert all(size > 1000 for size in sizes.values())


def test_a_device_newer_than_the_compiler_gets_an_intermediate_form():
    assert all(size > 1000 for _, size in _core.compile_kernels(library(), 999))


def test_a_device_that_the_compiler_has_forgotten_is_refused():
    with pytest.raises(SMDebugError, match=r"does not know devices of compute capability 3\.5"):
        _core.compile_kernels(library(), 35)


def test_without_a_driver_the_reason_is_one_line():
    code = """
from smdebug import _core
try:
    _core.prepare_device(0)
except Exception as error:
    print(error)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    assert len(done.stdout.splitlines()) == 1
    assert "libcuda.so.1" in done.stdout or "CUDA" in done.stdout
