"""Arrays that say they are on a CUDA device, where there is none: they go by way of the host."""

import sys
import types

import numpy as np
import pytest
from smdebug import Hook, SaveConfig, create_trial
from smdebug.device_arrays import is_on_device


class Array:
    """What JAX's arrays have that matters here."""

    def __init__(self, values, place):
        self.values = np.asarray(values)
        self.place = place

    def __dlpack_device__(self):
        if self.place is None:
            raise ValueError("on several devices")
        return self.place

    def __array__(self, dtype=None, copy=None):
        return self.values


class Tracer(Array):
    pass


@pytest.fixture(autouse=True)
def jax(monkeypatch):
    module = types.ModuleType("jax")
    module.Array = Array
    module.core = types.SimpleNamespace(Tracer=Tracer)
    monkeypatch.setitem(sys.modules, "jax", module)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (Array([1], (2, 0)), True),
        (Array([1], (1, 0)), False),
        (Array([1], None), False),
        (Tracer([1], (2, 0)), False),
        (np.ones(3), False),
        (3.5, False),
    ],
    ids=["cuda", "host", "several", "tracer", "numpy", "number"],
)
def test_only_arrays_of_one_cuda_device_are_taken(array, expected):
    assert is_on_device(array) is expected


def test_without_a_driver_the_host_reads_them_and_the_log_says_so_once(tmp_path, messages):
    with Hook(
        str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=1)
    ) as hook:
        for step in range(3):
            hook.begin_step()
            hook.save("x", Array([1.5, step], (2, 0)))
    tensor = create_trial(str(tmp_path / "run")).tensor("x")
    assert [tensor.value(step).tolist() for step in range(3)] == [[1.5, 0], [1.5, 1], [1.5, 2]]
    said = [text for _, text in messages.lines if "cuda:0 are copied to the host" in text]
    assert len(said) == 1


def test_a_step_that_saves_nothing_does_not_look_at_them(tmp_path):
    class Untouchable(Array):
        def __dlpack_device__(self):
            raise AssertionError("It was looked at.")

    with Hook(
        str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=2)
    ) as hook:
        hook.begin_step()
        hook.begin_step()
        hook.save("x", Untouchable([1.0], None))
