"""Arrays that say they are on a CUDA device, where there is none: they go by way of the host.

The frameworks are stand-ins; so is the core where what is lent to it matters.
"""

import sys
import types

import numpy as np
import pytest
from smdebug import Hook, SaveConfig, create_trial, device_arrays
from smdebug.device_arrays import DeviceArrays, JaxArrays, TensorFlowTensors


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


HERE = "/job:localhost/replica:0/task:0"


class Tensor:
    """What TensorFlow's eager tensors have that matters here."""

    def __init__(self, values, device="GPU:0", dtype="float32", task=HERE):
        self.numbers = np.asarray(values)
        self.backing_device = f"{task}/device:{device}"
        self.dtype = types.SimpleNamespace(name=dtype)

    def __array__(self, dtype=None, copy=None):
        return self.numbers


class Symbolic(Tensor):
    def __init__(self):
        self.device = ""
        self.dtype = types.SimpleNamespace(name="float32")


class Variable:
    def __init__(self, tensor, device=None):
        self.tensor = tensor
        self.device = device or tensor.backing_device

    def value(self):
        return self.tensor

    def __array__(self, dtype=None, copy=None):
        return self.tensor.numbers


class Mirrored(Variable):
    values = ()


class Config:
    """TensorFlow's `config`, of a program that sees some of the GPUs and made devices of them."""

    def __init__(self, seen=(0, 1), made=("GPU:0", "GPU:1"), task="", ordinals=None, details=None):
        self.seen = [types.SimpleNamespace(name=f"/physical_device:GPU:{i}") for i in seen]
        self.made = [types.SimpleNamespace(name=f"{task}/device:{name}") for name in made]
        self.ordinals = ordinals
        self.is_synchronous = True
        self.experimental = types.SimpleNamespace(
            get_device_details=lambda device: details or {"compute_capability": (9, 0)},
            get_synchronous_execution=lambda: self.is_synchronous,
        )

    def get_visible_devices(self, kind):
        return self.seen

    def list_logical_devices(self, kind):
        return self.made

    def get_logical_device_configuration(self, device):
        if self.ordinals is None:
            return None
        ordinal = self.ordinals[self.seen.index(device)]
        return [types.SimpleNamespace(memory_limit=1024, experimental_device_ordinal=ordinal)]


class TensorFlow(types.ModuleType):
    """Exports tensors as themselves."""

    Tensor = Tensor
    Variable = Variable

    def __init__(self):
        super().__init__("tensorflow")
        self.config = Config()
        self.is_eager = True
        self.exported = []
        self.experimental = types.SimpleNamespace(
            dlpack=types.SimpleNamespace(to_dlpack=self.export)
        )

    def executing_eagerly(self):
        return self.is_eager

    def export(self, tensor):
        assert tensor.dtype.name != "string", "This would end the process."
        self.exported.append(tensor)
        return tensor


class Borrower:
    """Stands for the core: takes what is lent to it."""

    Kind = device_arrays._core.Kind

    def __init__(self):
        self.taken = {}
        self.opened = []
        self.limits = []
        self.really_on = None  # the device that has the memory; None: the one of the name

    def device_stream(self, device):
        self.opened.append(device)
        return 1000 + device

    def DeviceArray(self, capsule):
        named = int(capsule.backing_device.rpartition(":")[2])
        device = named if self.really_on is None else self.really_on
        return types.SimpleNamespace(capsule=capsule, device=device)

    def DeviceTensors(self, core, exchange, parts):
        return self

    def copy(self, names, arrays, kind):
        self.taken.update((name, array.capsule) for name, array in zip(names, arrays, strict=True))
        return []

    def give_back_lent(self, most):
        self.limits.append(most)


class Core:
    is_step_wanted = True

    def wants(self, name):
        return not name.startswith("unwanted")


@pytest.fixture
def jax(monkeypatch):
    module = types.ModuleType("jax")
    module.Array = Array
    module.core = types.SimpleNamespace(Tracer=Tracer)
    monkeypatch.setitem(sys.modules, "jax", module)
    return module


@pytest.fixture
def tensorflow(monkeypatch):
    module = TensorFlow()
    monkeypatch.setitem(sys.modules, "tensorflow", module)
    return module


@pytest.fixture
def borrower(monkeypatch):
    core = Borrower()
    monkeypatch.setattr(device_arrays, "_core", core)
    return core


def left_of(arrays, **named):
    """Names of those that the host has to read."""
    return [name for name, _ in arrays.save(list(named.items()))]


# ---- which


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
@pytest.mark.usefixtures("jax")
def test_only_arrays_of_one_cuda_device_are_taken(array, expected):
    assert (JaxArrays().device_of(array) is not None) is expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (Tensor([1]), True),
        (Tensor([1], "GPU:1"), True),
        (Tensor([1], "CPU:0"), False),
        (Tensor([1], "TPU:0"), False),
        (Tensor([1], "CUSTOM:0"), False),
        (Symbolic(), False),
        (Variable(Tensor([1])), True),
        (Variable(Tensor([1], "CPU:0")), False),
        (Mirrored(Tensor([1])), False),
        (Array([1], (2, 0)), False),
        (np.ones(3), False),
        (3.5, False),
    ],
    ids=[
        *(
            "cuda",
            "second",
            "host",
            "tpu",
            "custom",
            "symbolic",
            "variable",
            "variable of the host",
        ),
        *("mirrored", "not imported", "numpy", "number"),
    ],
)
@pytest.mark.usefixtures("tensorflow")
def test_only_tensors_of_one_gpu_are_taken(array, expected):
    assert (TensorFlowTensors().device_of(array) is not None) is expected


def test_a_framework_that_is_still_being_imported_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorflow", types.ModuleType("tensorflow"))
    with Hook(str(tmp_path / "run"), save_all=True) as hook:
        hook.begin_step()
        hook.save("x", np.arange(3.0))
    assert create_trial(str(tmp_path / "run")).tensor("x").value(0).tolist() == [0, 1, 2]


# ---- numbers of devices


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (Config(), [0, 1]),
        (Config(seen=[0], made=["GPU:0"]), [0, None]),
        (Config(seen=[1], made=["GPU:0"]), [None, None]),
        (Config(seen=[1, 0]), [None, None]),
        (Config(seen=[0, 2]), [0, None]),
        (Config(seen=[0], made=["GPU:0", "GPU:1"]), [None, None]),
        (Config(made=["GPU:0", "GPU:1", "GPU:2"]), [None, None]),
        (Config(ordinals=[None, None]), [0, 1]),
        (Config(ordinals=[1, 0]), [None, None]),
        (Config(details={"device_name": "of another maker"}), [None, None]),
        (types.SimpleNamespace(), [None, None]),
    ],
    ids=[
        *("all", "the first alone", "the second alone", "reversed", "with a gap", "one split"),
        *("one of two split", "limits", "ordered", "another maker", "another version"),
    ],
)
def test_devices_are_read_only_where_their_number_is_the_one_of_cuda(
    tensorflow, borrower, messages, config, expected
):
    tensorflow.config = config
    if isinstance(config, types.SimpleNamespace):
        config.experimental = Config().experimental
    arrays = DeviceArrays(Core())
    tensors = [Tensor([1], "GPU:0"), Tensor([1], "GPU:1")]
    for _ in range(2):
        left = left_of(arrays, first=tensors[0], second=tensors[1])
    names = ["first", "second"]
    taken = [name for name, number in zip(names, expected, strict=True) if number is not None]
    assert left == [name for name in names if name not in taken]
    assert borrower.opened == [number for number in expected if number is not None]
    said = [text for _, text in messages.lines if "it is not certain" in text]
    assert len(said) == len(left)


def test_devices_of_other_tasks_do_not_count(tensorflow, borrower):
    tasks = ["/job:worker/replica:0/task:0", "/job:worker/replica:0/task:1"]
    tensorflow.config = Config()
    tensorflow.config.made = [
        types.SimpleNamespace(name=f"{task}/device:GPU:{i}") for task in tasks for i in range(2)
    ]
    arrays = DeviceArrays(Core())
    assert left_of(arrays, x=Tensor([1], "GPU:1", task=tasks[1])) == []
    assert borrower.opened == [1]


# ---- what is lent


def test_tensors_are_lent_as_they_are(tensorflow, borrower):
    tensor, kept = Tensor([1.0]), Tensor([2.0])
    arrays = DeviceArrays(Core())
    assert left_of(arrays, x=tensor, v=Variable(kept), h=Tensor([3.0], "CPU:0")) == ["h"]
    assert borrower.taken == {"x": tensor, "v": kept}
    assert set(borrower.limits) == {device_arrays.LENT_BYTES}


def test_memory_that_is_on_another_device_goes_by_the_host(tensorflow, borrower):
    borrower.really_on = 1
    arrays = DeviceArrays(Core())
    assert left_of(arrays, x=Tensor([1.0])) == ["x"]
    assert borrower.taken == {} and borrower.opened == [0]


@pytest.mark.parametrize("dtype", ["bool", "complex64", "resource", "variant", "string", "qint8"])
def test_elements_that_are_not_exported_as_they_are_go_by_the_host(tensorflow, borrower, dtype):
    arrays = DeviceArrays(Core())
    assert left_of(arrays, x=Tensor([1], dtype=dtype), y=Tensor([1])) == ["x"]
    assert list(borrower.taken) == ["y"]
    assert len(tensorflow.exported) == 1


def test_what_tensorflow_refuses_goes_by_the_host(tensorflow, borrower):
    def refuse(tensor):
        raise ValueError("DLPack doesn't support REMOTE tensor")

    tensorflow.experimental.dlpack.to_dlpack = refuse
    assert left_of(DeviceArrays(Core()), x=Tensor([1])) == ["x"]


def test_a_value_that_is_not_where_its_variable_is_goes_by_the_host(tensorflow, borrower):
    arrays = DeviceArrays(Core())
    moved = Variable(Tensor([1], "GPU:1"), device=f"{HERE}/device:GPU:0")
    assert left_of(arrays, x=moved) == ["x"]
    assert tensorflow.exported == []


def test_operations_that_wait_to_be_started_are_not_read_before(tensorflow, borrower):
    tensorflow.config.is_synchronous = False
    assert left_of(DeviceArrays(Core()), x=Tensor([1])) == ["x"]
    assert tensorflow.exported == []


def test_nothing_is_read_while_a_graph_is_built(tensorflow, borrower):
    tensorflow.is_eager = False
    assert left_of(DeviceArrays(Core()), x=Tensor([1]), v=Variable(Tensor([1]))) == ["x", "v"]
    assert tensorflow.exported == []


def test_a_name_that_nobody_wants_is_not_waited_for(tensorflow, borrower):
    arrays = DeviceArrays(Core())
    assert left_of(arrays, unwanted=Tensor([1]), wanted=Tensor([1])) == []
    assert list(borrower.taken) == ["wanted"]
    assert len(tensorflow.exported) == 1


def test_the_kernels_can_be_switched_off(tensorflow, borrower, messages, monkeypatch):
    monkeypatch.setenv("SMDEBUG_DEVICE_KERNELS", "0")
    tensorflow.config = Config(seen=[1], made=["GPU:0"])
    assert left_of(DeviceArrays(Core()), x=Tensor([1])) == ["x"]
    assert borrower.opened == []
    assert messages.lines == []


# ---- by the host


def on_cuda(framework, values):
    return Array(values, (2, 0)) if framework == "jax" else Tensor(values)


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_without_a_driver_the_host_reads_them_and_the_log_says_so_once(
    tmp_path, messages, request, framework
):
    request.getfixturevalue(framework)
    with Hook(
        str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=1)
    ) as hook:
        for step in range(3):
            hook.begin_step()
            hook.save("x", on_cuda(framework, [1.5, step]))
    tensor = create_trial(str(tmp_path / "run")).tensor("x")
    assert [tensor.value(step).tolist() for step in range(3)] == [[1.5, 0], [1.5, 1], [1.5, 2]]
    said = [text for _, text in messages.lines if "cuda:0 are copied to the host" in text]
    assert len(said) == 1


@pytest.mark.usefixtures("jax", "tensorflow")
def test_a_step_that_saves_nothing_does_not_look_at_them(tmp_path):
    looked = []

    class Watched(Array):
        def __dlpack_device__(self):
            looked.append("jax")
            return (1, 0)

    class WatchedTensor(Tensor):
        def __getattribute__(self, name):
            looked.append("tensorflow")
            return super().__getattribute__(name)

    array, tensor = Watched([1.0], None), WatchedTensor([1.0])
    looked.clear()
    with Hook(
        str(tmp_path / "run"), save_all=True, save_config=SaveConfig(save_interval=2)
    ) as hook:
        for expected in (["jax", "tensorflow"], []):
            hook.begin_step()
            hook.save("x", array)
            hook.save("y", tensor)
            assert list(dict.fromkeys(looked)) == expected
            looked.clear()
