"""Encodes event-file records straight from the format description, sharing no code with anyone.

The generator compares these bytes with the files the released package wrote.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np

CONSTANT_FOOTER = bytes.fromhex("b3c02d06")
MODES = {"TRAIN": 1, "EVAL": 2, "PREDICT": 3, "GLOBAL": 4}
DTYPE_CODES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8,
    "int64": 9, "bool": 10, "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22,
    "uint64": 23,
}  # fmt: skip


class Stamp(NamedTuple):
    """When a record belongs: wall time, global step, mode and mode step."""

    wall_time: float
    step: int
    mode: str
    mode_step: int


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = (byte >> 1) ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C with the rotation and offset of TFRecord."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Base-128 encoding of a non-negative integer."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def number(field: int, value: int) -> bytes:
    """A varint field, left out when it holds the default."""
    return varint(field << 3) + varint(value) if value else b""


def chunk(field: int, data: bytes) -> bytes:
    """A length-delimited field, present even when empty."""
    return varint(field << 3 | 2) + varint(len(data)) + data


def double(field: int, value: float) -> bytes:
    """A double field, left out when it holds the default."""
    packed = struct.pack("<d", value)
    return varint(field << 3 | 1) + packed if any(packed) else b""


def frame(payload: bytes, checksummed: bool = False) -> bytes:
    """Wraps a payload as a TFRecord, with the constant footer unless told otherwise."""
    length = struct.pack("<Q", len(payload))
    footer = struct.pack("<I", masked_crc32c(payload)) if checksummed else CONSTANT_FOOTER
    return length + struct.pack("<I", masked_crc32c(length)) + payload + footer


def tensor_message(name: str, value: np.ndarray, code: int | None = None) -> bytes:
    """The tensor message of a numeric array or of an array of strings."""
    dims = b"".join(chunk(2, number(1, n) + chunk(2, f"{name}_{n}".encode())) for n in value.shape)
    if value.dtype.kind in "UO":
        strings = b"".join(chunk(8, text.encode()) for text in value)
        return chunk(2, dims) + strings
    content = value.tobytes()
    code = DTYPE_CODES[value.dtype.name] if code is None else code
    return number(1, code) + chunk(2, dims) + (chunk(4, content) if content else b"")


def tensor_record(name: str, value: np.ndarray, stamp: Stamp, code: int | None = None) -> bytes:
    """One record of an event file."""
    metadata = b"".join(
        chunk(1, chunk(1, plugin) + chunk(2, str(content).encode()))
        for plugin, content in ((b"mode_step", stamp.mode_step), (b"mode", MODES[stamp.mode]))
    )
    summary_value = chunk(1, name.encode()) + chunk(8, tensor_message(name, value, code))
    summary_value += chunk(9, metadata)
    return frame(_event(stamp.wall_time, stamp.step, summary_value))


def scalar_summary_record(tag: str, value: float, wall_time: float, step: int) -> bytes:
    """One scalar record of a TensorBoard file."""
    summary_value = chunk(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
    return frame(_event(wall_time, step, summary_value), checksummed=True)


def histogram_summary_record(tag: str, values: np.ndarray, wall_time: float, step: int) -> bytes:
    """One histogram record of a TensorBoard file."""
    message = histogram_message(histogram(values))
    summary_value = chunk(1, tag.encode()) + chunk(5, message)
    return frame(_event(wall_time, step, summary_value), checksummed=True)


def histogram_message(histo: dict) -> bytes:
    """The histogram message for the output of `histogram`."""
    keys = ("min", "max", "num", "sum", "sum_squares")
    message = b"".join(double(field, histo[key]) for field, key in enumerate(keys, start=1))
    for field, key in ((6, "bucket_limit"), (7, "bucket")):
        message += chunk(field, np.asarray(histo[key], dtype="<f8").tobytes())
    return message


def histogram(values: np.ndarray) -> dict:
    """Bin counts with exponential edges, trimmed to the populated range."""
    flat = values.astype(np.float64).ravel()
    edges = _histogram_edges()
    counts, _ = np.histogram(flat, bins=edges)
    populated = np.flatnonzero(counts)
    first, end = int(populated[0]), int(populated[-1]) + 1
    before = counts[first - 1 : first] if first > 0 else np.zeros(1, counts.dtype)
    return {
        "min": float(flat.min()),
        "max": float(flat.max()),
        "num": float(flat.size),
        "sum": float(flat.sum()),
        "sum_squares": float(flat.dot(flat)),
        "bucket_limit": [float(edge) for edge in edges[first : end + 1]],
        "bucket": [float(n) for n in np.concatenate([before, counts[first:end]])],
    }


def _histogram_edges() -> np.ndarray:
    positive = []
    edge = 1e-12
    while edge < 1e20:
        positive.append(edge)
        edge *= 1.1
    return np.array([-e for e in reversed(positive)] + [0.0] + positive)


def _event(wall_time: float, step: int, summary_value: bytes) -> bytes:
    return double(1, wall_time) + number(2, step) + chunk(5, chunk(1, summary_value))
