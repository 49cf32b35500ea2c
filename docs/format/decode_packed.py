"""Reads a local run in the packed layout with Python alone: packed.md as a program.

read_run(folder): {(worker, step): {"mode", "mode_step", "wall_time", "shapes": {name: shape},
"numbers": {(tensor, reduction or None): number}, "tensors": {name: (dtype, shape, elements)}}}
"""

# fmt: off
import contextlib
import struct
import sys
from pathlib import Path

TABLE = list(range(256))
for _ in range(8):
    TABLE = [n >> 1 ^ (0x82F63B78 if n & 1 else 0) for n in TABLE]
MODES = {1: "TRAIN", 2: "EVAL", 3: "PREDICT", 4: "GLOBAL"}
# DataType, its name, and the letter in `struct` of an element or of its halves.
NAMES = """1 float32 f, 2 float64 d, 3 int32 i, 4 uint8 B, 5 int16 h, 6 int8 b, 7 str x, 8 complex64 ff,
9 int64 q, 10 bool ?, 14 bfloat16 H, 17 uint16 H, 18 complex128 dd, 19 float16 e, 22 uint32 I,
23 uint64 Q, 24 float8_e5m2 B, 25 float8_e4m3fn B"""
TYPES = {int(n): (name, letter) for n, name, letter in (t.split() for t in NAMES.split(","))}

def crc32c(data, masked=False):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF if masked else crc

def records(data, is_log):
    at = 0
    while len(data) - at >= 16:
        length, check = struct.unpack_from("<QI", data, at)
        if crc32c(data[at : at + 8], masked=True) != check:
            raise ValueError(f"The length at offset {at} is wrong.")
        if length > len(data) - at - 16:
            return  # not complete yet
        payload = data[at + 12 : at + 12 + length]
        footer = int.from_bytes(data[at + 12 + length : at + 16 + length], "little")
        if footer != crc32c(payload if is_log else b"0x12345678", masked=True):
            raise ValueError(f"The record at offset {at} does not have its footer.")
        yield payload
        at += 16 + length

def varint(data, at):
    end = next(i for i in range(at, len(data)) if data[i] < 128) + 1
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[at:end])), end

def varints(data, at=0):
    out = []
    while at < len(data):
        value, at = varint(data, at)
        out.append(value)
    return out

def message(data, at=0):  # {field: [int or bytes, ...]}
    fields = {}
    while at < len(data):
        tag, at = varint(data, at)
        number, at = varint(data, at) if tag & 7 in (0, 2) else (0, at)
        size = {0: 0, 1: 8, 5: 4}.get(tag & 7, number)
        fields.setdefault(tag >> 3, []).append(data[at : at + size] if tag & 7 else number)
        at += size
    return fields

def whole(fields, number):
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else int.from_bytes(value, "little")

def elements(code, data):
    name, letters = TYPES[code]
    values = [v[0] if len(v) == 1 else complex(*v) for v in struct.iter_unpack("<" + letters, data)]
    if name == "bfloat16":
        return [struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in values]
    if name == "float8_e5m2":  # the first half of a float16
        return elements(19, b"".join(bytes((0, bits)) for bits in values))
    if name == "float8_e4m3fn":  # a float16 with a smaller exponent, and a NaN of its own
        halves = b"".join(struct.pack("<H", (v & 128) << 8 | (v & 127) << 7) for v in values)
        wide, nan = elements(19, halves), float("nan")
        return [nan if v & 127 == 127 else h * 256 for v, h in zip(values, wide, strict=True)]
    return values

def tensor_of(payload):  # tag and tensor message of an Event
    value = message(message(message(payload)[5][0])[1][0])
    return value[1][0], message(value[8][0])

def log_of_blocks(segment):
    log = b""
    with contextlib.suppress(ValueError):  # what stands before the damage counts
        for tag, tensor in map(tensor_of, records(segment, is_log=False)):
            log += tensor[1003][0] if tag == b"smdebug/block" else b""
    return log

def read_step(entry, names, schema, segment):
    tensors, numbers, base = {}, {}, whole(entry, 5)
    for raw in map(message, entry.get(10, [])):
        payload = segment[base + whole(raw, 2) :][12 : whole(raw, 3) - 4]
        if crc32c(payload) != whole(raw, 4):
            raise ValueError(f"The tensor {names[whole(raw, 1)]} does not have its checksum.")
        content, code = tensor_of(payload)[1], whole(raw, 5)
        values = content.get(8, []) if code == 7 else elements(code, content[4][0])
        name, shape = names[whole(raw, 1)], varints(b"".join(raw.get(6, [])))
        before = tensors[name][2] if whole(raw, 7) else []  # parts follow each other
        tensors[name] = (TYPES[code][0], shape, before + values)
    at = begin = base + whole(entry, 8)
    lists = [varints(b"".join(schema.get(field, []))) for field in (2, 4, 5)]
    for tensor, op, code in zip(*lists, strict=True):
        size = struct.calcsize("<" + TYPES[code][1])
        width = 4 if size <= 4 else 8
        at += -(at - begin) % width
        key = (names[tensor], schema[3][op - 1].decode() if op else None)
        numbers[key] = elements(code, segment[at : at + size])[0]
        at += width
    if crc32c(segment[begin:at]) != whole(entry, 9):
        raise ValueError(f"The numbers of step {whole(entry, 1)} do not have their checksum.")
    return {
        "mode": MODES[whole(entry, 2)],
        "mode_step": whole(entry, 3),
        "wall_time": struct.unpack("<d", entry[4][0])[0],
        "shapes": {names[whole(s, 1)]: varints(s[3][0]) for s in map(message, entry.get(11, []))},
        "numbers": numbers,
        "tensors": {name: t for name, t in tensors.items() if (name, None) not in numbers},
    }

def read_run(folder):
    found = {}  # (worker, step): (when that life of the worker began, content)
    for path in sorted(Path(folder).glob("v2/seg/*/*/*")):
        worker, _, incarnation = path.parent.name.rpartition(".")
        segment, names, schemas = path.read_bytes(), [], {}
        log = Path(folder) / "v2/log" / path.parent.name / path.name
        try:
            entries = list(records(log.read_bytes(), is_log=True))
        except (FileNotFoundError, ValueError):
            entries = records(log_of_blocks(segment), is_log=True)
        for entry in map(message, entries):
            header = message(entry.get(1, [b""])[0])
            if 1 in entry and (whole(header, 1) != 1 or whole(header, 2) > 1):
                raise ValueError(f"A later version wrote this: {path}")
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
