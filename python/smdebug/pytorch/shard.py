"""Parts of tensors that are spread over processes: what is local, and where it belongs."""

from __future__ import annotations

from typing import Any

import torch


def local_part(tensor: Any) -> torch.Tensor:
    """The memory that this process holds of a DTensor."""
    local = tensor.detach().to_local()
    wait = getattr(local, "wait", None)  # a collective may still be filling it
    return wait() if callable(wait) else local


def placement_of(tensor: Any) -> dict[str, Any]:
    """Shape of the whole, placements, and the place of the local part in it.

    `offset` is None where the parts are interleaved, so that they have no single place.
    """
    sizes = list(tensor.device_mesh.shape)
    coordinate = tensor.device_mesh.get_coordinate()
    shape = list(tensor.shape)
    offset: list[int] | None = [0] * len(shape)
    extent = list(shape)
    for axis, placement in enumerate(tensor.placements):
        if not placement.is_shard():
            continue
        dim, size, at = placement.dim, sizes[axis], coordinate[axis] if coordinate else 0
        chunk = -(-extent[dim] // size)
        start = min(at * chunk, extent[dim])
        extent[dim] = min(chunk, extent[dim] - start)
        if offset is not None:
            offset[dim] += start
        if type(placement).__name__ != "Shard":
            offset = None
    return {
        "shape": shape,
        "placements": [str(placement) for placement in tensor.placements],
        "coordinate": coordinate,
        "offset": offset,
        "local_shape": list(tensor._local_tensor.shape),
    }
