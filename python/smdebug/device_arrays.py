"""Arrays of JAX and TensorFlow in the memory of CUDA devices, by the core's own kernels and copies.

Only the thread that writes waits for what is read. A framework is never imported here: arrays are
those of one that the program has imported.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

from smdebug import _core
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger

Pairs = list[tuple[str, Any]]

_CUDA = 2  # as DLPack numbers kinds of devices
_GPU = "/device:GPU:"  # in the names of TensorFlow's devices
# Elements that TensorFlow exports as what they are: it says of bool that it is uint8, and some of
# its versions end the process when they are asked for text.
_EXPORTED = frozenset(
    ["float16", "bfloat16", "float32", "float64"]
    + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
)
# What is lent and waits for the device; beyond it the program waits, too.
LENT_BYTES = 256 << 20


class Lender(Protocol):
    """A framework whose arrays can be read where they are."""

    def device_of(self, array: Any) -> int | None:
        """The CUDA device that holds this array; None: there is none, or the host must read it."""

    def lend(self, array: Any, stream: int) -> Any:
        """A capsule of DLPack whose memory may be read in the stream, and does not change.

        Raises if the framework refuses.
        """


class JaxArrays:
    """Copies that JAX makes on the device, in its own order, so that nobody waits.

    An array of the program may be donated to the next step, which JAX refuses while somebody else
    holds it.
    """

    def device_of(self, array: Any) -> int | None:
        """The device of an array that is on one alone, and not traced."""
        jax = sys.modules.get("jax")
        if jax is None or not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer):
            return None
        try:
            kind, number = array.__dlpack_device__()
        except Exception:  # of several devices, or deleted: reading it says so
            return None
        return number if kind == _CUDA else None

    def lend(self, array: Any, stream: int) -> Any:
        """A copy, which the stream waits for."""
        return array.copy().__dlpack__(stream=stream)


class TensorFlowTensors:
    """Eager tensors of TensorFlow, and values of variables, as they are.

    The export waits until the device has done what it was asked for, as reading on the host does.
    From then on nothing changes the memory while the capsule holds it: TensorFlow writes only to
    buffers that have one owner, and makes a variable another one otherwise.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int | None] = {}  # CUDA's, by name of the device

    def device_of(self, array: Any) -> int | None:
        """The device of a tensor or variable that is on one alone, and no part of a graph."""
        tensorflow = sys.modules.get("tensorflow")
        if tensorflow is None:
            return None
        try:
            place = _place_of(array, tensorflow)
            if place is None or _GPU not in place:
                return None
            if place not in self._numbers:
                self._numbers[place] = _cuda_number(place, tensorflow)
            return self._numbers[place] if tensorflow.executing_eagerly() else None
        except Exception:  # another module of this name, or one that is still being imported
            return None

    def lend(self, array: Any, stream: int) -> Any:
        """The tensor itself; whatever the stream, as it is complete."""
        tensorflow = sys.modules["tensorflow"]
        is_variable = isinstance(array, tensorflow.Variable)
        tensor = array.value() if is_variable else array
        if tensor.dtype.name not in _EXPORTED:
            raise TypeError(f"{tensor.dtype.name} is not exported.")
        if is_variable and tensor.backing_device != array.device:
            raise TypeError("The value of the variable is elsewhere.")
        # The export waits for the device first, and then for what is yet to be started there.
        if not tensorflow.config.experimental.get_synchronous_execution():
            raise TypeError("Operations are not executed at once.")
        return tensorflow.experimental.dlpack.to_dlpack(tensor)


def _place_of(array: Any, tensorflow: Any) -> str | None:
    """The name of the one device that holds a value of TensorFlow."""
    if isinstance(array, tensorflow.Tensor):
        return getattr(array, "backing_device", None)  # symbolic ones have none
    if not isinstance(array, tensorflow.Variable) or hasattr(array, "values"):  # of replicas
        return None
    return array.device


def _cuda_number(place: str, tensorflow: Any) -> int | None:
    """CUDA's number of a device, if it is the one in its name, by which it is exported.

    TensorFlow numbers the devices that it makes in the order of those that the program lets it see,
    and may make several of one. Those that it could see are named by CUDA's numbers.
    """
    task, _, digits = place.rpartition(_GPU)
    number = int(digits)
    try:
        config = tensorflow.config
        seen = config.get_visible_devices("GPU")
        made = [device.name.rpartition(_GPU)[0] for device in config.list_logical_devices("GPU")]
        is_same = (
            len(seen) == sum(1 for other in made if other in ("", task))
            and all(
                device.name == f"/physical_device:GPU:{i}"
                for i, device in enumerate(seen[: number + 1])
            )
            and not any(_has_own_order(device, config) for device in seen)
            # NVIDIA's alone have it.
            and "compute_capability" in config.experimental.get_device_details(seen[number])
        )
    except Exception:  # a version that has not all of these
        is_same = False
    if not is_same:
        get_logger().warning(
            f"Tensors on GPU:{number} of TensorFlow are copied to the host to be read: it is not "
            f"certain that this is cuda:{number}."
        )
    return number if is_same else None


def _has_own_order(device: Any, config: Any) -> bool:
    """Whether the program has said where the device comes among the others."""
    parts = config.get_logical_device_configuration(device) or ()
    return any(getattr(part, "experimental_device_ordinal", None) is not None for part in parts)


class DeviceArrays:
    """What a hook has asked devices for. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._lenders: dict[str, Lender] = {"jax": JaxArrays(), "tensorflow": TensorFlowTensors()}
        self._is_off = os.environ.get("SMDEBUG_DEVICE_KERNELS", "1") == "0"
        self._streams: dict[int, int] = {}
        self._usable: dict[int, bool] = {}
        self._direct: Any = None

    def save(self, pairs: Pairs, kind: _core.Kind = _core.Kind.automatic) -> Pairs:
        """Queues arrays of devices; those that must be read in another way."""
        if "jax" not in sys.modules and "tensorflow" not in sys.modules:
            return pairs
        if self._is_off or isinstance(self._core, InertCore) or not self._core.is_step_wanted:
            return pairs
        lenders = [lender for name, lender in self._lenders.items() if name in sys.modules]
        return [pair for pair in pairs if not self._save_one(*pair, kind, lenders)]

    def end_step(self) -> None:
        """Lets go of what devices have read."""
        if self._direct is not None:
            self._direct.give_back_lent(LENT_BYTES)

    def _save_one(self, name: str, array: Any, kind: _core.Kind, lenders: list[Lender]) -> bool:
        for lender in lenders:
            device = lender.device_of(array)
            if device is not None:
                break
        else:
            return False
        if not self._can_read(device):
            return False
        if kind == _core.Kind.automatic and not self._core.wants(name):
            return True
        try:
            lent = _core.DeviceArray(lender.lend(array, self._streams[device]))
        except Exception:  # a type that DLPack does not have
            return False
        if lent.device != device:  # the framework counts in another way
            return False
        left = self._direct.copy([name], [lent], kind)
        self._direct.give_back_lent(LENT_BYTES)
        return not left

    def _can_read(self, device: int) -> bool:
        if device in self._usable:
            return self._usable[device]
        self._usable[device] = False
        try:
            self._streams[device] = _core.device_stream(device)
        except Exception as error:
            self._give_up(device, error)
            return False
        if self._direct is None:
            parts = {
                "stream_of": self._streams.__getitem__,
                "usable": self._usable,
                "gave_up": self._give_up,
                "queue": None,
                "full": None,
                "held_bytes": 0,
            }
            self._direct = _core.DeviceTensors(self._core, None, parts)
        self._usable[device] = True
        return True

    def _give_up(self, device: int, reason: object) -> None:
        self._usable[device] = False
        text = str(reason).splitlines()[0]
        get_logger().warning(f"Arrays on cuda:{device} are copied to the host to be read: {text}")
