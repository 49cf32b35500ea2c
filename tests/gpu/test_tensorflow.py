"""Tensors and variables of TensorFlow on a CUDA device: read there, as they were when saved."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from saved_arrays import STATISTICS, check_statistics, hook_for  # noqa: E402
from smdebug import create_trial  # noqa: E402

pytestmark = pytest.mark.skipif(
    not tf.config.list_physical_devices("GPU"), reason="TensorFlow has no GPU here"
)

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
STEPS = 20


def on_device(values: np.ndarray, dtype: str) -> tf.Tensor:
    """TensorFlow keeps some integers on the host, unless an operation of the device gives them."""
    given = values.astype(tf.as_dtype(dtype).as_numpy_dtype)
    with tf.device("/GPU:0"):
        if dtype == "int32":  # stays there even then, unless it is made of numbers of the device
            out = tf.cast(tf.identity(tf.constant(given.astype("float64"))), dtype)
        else:
            out = tf.identity(tf.constant(given))
    assert "GPU:0" in out.backing_device
    return out


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
@pytest.mark.parametrize("size", [1, 7, 4097, 2_000_003])
def test_statistics_are_those_of_the_host(tmp_path, by_devices, dtype, size):
    values = np.random.default_rng(size).uniform(0 if dtype[0] == "u" else -99, 99, size)
    tensor = on_device(values, dtype)
    with hook_for(tmp_path / "run", reduction_config=STATISTICS) as hook:
        hook.begin_step()
        hook.save("x", tensor)
    assert by_devices == ["x"]
    check_statistics(create_trial(str(tmp_path / "run")).tensor("x"), 0, tensor.numpy())


@pytest.mark.parametrize("dtype", FLOATS + INTEGERS)
def test_elements_arrive_as_they_were(tmp_path, by_devices, dtype):
    tensor = on_device(np.random.default_rng(3).uniform(0, 99, (37, 51)), dtype)
    with hook_for(tmp_path / "run") as hook:
        hook.begin_step()
        hook.save("x", tensor)
    assert by_devices == ["x"]
    saved = create_trial(str(tmp_path / "run")).tensor("x").value(0)
    np.testing.assert_array_equal(saved, tensor.numpy().astype(saved.dtype))


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_what_dlpack_would_garble_goes_by_way_of_the_host(tmp_path, by_devices, dtype):
    tensor = on_device(np.random.default_rng(3).integers(0, 2, (37, 51)), dtype)
    with hook_for(tmp_path / "run") as hook:
        hook.begin_step()
        hook.save("x", tensor)
    assert by_devices == []
    saved = create_trial(str(tmp_path / "run")).tensor("x").value(0)
    np.testing.assert_array_equal(saved, tensor.numpy())


@pytest.mark.parametrize("raw", [False, True], ids=["statistics", "raw"])
@pytest.mark.parametrize("updated", ["eager", "compiled"])
def test_a_variable_may_be_updated_right_after_it_was_saved(tmp_path, by_devices, raw, updated):
    def update() -> None:
        variable.assign_add(tf.ones_like(variable))
        variable.assign(2 * variable)

    with tf.device("/GPU:0"):
        variable = tf.Variable(tf.range(1 << 22, dtype=tf.float32) / 1000)
    assert "GPU:0" in variable.device
    change = tf.function(update) if updated == "compiled" else update
    expected = []
    with hook_for(tmp_path / "run", reduction_config=None if raw else STATISTICS) as hook:
        for _ in range(STEPS):
            expected.append(variable.numpy())
            hook.begin_step()
            hook.save("x", variable)
            change()
    assert by_devices == ["x"] * STEPS
    tensor = create_trial(str(tmp_path / "run")).tensor("x")
    for step, values in enumerate(expected):
        if raw:
            np.testing.assert_array_equal(tensor.value(step), values)
        else:
            check_statistics(tensor, step, values)


def test_tensors_may_die_right_after_they_were_saved(tmp_path, by_devices):
    rng = np.random.default_rng(9)
    expected = []
    with hook_for(tmp_path / "run", reduction_config=STATISTICS) as hook:
        for _ in range(STEPS):
            hook.begin_step()
            tensor = on_device(rng.normal(size=1 << 20), "float32")
            expected.append(tensor.numpy())
            hook.save("x", tensor)
            del tensor
            on_device(np.full(1 << 20, 77.0), "float32")  # gets the memory, if it is free
    assert by_devices == ["x"] * STEPS
    tensor = create_trial(str(tmp_path / "run")).tensor("x")
    for step, values in enumerate(expected):
        check_statistics(tensor, step, values)


def test_tensors_of_the_host_take_the_usual_way(tmp_path, by_devices):
    with tf.device("/CPU:0"):
        host = tf.identity(tf.range(5.0))
    with hook_for(tmp_path / "run") as hook:
        hook.begin_step()
        hook.save("x", host)
    assert by_devices == []
    saved = create_trial(str(tmp_path / "run")).tensor("x").value(0)
    np.testing.assert_array_equal(saved, np.arange(5.0))


def trained(hook=None) -> list[np.ndarray]:
    """Weights after a few steps of a Keras model."""
    import keras

    keras.utils.set_random_seed(4)
    layers = [keras.layers.Dense(64, "relu", name="first"), keras.layers.Dense(3, name="second")]
    model = keras.Sequential([keras.Input((20,)), *layers])
    model.compile(keras.optimizers.SGD(0.05), "mse", run_eagerly=False)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(320, 20)), rng.normal(size=(320, 3))
    model.fit(x, y, 32, 1, verbose=0, shuffle=False, callbacks=[hook] if hook else [])
    assert "GPU:0" in model.trainable_variables[0].value.device
    return [variable.numpy() for variable in model.trainable_variables]


def test_weights_of_a_keras_model_are_read_on_the_device(tmp_path, by_devices):
    from smdebug.tensorflow import KerasHook, SaveConfig

    tf.config.experimental.enable_op_determinism()
    plain = trained()
    hook = KerasHook(
        str(tmp_path / "run"),
        include_collections=["weights", "biases"],
        save_config=SaveConfig(save_interval=1),
        reduction_config=STATISTICS,
    )
    recorded = trained(hook)
    hook.close()
    for one, other in zip(plain, recorded, strict=True):
        np.testing.assert_array_equal(one, other)
    trial = create_trial(str(tmp_path / "run"))
    names = trial.tensor_names(collection="weights")
    assert len(names) == 2 and set(names) <= set(by_devices)
    assert trial.tensor(names[0]).steps() == list(range(10))
    norms = [float(trial.tensor(names[0]).reduction_value(step, "l2")) for step in range(10)]
    assert len(set(norms)) == 10, "each step has its own weights"
