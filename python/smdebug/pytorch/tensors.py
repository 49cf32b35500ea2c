"""Finds the tensors in what modules take and give, and makes odd ones readable."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

# Sparse tensors become dense up to this size.
SPARSE_DENSE_LIMIT = 64 << 20

# A table of C functions that reads a tensor without making a Python object.
EXCHANGE_API: Any = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)

# Types that are read without looking at what else they may be.
PLAIN_TENSORS = (torch.Tensor, nn.Parameter)

# Addresses of devices are larger; those of released memory are offsets.
_SMALL_ADDRESS = 1 << 32

_is_wrapped = getattr(
    getattr(torch._C, "_functorch", None), "is_functorch_wrapped_tensor", lambda tensor: False
)


class Unreadable(Exception):
    """There is no memory behind a tensor, or none that can be read."""


def is_lazy(tensor: Any) -> bool:
    """A parameter without a shape until the first forward."""
    return isinstance(tensor, nn.parameter.UninitializedTensorMixin)


def is_released(tensor: torch.Tensor) -> bool:
    """Elements without memory behind them."""
    return tensor.numel() > 0 and tensor.untyped_storage().nbytes() == 0


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested tuples, lists, mappings and dataclasses, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from tensors_in(item)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensors_in(getattr(value, field.name, None))


def inputs_of(
    module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[torch.Tensor]:
    """The tensors of a call: positional ones, then those given by keyword in signature order."""
    found = list(tensors_in(args))
    if kwargs:
        try:
            order = {name: i for i, name in enumerate(inspect.signature(module.forward).parameters)}
        except (TypeError, ValueError):
            order = {}
        for name in sorted(kwargs, key=lambda name: order.get(name, len(order))):
            found += tensors_in(kwargs[name])
    return found


def loss_in(output: Any) -> torch.Tensor | None:
    """The field `loss` of a model's output, if it is a single number."""
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    return loss if isinstance(loss, torch.Tensor) and loss.numel() == 1 else None


def is_plain_on_device(tensor: torch.Tensor) -> bool:
    """Whether readable() would give back this tensor of a CUDA device, told in a microsecond."""
    return (
        tensor.is_cuda
        and tensor.layout is torch.strided
        and not tensor.is_nested
        and not tensor.is_quantized
        and not tensor.is_neg()
        and not tensor.is_conj()
        and not _is_wrapped(tensor)
        and tensor.data_ptr() > _SMALL_ADDRESS
    )


def readable(name: str, tensor: torch.Tensor, dense_limit: int) -> list[tuple[str, torch.Tensor]]:
    """(name, plain tensor) instead of one that cannot be read as it is. Unreadable: nothing can."""
    if _is_wrapped(tensor):
        raise Unreadable("it is a stand-in of torch.func")
    if tensor.is_meta or type(tensor).__name__ == "FakeTensor":
        raise Unreadable("it has no memory")
    tensor = tensor.detach()
    if tensor.is_nested:
        raise Unreadable("it is a nested tensor")
    if tensor.layout is torch.sparse_coo:
        tensor = tensor.coalesce()
        if _dense_bytes(tensor) <= dense_limit:
            return [(name, tensor.to_dense())]
        return [(f"{name}/indices", tensor.indices()), (f"{name}/values", tensor.values())]
    if tensor.layout is not torch.strided:
        if tensor.layout is not torch._mkldnn and _dense_bytes(tensor) > dense_limit:
            raise Unreadable(f"it is sparse ({tensor.layout}) and too large to be made dense")
        return [(name, tensor.to_dense())]
    if tensor.is_quantized:
        return [(name, tensor.dequantize())]
    if tensor.is_conj() or tensor.is_neg():
        return [(name, tensor.resolve_conj().resolve_neg())]
    if is_released(tensor):
        raise Unreadable("its memory was released")
    return [(name, tensor)]


def _dense_bytes(tensor: torch.Tensor) -> int:
    return tensor.numel() * tensor.element_size()
