"""Tensors of the real TensorFlow that are on the host, and what it does to memory that is lent.

There is no GPU: where one matters, the host's tensors are taken for its.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras_models
import numpy as np
import pytest
import smdebug
import tensorflow as tf
from keras_models import WEIGHTS, fit, k1, make_hook, trial_of
from smdebug import SaveConfig, _core, create_trial, device_arrays
from smdebug.device_arrays import DeviceArrays, TensorFlowTensors
from smdebug.exceptions import SMDebugTypeError

EVERY_STEP = SaveConfig(save_interval=1)
PLAIN = sorted(device_arrays._EXPORTED - {"bfloat16"})  # NumPy does not have that

pytestmark = pytest.mark.usefixtures("strict")


@pytest.fixture(autouse=True)
def _devices() -> None:
    keras_models.load("keras")


@pytest.fixture
def exports(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Tensors that TensorFlow was asked to export, which it does."""
    asked: list[Any] = []
    export = tf.experimental.dlpack.to_dlpack

    def noted(tensor: Any) -> Any:
        asked.append(tensor)
        return export(tensor)

    monkeypatch.setattr(tf.experimental.dlpack, "to_dlpack", noted)
    return asked


@pytest.fixture
def host_as_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is on the host is taken for being on cuda:0, which opens."""
    monkeypatch.setattr(device_arrays, "_GPU", "/device:CPU:")
    monkeypatch.setattr(device_arrays, "_cuda_number", lambda place, tensorflow: 0)
    monkeypatch.setattr(_core, "device_stream", lambda ordinal: 7)


def saved(path: Path, **named: Any) -> dict[str, np.ndarray]:
    """What a run holds after these were saved by hand."""
    with smdebug.Hook(str(path), save_all=True, save_config=EVERY_STEP) as hook:
        hook.begin_step()
        for name, tensor in named.items():
            hook.save(name, tensor)
    trial = create_trial(str(path))
    return {name: trial.tensor(name).value(0) for name in trial.tensor_names()}


def is_on_gpu(array: Any) -> bool:
    return TensorFlowTensors().device_of(array) is not None


class Producer:
    """Gives NumPy a capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def memory_of(capsule: Any) -> np.ndarray:
    """The memory that a capsule holds, as an array."""
    return np.from_dlpack(Producer(capsule))


# ---- on the host


def test_tensors_of_the_host_are_not_exported(tmp_path: Path, exports: list[Any]) -> None:
    tensor, variable = tf.constant([1.0, 2.0]), tf.Variable([3.0, 4.0])
    assert not is_on_gpu(tensor)
    assert not is_on_gpu(variable)
    found = saved(tmp_path / "run", x=tensor, v=variable)
    assert found["x"].tolist() == [1.0, 2.0]
    assert found["v"].tolist() == [3.0, 4.0]
    assert exports == []


def test_a_capsule_of_the_host_is_refused() -> None:
    capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1.0]))
    with pytest.raises(SMDebugTypeError, match="not in the memory of a CUDA device"):
        _core.DeviceArray(capsule)


@pytest.mark.usefixtures("host_as_gpu")
def test_what_the_core_refuses_is_saved_by_the_host(tmp_path: Path, exports: list[Any]) -> None:
    named: dict[str, Any] = {name: tf.cast([0, 1, 1], name) for name in PLAIN}
    named |= {"variable": tf.Variable([1.5, 2.5]), "bool": tf.constant([True, False])}
    named |= {"complex": tf.constant([1 + 2j]), "brain": tf.constant([1.5], tf.bfloat16)}
    assert all(is_on_gpu(tensor) for tensor in named.values())
    found = saved(tmp_path / "run", **named)
    for name in PLAIN:
        assert (found[name].tolist(), found[name].dtype) == ([0, 1, 1], np.dtype(name))
    assert found["variable"].tolist() == [1.5, 2.5]
    assert found["bool"].tolist() == [True, False] and found["bool"].dtype == bool
    assert found["complex"].tolist() == [1 + 2j]
    assert found["brain"].tolist() == [1.5]
    assert {tensor.dtype.name for tensor in exports} == {*PLAIN, "bfloat16"}


@pytest.mark.usefixtures("host_as_gpu")
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.constant(["some", "text"]),
        lambda: tf.Variable(["some", "text"]),
        lambda: tf.Variable(1.0).handle,
        lambda: tf.constant([1 + 2j]),
        lambda: tf.constant([True]),
    ],
    ids=["text", "variable of text", "resource", "complex", "bool"],
)
def test_other_elements_are_not_exported(make: Any, exports: list[Any]) -> None:
    tensor = make()
    lender = TensorFlowTensors()
    assert lender.device_of(tensor) == 0
    with pytest.raises(TypeError, match="is not exported"):
        lender.lend(tensor, 7)
    assert exports == []


@pytest.mark.usefixtures("host_as_gpu")
def test_a_model_is_saved_by_the_host_where_the_core_refuses(
    out_dir: Path, exports: list[Any]
) -> None:
    keras = keras_models.load("keras")
    model = k1(keras)
    hook = make_hook(out_dir, include_collections=["weights", "biases", "gradients"])
    fit(model, hook, batches=4)  # the last step is saved
    hook.close()
    trial = trial_of(out_dir)
    weights = keras_models.weights(model)
    for name, expected in zip(WEIGHTS, weights, strict=True):
        np.testing.assert_array_equal(trial.tensor(name).value(3), expected)
    assert len(exports) >= 2 * len(WEIGHTS)


def test_what_was_lent_is_let_go_of_at_each_batch(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[DeviceArrays] = []
    monkeypatch.setattr(DeviceArrays, "end_step", lambda self: calls.append(self))
    hook = make_hook(out_dir)
    fit(k1(keras_models.load("keras")), hook, batches=5)
    assert calls.count(hook._offers._arrays) == 5
    hook.close()


# ---- graphs, replicas, threads


@pytest.mark.usefixtures("host_as_gpu")
def test_what_is_part_of_a_graph_is_left_alone(exports: list[Any]) -> None:
    variable, outside = tf.Variable([1.0]), tf.constant([1.0])
    core = SimpleNamespace(is_step_wanted=True, wants=lambda name: True)
    arrays = DeviceArrays(core)
    left: list[Any] = []

    @tf.function
    def step(x: Any) -> Any:
        left.extend(arrays.save([("x", x), ("y", x + 1), ("v", variable), ("z", outside)]))
        return x

    step(tf.constant([2.0]))
    assert [name for name, _ in left] == ["x", "y", "v", "z"]
    assert exports == []
    operations = {
        op.type for op in step.get_concrete_function(tf.constant([2.0])).graph.get_operations()
    }
    assert "ReadVariableOp" not in operations


@pytest.mark.usefixtures("host_as_gpu")
def test_variables_of_replicas_are_left_alone() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        mirrored = tf.Variable([1.0])
    assert len(mirrored.values) == 2
    assert not is_on_gpu(mirrored)
    assert is_on_gpu(mirrored.values[0])
    per_replica = strategy.run(lambda: mirrored + 1)
    assert not is_on_gpu(per_replica)


@pytest.mark.usefixtures("host_as_gpu")
def test_nothing_is_exported_while_operations_are_started_later(exports: list[Any]) -> None:
    tf.config.experimental.set_synchronous_execution(False)
    try:
        with pytest.raises(TypeError, match="not executed at once"):
            TensorFlowTensors().lend(tf.constant([1.0]) + 1, 7)
    finally:
        tf.config.experimental.set_synchronous_execution(True)
    assert exports == []


# ---- numbers of devices, as TensorFlow tells them


class HostAsGpus:
    """TensorFlow's `config`, in which the host is a GPU."""

    def __init__(self, is_of_nvidia: bool = True) -> None:
        details = {"compute_capability": (9, 0)} if is_of_nvidia else {"device_name": "other"}
        self.experimental = SimpleNamespace(get_device_details=lambda device: details)

    def _renamed(self, devices: list[Any]) -> list[Any]:
        return [SimpleNamespace(name=d.name.replace("CPU", "GPU"), real=d) for d in devices]

    def get_visible_devices(self, kind: str) -> list[Any]:
        return self._renamed(tf.config.get_visible_devices("CPU"))

    def list_logical_devices(self, kind: str) -> list[Any]:
        return self._renamed(tf.config.list_logical_devices("CPU")[: self.made])

    def get_logical_device_configuration(self, device: Any) -> Any:
        return tf.config.get_logical_device_configuration(device.real)

    made = 1  # of two, as the tests split the host


@pytest.mark.parametrize(
    ("made", "is_of_nvidia", "expected"),
    [(1, True, 0), (1, False, None), (2, True, None)],
    ids=["one", "of another maker", "split"],
)
def test_names_of_devices_are_understood(
    made: int, is_of_nvidia: bool, expected: int | None
) -> None:
    config = HostAsGpus(is_of_nvidia)
    config.made = made
    place = tf.constant([1.0]).backing_device.replace("CPU", "GPU")
    assert device_arrays._cuda_number(place, SimpleNamespace(config=config)) == expected


def test_there_is_no_gpu() -> None:
    assert device_arrays._cuda_number("/device:GPU:0", tf) is None


# ---- memory that is lent


@pytest.mark.parametrize("dtype", PLAIN)
def test_exported_memory_is_the_one_of_the_tensor(dtype: str) -> None:
    tensor = tf.cast([[0, 1, 2], [3, 4, 5]], dtype)
    lent = memory_of(TensorFlowTensors().lend(tensor, 7))
    assert lent.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(lent, tensor.numpy())
    assert lent.ctypes.data == np.asarray(memoryview(tensor)).ctypes.data


def add(variable: Any) -> None:
    variable.assign_add(tf.ones_like(variable))


def scatter(variable: Any) -> None:
    variable.scatter_nd_update([[0], [2]], [7.0, 7.0])


def slice_assign(variable: Any) -> None:
    variable[1:3].assign([7.0, 7.0])


def descend(variable: Any) -> None:
    tf.raw_ops.ResourceApplyGradientDescent(
        var=variable.handle, alpha=0.5, delta=tf.ones_like(variable)
    )


def scatter_add(variable: Any) -> None:
    variable.scatter_add(tf.IndexedSlices(tf.ones([2]), [0, 2]))


def replace(variable: Any) -> None:
    variable.assign(tf.zeros_like(variable))


UPDATES = [add, scatter, slice_assign, descend, scatter_add, replace]


@pytest.mark.parametrize("how", ["at once", "in a function", "compiled"])
@pytest.mark.parametrize("update", UPDATES)
def test_an_update_does_not_touch_what_is_lent(update: Any, how: str) -> None:
    variable = tf.Variable([1.0, 2.0, 3.0, 4.0])
    run = update if how == "at once" else tf.function(update, jit_compile=how == "compiled")
    lent = []
    for _ in range(3):  # the second one finds the variable as a sparse update leaves it
        expected = variable.numpy()
        lent.append((expected, memory_of(TensorFlowTensors().lend(variable, 7))))
        run(variable)
    assert (variable.numpy() != lent[0][0]).any()
    for expected, memory in lent:
        np.testing.assert_array_equal(memory, expected)


def test_without_a_holder_the_memory_is_written_to() -> None:
    variable = tf.Variable([1.0, 2.0, 3.0, 4.0])
    add(variable)

    def address() -> int:
        return int(memory_of(TensorFlowTensors().lend(variable, 7)).ctypes.data)

    before = address()
    add(variable)
    assert address() == before
