"""Arrays on the simulated CUDA devices of tests/simulated_cuda, as a framework would have them.

For processes that find the simulated driver by the name of the real one, or a driver that makes two
devices of a real one (tests/gpu/split_cuda.cpp): memory of devices is not touched here. Each device has a stream
of the framework, on which everything is queued: what makes an array, what overwrites it, and that
its memory is free.
"""

from __future__ import annotations

import ctypes
import sys
import types
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_CUDA = 2  # as DLPack numbers kinds of devices

_HANDLE = ctypes.c_void_p
_ADDRESS = ctypes.c_ulonglong
_OUT = ctypes.POINTER(_HANDLE)
_FUNCTIONS: dict[str, list[Any]] = {
    "cuInit": [ctypes.c_uint],
    "cuDevicePrimaryCtxRetain": [_OUT, ctypes.c_int],
    "cuCtxPushCurrent_v2": [_HANDLE],
    "cuCtxPopCurrent_v2": [_OUT],
    "cuCtxSynchronize": [],
    "cuStreamCreate": [_OUT, ctypes.c_uint],
    "cuStreamWaitEvent": [_HANDLE, _HANDLE, ctypes.c_uint],
    "cuEventCreate": [_OUT, ctypes.c_uint],
    "cuEventRecord": [_HANDLE, _HANDLE],
    "cuMemAlloc_v2": [ctypes.POINTER(_ADDRESS), ctypes.c_size_t],
    "cuMemFreeAsync": [_ADDRESS, _HANDLE],
    "cuMemcpyDtoDAsync_v2": [_ADDRESS, _ADDRESS, ctypes.c_size_t, _HANDLE],
    "simulated_cuda_fill": [_ADDRESS, _HANDLE, ctypes.c_size_t, _HANDLE],
    "simulated_cuda_read": [_HANDLE, _ADDRESS, ctypes.c_size_t],
}

cuda = ctypes.CDLL("libcuda.so.1")
for _name, _arguments in _FUNCTIONS.items():
    getattr(cuda, _name).argtypes = _arguments
cuda.simulated_cuda_violations.restype = ctypes.c_long
cuda.simulated_cuda_last_violation.restype = ctypes.c_char_p


class DeviceError(RuntimeError):
    """A call of the driver failed."""


def call(function: str, *arguments: Any) -> None:
    code = getattr(cuda, function)(*arguments)
    if code != 0:
        raise DeviceError(f"{function}: {code}")


def _made(function: str, *arguments: Any) -> Any:
    """The handle that a function of the driver makes."""
    handle = _HANDLE()
    call(function, ctypes.byref(handle), *arguments)
    return handle.value


class Device:
    """A device and the stream of the framework, which may be the null stream."""

    def __init__(self, ordinal: int, has_own_stream: bool = True) -> None:
        call("cuInit", 0)
        self.ordinal = ordinal
        self.context = _made("cuDevicePrimaryCtxRetain", ordinal)
        with self.current():
            self.stream = _made("cuStreamCreate", 1) if has_own_stream else 0
            self.event = _made("cuEventCreate", 2)

    @contextmanager
    def current(self) -> Iterator[None]:
        """Its context is the current one of this thread."""
        call("cuCtxPushCurrent_v2", self.context)
        try:
            yield
        finally:
            _made("cuCtxPopCurrent_v2")

    def allocate(self, values: np.ndarray) -> np.ndarray:
        """An array like this in memory of the device, which is freed in the order of the stream."""
        address = _ADDRESS()
        with self.current():
            call("cuMemAlloc_v2", ctypes.byref(address), max(values.nbytes, 1))
        memory = (ctypes.c_char * values.nbytes).from_address(address.value)
        array = np.frombuffer(memory, values.dtype).reshape(values.shape)
        weakref.finalize(array, self._free, address.value).atexit = False
        return array

    def _free(self, address: int) -> None:
        with self.current():
            cuda.cuMemFreeAsync(address, self.stream)  # of a device that failed, nothing is freed

    def upload(self, values: np.ndarray) -> np.ndarray:
        """An array in memory of the device that has these values."""
        values = np.ascontiguousarray(values)
        array = self.allocate(values)
        with self.current():
            cuda.simulated_cuda_fill(
                array.ctypes.data, values.ctypes.data, values.nbytes, self.stream
            )
        return array

    def download(self, array: np.ndarray) -> np.ndarray:
        """What the memory of the device holds when everything that was queued is done."""
        out = np.empty(array.shape, array.dtype)
        with self.current():
            call("cuCtxSynchronize")
            cuda.simulated_cuda_read(out.ctypes.data, array.ctypes.data, out.nbytes)
        return out

    def copy(self, to: np.ndarray, source: np.ndarray) -> None:
        """Queues a copy between arrays of the device."""
        with self.current():
            call("cuMemcpyDtoDAsync_v2", to.ctypes.data, source.ctypes.data, to.nbytes, self.stream)

    def make_wait(self, stream: int) -> None:
        """Has another stream wait for what is queued."""
        with self.current():
            call("cuEventRecord", self.event, self.stream)
            call("cuStreamWaitEvent", stream, self.event, 0)

    def finish(self) -> None:
        """Waits until everything that was queued is done."""
        with self.current():
            call("cuCtxSynchronize")


class Array:
    """What arrays of JAX have that matters here."""

    read_by_host: list[int] = []  # devices of the arrays that were

    def __init__(self, values: Any, device: Device) -> None:
        values = np.ascontiguousarray(values)
        self.device = device
        self._memory = device.allocate(values)
        self.assign(values)

    def assign(self, values: Any) -> None:
        """Queues other values, as an operation does that writes to the memory of its input."""
        shape, dtype = self._memory.shape, self._memory.dtype
        made = self.device.upload(np.broadcast_to(np.asarray(values, dtype), shape))
        self.device.copy(self._memory, made)

    def copy(self) -> Array:
        out = Array.__new__(Array)
        out.device = self.device
        out._memory = self.device.allocate(self._memory)
        self.device.copy(out._memory, self._memory)
        return out

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CUDA, self.device.ordinal

    def __dlpack__(self, stream: int | None = None) -> Any:
        assert stream is not None
        self.device.make_wait(stream)
        return _on_cuda(self._memory.__dlpack__(), self.device.ordinal)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        self.read_by_host.append(self.device.ordinal)
        return self.device.download(self._memory)


def _on_cuda(capsule: Any, ordinal: int) -> Any:
    """NumPy's capsule, which says of its memory that it is that of a CUDA device."""
    pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_in.restype = ctypes.c_void_p
    pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]
    place = pointer_in(capsule, b"dltensor") + ctypes.sizeof(ctypes.c_void_p)  # after the data
    (ctypes.c_int32 * 2).from_address(place)[:] = _CUDA, ordinal
    return capsule


class Tensor:
    """What tensors of PyTorch have that matters here."""

    def __init__(self, values: Any, device: Device) -> None:
        values = np.asarray(values)
        self._values = device.allocate(values)
        device.copy(self._values, device.upload(values))
        self._version = 0
        self.device = types.SimpleNamespace(index=device.ordinal)
        self.dtype = f"torch.{self._values.dtype}"
        self.shape = self._values.shape

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self._values.itemsize for step in self._values.strides)

    def data_ptr(self) -> int:
        return int(self._values.ctypes.data)

    def detach(self) -> Tensor:
        return self


@contextmanager
def framework(has_own_streams: bool = True) -> Iterator[list[Device]]:
    """Two devices of an imported framework; in the end nothing that CUDA forbids was done."""
    jax: Any = types.ModuleType("jax")
    jax.Array = Array
    jax.core = types.SimpleNamespace(Tracer=type("Tracer", (), {}))
    sys.modules["jax"] = jax
    yield [Device(0, has_own_streams), Device(1, has_own_streams)]
    last = cuda.simulated_cuda_last_violation().decode()
    assert cuda.simulated_cuda_violations() == 0, last
