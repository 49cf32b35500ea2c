"""Reads a local run in the packed layout with Python alone: packed.md as a program.

read_run(folder) gives {(worker, step): {"mode", "mode_step", "wall_time",
"numbers": {(tensor, reduction or None): number}, "tensors": {name: (dtype, shape, elements)},
"shapes": {name: shape}}}. Footers are not needed: without a log, the blocks tell the same.
"""

import struct
import sys
from pathlib import Path

TABLE = list(range(256))
for _ in range(8):
    TABLE = [n >> 1 ^ (0x82F63B78 if n & 1 else 0) for n in TABLE]
MODES = {1: "TRAIN", 2: "EVAL", 3: "PREDICT", 4: "GLOBAL"}
# DataType: name, bytes of an element, letter in `struct` of it or of its halves.
TYPES = {
    1: ("float32", 4, "f"), 2: ("float64", 8, "d"), 3: ("int32", 4, "i"), 4: ("uint8", 1, "B"),
    5: ("int16", 2, "h"), 6: ("int8", 1, "b"), 7: ("str", 0, ""), 8: ("complex64", 8, "f"),
    9: ("int64", 8, "q"), 10: ("bool", 1, "?"), 14: ("bfloat16", 2, "H"), 17: ("uint16", 2, "H"),
    18: ("complex128", 16, "d"), 19: ("float16", 2, "e"), 22: ("uint32", 4, "I"),
    23: ("uint64", 8, "Q"), 24: ("float8_e5m2", 1, "B"), 25: ("float8_e4m3fn", 1, "B"),
}  # fmt: skip


class Damaged(Exception):
    """Bytes that are not what their checksum says."""


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked_crc32c(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data, is_log):
    """The payloads of a file, up to the first record that is not there completely."""
    at = 0
    while len(data) - at >= 16:
        length, check = struct.unpack_from("<QI", data, at)
        if masked_crc32c(data[at : at + 8]) != check:
            raise Damaged(f"The length at offset {at} is wrong.")
        if length > len(data) - at - 16:
            return
        payload = data[at + 12 : at + 12 + length]
        footer = int.from_bytes(data[at + 12 + length : at + 16 + length], "little")
        if footer != masked_crc32c(payload if is_log else b"0x12345678"):
            raise Damaged(f"The record at offset {at} does not have its footer.")
        yield payload
        at += 16 + length


def varints(data):
    out, value, shift = [], 0, 0
    for byte in data:
        value, shift = value | (byte & 127) << shift, shift + 7
        if byte < 128:
            out.append(value)
            value = shift = 0
    return out


def message(data):
    """The fields of a protobuf message: {number: [int or bytes, …]}."""
    fields, at = {}, 0
    while at < len(data):
        numbers = []  # the tag, and after it a number or the length of what follows
        kind = 0
        while not numbers or (kind in (0, 2) and len(numbers) == 1):
            end = next(i for i in range(at, len(data)) if data[i] < 128) + 1
            numbers += varints(data[at:end])
            kind, at = numbers[0] & 7, end
        size = {0: 0, 1: 8, 5: 4}.get(kind, numbers[-1])
        value = numbers[1] if kind == 0 else data[at : at + size]
        fields.setdefault(numbers[0] >> 3, []).append(value)
        at += size
    return fields


def whole(fields, number):
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else int.from_bytes(value, "little")


def elements(code, data):
    name, _, letter = TYPES[code]
    values = struct.unpack(f"<{len(data) // struct.calcsize(letter)}{letter}", data)
    if name == "bfloat16":
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    if name == "float8_e5m2":
        return [struct.unpack("<e", struct.pack("<H", bits << 8))[0] for bits in values]
    if name == "float8_e4m3fn":  # a float16 with a smaller exponent, and a NaN of its own
        halves = [(bits & 128) << 8 | (bits & 127) << 7 for bits in values]
        wide = [struct.unpack("<e", struct.pack("<H", half))[0] * 256 for half in halves]
        return [float("nan") if b & 127 == 127 else w for b, w in zip(values, wide, strict=True)]
    if name.startswith("complex"):
        return [complex(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
    return list(values)


def tensor_of(payload):
    """Tag and tensor message of an Event."""
    value = message(message(message(payload)[5][0])[1][0])
    return value[1][0], message(value[8][0])


def log_of_blocks(segment):
    log = b""
    try:
        for tag, tensor in map(tensor_of, records(segment, is_log=False)):
            log += tensor[1003][0] if tag == b"smdebug/block" else b""
    except Damaged:
        pass  # what stands before it counts
    return log


def read_step(entry, names, schema, segment):
    tensors, numbers, base = {}, {}, whole(entry, 5)
    for raw in map(message, entry.get(10, [])):
        payload = segment[base + whole(raw, 2) :][12 : whole(raw, 3) - 4]
        if crc32c(payload) != whole(raw, 4):
            raise Damaged(f"The tensor {names[whole(raw, 1)]} does not have its checksum.")
        content, code = tensor_of(payload)[1], whole(raw, 5)
        values = content.get(8, []) if code == 7 else elements(code, content[4][0])
        shape = varints(b"".join(raw.get(6, [])))
        tensors[names[whole(raw, 1)]] = (TYPES[code][0], shape, values)
    at = begin = base + whole(entry, 8)
    lists = [varints(b"".join(schema.get(field, []))) for field in (2, 4, 5)]
    for tensor, op, code in zip(*lists, strict=True):
        width = 4 if TYPES[code][1] <= 4 else 8
        at += -(at - begin) % width
        key = (names[tensor], schema[3][op - 1].decode() if op else None)
        numbers[key] = elements(code, segment[at : at + TYPES[code][1]])[0]
        at += width
    if crc32c(segment[begin:at]) != whole(entry, 9):
        raise Damaged(f"The numbers of step {whole(entry, 1)} do not have their checksum.")
    shapes = {names[whole(s, 1)]: varints(s[3][0]) for s in map(message, entry.get(11, []))}
    about = {"mode": MODES[whole(entry, 2)], "mode_step": whole(entry, 3), "shapes": shapes}
    kept = {name: value for name, value in tensors.items() if (name, None) not in numbers}
    wall_time = struct.unpack("<d", entry[4][0])[0]
    return {**about, "wall_time": wall_time, "numbers": numbers, "tensors": kept}


def read_run(folder):
    found = {}  # (worker, step): (when that life of the worker began, content)
    for path in sorted(Path(folder).glob("v2/seg/*/*/*")):
        worker, _, incarnation = path.parent.name.rpartition(".")
        segment, names, schemas = path.read_bytes(), [], {}
        try:
            log = (Path(folder) / "v2/log" / path.parent.name / path.name).read_bytes()
            entries = list(records(log, is_log=True))
        except (FileNotFoundError, Damaged):
            entries = records(log_of_blocks(segment), is_log=True)
        for entry in map(message, entries):
            if 1 in entry and (
                whole(message(entry[1][0]), 1),
                *message(entry[1][0]).get(2, []),
            ) != (1,):
                raise Damaged(f"A later version wrote this: {path}")
            names += [n.decode() for m in entry.get(2, []) for n in message(m).get(2, [])]
            schemas.update((whole(s, 1), s) for s in map(message, entry.get(3, [])))
            for step in map(message, entry.get(4, [])):
                key, life = (worker, whole(step, 1)), incarnation[:14]
                if key not in found or found[key][0] <= life:
                    found[key] = (life, read_step(step, names, schemas[whole(step, 7)], segment))
    return {key: content for key, (_, content) in sorted(found.items())}


if __name__ == "__main__":
    for place, content in read_run(sys.argv[1]).items():
        print(*place, content)
