"""Hands tensors to the core: in lists, without copies, wherever their memory is."""

from __future__ import annotations

import json
from typing import Any

import torch

from smdebug import _core
from smdebug.logger import get_logger
from smdebug.pytorch import tensors as torch_tensors
from smdebug.pytorch.device import DeviceStage, can_reduce
from smdebug.pytorch.held import HeldGradients
from smdebug.pytorch.names import is_sharded
from smdebug.pytorch.shard import local_part, placement_of
from smdebug.pytorch.survey import Pairs, Surveys
from smdebug.pytorch.tensors import (
    PLAIN_TENSORS,
    Unreadable,
    is_lazy,
    is_plain_on_device,
    is_released,
    readable,
)
from smdebug.recorder import BaseRecorder
from smdebug.shards import SHARDS, SHARDS_COLLECTION

Kind = _core.Kind
Names = list[str] | _core.Tickets
Reductions = list[tuple[str, torch.Tensor, list[str]]]


class Recorder(BaseRecorder):
    """What happens to the tensors of one step after another. One thread at a time."""

    def __init__(self, core: Any) -> None:
        super().__init__(core)
        self._device = DeviceStage(core, self._save_plain)
        self.surveys = Surveys(core)
        self.surveys.backward_ended = self.release_held
        self._held = HeldGradients()
        self._shards: dict[str, Any] = {}
        self.sparse_dense_limit = torch_tensors.SPARSE_DENSE_LIMIT

    def save(
        self,
        names: Names,
        tensors: list[torch.Tensor],
        kind: Kind,
        in_backward: bool = False,
    ) -> None:
        """Saves what is wanted. The values are those of now, whatever happens to the tensors.

        `in_backward`: they are gradients that backward is just handing on.
        """
        if isinstance(names, _core.Tickets) and kind == Kind.automatic:
            left = self.surveys.save(names, tensors)
            if not left:
                return
            if len(left) < len(tensors):
                names, tensors = [names[i] for i in left], [tensors[i] for i in left]
        if all(type(t) in PLAIN_TENSORS and is_plain_on_device(t) for t in tensors):
            self._queue(list(zip(names, tensors, strict=True)), kind, in_backward)
            return
        device: Pairs = []
        for i, _ in self._offer(names, tensors, kind):
            if is_lazy(tensors[i]):
                continue
            for name, plain in self.plain(names[i], tensors[i]):
                if plain.device.type != "cpu":
                    device.append((name, plain))
                else:
                    self._save_plain(name, plain, kind)
        if device:
            self._queue(device, kind, in_backward)

    def release_held(self) -> None:
        """Reads the tensors that were held to be read together."""
        left, changed = self.surveys.release()
        slow, changed_slow = self._held.release()
        self._queue_slowly([*left, *slow], Kind.automatic)
        for name in [*changed, *changed_slow]:
            self.drop(name, "it was changed, or a CUDA graph captured, before it was read")

    def plain(self, name: str, tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
        """The tensor as one or two that can be read; none if that is impossible."""
        with torch.no_grad():
            try:
                if is_sharded(tensor):
                    if not self._shards and not self._core.save_all_workers:
                        get_logger().warning(
                            "The model is sharded: only the parts of this worker are recorded. "
                            "Use include_workers='all' to record all of them."
                        )
                    self._shards[name] = placement_of(tensor)
                    tensor = local_part(tensor)
                return readable(name, tensor, self.sparse_dense_limit)
            except (Unreadable, RuntimeError, NotImplementedError) as error:
                self.drop(name, str(error))
                return []

    @property
    def has_pending(self) -> bool:
        """Whether finish() has something to do."""
        return bool(self._shards) or self._has_held

    @property
    def _has_held(self) -> bool:
        return bool(self._held) or self.surveys.has_held

    def finish(self) -> None:
        """The step ends: hands over what devices were still working on."""
        if self._has_held:
            self.release_held()
        self.surveys.look_at_results()
        shards, self._shards = self._shards, {}
        if not shards or not self._core.is_step_wanted:
            return
        if self._core.collections.find(SHARDS_COLLECTION) is None:
            collection = self._core.collections.create(SHARDS_COLLECTION)
            collection.reduction_config = _core.ReductionConfig(save_raw_tensor=True)
        self._core.save_tensor(SHARDS, json.dumps(shards, sort_keys=True), [SHARDS_COLLECTION])

    def _offer(
        self, names: Names, tensors: list[torch.Tensor], kind: Kind
    ) -> list[tuple[int, str]]:
        """(index, reason) of those that the core cannot read."""
        exchange = torch_tensors.EXCHANGE_API
        if exchange is None:
            tensors = [_without_gradient(tensor) for tensor in tensors]
        if isinstance(names, _core.Tickets):
            return _core.save_all(self._core, names, tensors, exchange)
        return _core.save_all(self._core, names, tensors, kind, exchange)

    def _save_plain(self, name: str, tensor: torch.Tensor, kind: Kind) -> None:
        for _, reason in self._offer([name], [tensor], kind):
            self.drop(name, reason)

    def _queue(self, pairs: Pairs, kind: Kind, in_backward: bool) -> None:
        """Tensors on devices: reduced there if that is all that is wanted, else copied."""
        if pairs and self._device.is_capturing():
            for name, _ in pairs:
                self.drop(name, "a CUDA graph is being captured")
            return
        surveyed: Pairs = []
        copied: Pairs = []
        slow: Pairs = []
        for name, tensor in pairs:
            wish = "values" if kind != Kind.automatic else _core.wish_for(self._core, name)
            if not wish:
                continue
            if not self.surveys.can_read(tensor):
                if not (in_backward and self._held.hold(name, tensor, self.surveys.backward_ended)):
                    slow.append((name, tensor))
            elif in_backward and self.surveys.hold(name, tensor):
                continue
            elif wish == "values":
                copied.append((name, tensor))
            else:
                surveyed.append((name, tensor))
        if slow and self._held:
            self.release_held()  # which came before
        self._queue_slowly(slow, kind)
        for name, tensor in self.surveys.copy(copied, kind) if copied else ():
            self._device.copy(name, tensor, kind)
        if surveyed:
            left = self.surveys.survey(surveyed)
            self._reduce(self.surveys.copy(left, Kind.automatic) if left else left)

    def _queue_slowly(self, pairs: Pairs, kind: Kind) -> None:
        """By PyTorch's own operations."""
        reduced: Pairs = []
        for name, tensor in pairs:
            by_values = kind != Kind.automatic or _core.wish_for(self._core, name) == "values"
            # Whether a value is NaN is asked of the values, which others need not be copied for.
            if by_values or _core.is_watched(self._core, name):
                self._device.copy(name, tensor, kind)
            else:
                reduced.append((name, tensor))
        self._reduce(reduced)

    def _reduce(self, pairs: Pairs) -> None:
        """Tensors that our kernels cannot reduce: PyTorch does it, or they are copied."""
        reductions: Reductions = []
        for name, tensor in pairs:
            _, shape, wanted = _core.wanted(self._core, name)
            if wanted and not can_reduce(tensor, wanted):
                self._device.copy(name, tensor, Kind.automatic)
                continue
            if shape:
                _core.save_shape(self._core, name, list(tensor.shape))
            if wanted:
                reductions.append((name, tensor, wanted))
        if reductions:
            self._device.reduce(reductions)


def _without_gradient(tensor: torch.Tensor) -> Any:
    """What plain DLPack accepts; None where it would give wrong values."""
    if is_lazy(tensor) or is_sharded(tensor) or tensor.layout is not torch.strided:
        return None
    if type(tensor).__name__ == "FakeTensor" or is_released(tensor):
        return None
    return None if tensor.is_conj() or tensor.is_neg() else tensor.detach()
