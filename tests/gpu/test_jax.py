"""Arrays of JAX on a CUDA device: read there, without waiting, and the program may donate them."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from saved_arrays import STATISTICS, check_statistics, hook_for  # noqa: E402
from smdebug import create_trial  # noqa: E402

pytestmark = pytest.mark.skipif(jax.default_backend() != "gpu", reason="JAX has no GPU here")

DTYPES = ["float32", "float16", "bfloat16", "int32", "uint8", "bool"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [1, 7, 4097, 2_000_003])
def test_statistics_are_those_of_the_host(tmp_path, by_devices, dtype, size):
    values = np.random.default_rng(size).normal(3, 40, size)
    array = jnp.asarray(values).astype(dtype)
    with hook_for(tmp_path / "run", reduction_config=STATISTICS) as hook:
        hook.begin_step()
        hook.save("x", array)
    assert by_devices == ["x"]
    check_statistics(create_trial(str(tmp_path / "run")).tensor("x"), 0, np.asarray(array))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_arrive_as_they_were(tmp_path, by_devices, dtype):
    array = jnp.asarray(np.random.default_rng(3).normal(0, 9, (37, 51))).astype(dtype)
    with hook_for(tmp_path / "run") as hook:
        hook.begin_step()
        hook.save("x", array)
    assert by_devices == ["x"]
    saved = create_trial(str(tmp_path / "run")).tensor("x").value(0)
    np.testing.assert_array_equal(saved, np.asarray(array).astype(saved.dtype))


def test_the_program_may_donate_what_was_just_saved(tmp_path, by_devices):
    step = jax.jit(lambda x: x * 2 + 1, donate_argnums=0)
    x = jnp.arange(1 << 20, dtype=jnp.float32)
    expected = np.asarray(x)
    with hook_for(tmp_path / "run", reduction_config=STATISTICS) as hook:
        for _ in range(10):
            hook.begin_step()
            hook.save("x", x)
            x = step(x)
    assert len(by_devices) == 10
    tensor = create_trial(str(tmp_path / "run")).tensor("x")
    for number in range(10):
        assert float(tensor.reduction_value(number, "max")) == expected.max()
        expected = expected * 2 + 1
    np.testing.assert_array_equal(np.asarray(x), expected)


def test_nobody_waits_for_the_device(tmp_path, by_devices):
    @jax.jit
    def long(x):
        return jax.lax.fori_loop(0, 200, lambda _, y: y @ y / jnp.linalg.norm(y), x)

    x = jnp.ones((4096, 4096))
    long(x).block_until_ready()
    with hook_for(tmp_path / "run", reduction_config=STATISTICS) as hook:
        hook.begin_step()
        hook.save("x", x)
        hook.begin_step()
        y = long(x)
        hook.save("x", y)
        assert not y.is_ready()
    assert by_devices == ["x", "x"]


def test_arrays_of_the_host_take_the_usual_way(tmp_path, by_devices):
    host = jax.device_put(np.arange(5.0), jax.devices("cpu")[0])
    with hook_for(tmp_path / "run") as hook:
        hook.begin_step()
        hook.save("x", host)
    assert by_devices == []
    np.testing.assert_array_equal(
        create_trial(str(tmp_path / "run")).tensor("x").value(0), np.arange(5.0)
    )
