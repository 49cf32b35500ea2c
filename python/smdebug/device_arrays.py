"""Arrays of JAX in the memory of CUDA devices, by the core's own kernels and copies.

Nobody waits for them but the thread that writes. What is read is a copy that JAX makes on the
device, in its own order: an array of the program may be donated to the next step, which JAX refuses
while somebody else holds it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from smdebug import _core
from smdebug.inert_core import InertCore
from smdebug.logger import get_logger

Pairs = list[tuple[str, Any]]

_CUDA = 2  # as DLPack numbers kinds of devices
# Copies that wait for the device; beyond it the program waits, too.
LENT_BYTES = 256 << 20


def is_on_device(array: Any) -> bool:
    """Whether this is an array of JAX that one CUDA device holds."""
    jax = sys.modules.get("jax")
    if jax is None or not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer):
        return False
    try:
        return bool(array.__dlpack_device__()[0] == _CUDA)
    except Exception:  # of several devices, or deleted: reading it says so
        return False


class DeviceArrays:
    """What a hook has asked devices for. One thread at a time."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._streams: dict[int, int] = {}
        self._usable: dict[int, bool] = {}
        self._direct: Any = None

    def save(self, pairs: Pairs, kind: _core.Kind = _core.Kind.automatic) -> Pairs:
        """Queues arrays of devices; those that must be read in another way."""
        if "jax" not in sys.modules or isinstance(self._core, InertCore):
            return pairs
        return [pair for pair in pairs if not self._save_one(*pair, kind)]

    def end_step(self) -> None:
        """Lets go of what devices have read."""
        if self._direct is not None:
            self._direct.give_back_lent(LENT_BYTES)

    def _save_one(self, name: str, array: Any, kind: _core.Kind) -> bool:
        if not self._core.is_step_wanted or not is_on_device(array):
            return False
        device = array.__dlpack_device__()[1]
        if not self._can_read(device):
            return False
        if kind == _core.Kind.automatic and not self._core.wants(name):
            return True
        try:
            lent = _core.DeviceArray(array.copy().__dlpack__(stream=self._streams[device]))
        except Exception:  # a type that DLPack does not have
            return False
        left = self._direct.copy([name], [lent], kind)
        self._direct.give_back_lent(LENT_BYTES)
        return not left

    def _can_read(self, device: int) -> bool:
        if device in self._usable:
            return self._usable[device]
        self._usable[device] = False
        if os.environ.get("SMDEBUG_DEVICE_KERNELS", "1") == "0":
            return False
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
