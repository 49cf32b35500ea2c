"""What can be wrong with a packed run; the table goes on from that of cases.py."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from cases import THINGS, Break, add, end_marker, nothing, recreate, remove, replace
from good_run import STEPS
from record_encoding import chunk, masked_crc32c, number, varint

HEADER, NAMES, SCHEMA, STEP, END = range(1, 6)
GLOBAL_MODE = 4


def log_file(run: Path) -> Path:
    return next((run / "v2/log").glob("*/00000000"))


def segment_file(run: Path) -> Path:
    return next((run / "v2/seg").glob("*/*/00000000"))


FILES: dict[str, Callable[[Path], Path]] = {"log": log_file, "segment": segment_file}


def framed(payload: bytes) -> bytes:
    """A record with true checksums."""
    length = struct.pack("<Q", len(payload))
    head = length + struct.pack("<I", masked_crc32c(length))
    return head + payload + struct.pack("<I", masked_crc32c(payload))


def header(version: int = 1, features: int = 0) -> bytes:
    return framed(chunk(HEADER, number(1, version) + number(2, features) + chunk(3, b"worker_0")))


def names(*texts: bytes, first: int = 0) -> bytes:
    return framed(chunk(NAMES, number(1, first) + b"".join(chunk(2, text) for text in texts)))


def packed_numbers(field: int, values: list[int]) -> bytes:
    return chunk(field, b"".join(map(varint, values)))


def schema(tensors: list[int], dtypes: list[int], ops: list[int] | None = None) -> bytes:
    body = number(1, 0) + packed_numbers(2, tensors)
    body += packed_numbers(4, ops or [0] * len(tensors)) + packed_numbers(5, dtypes)
    return framed(chunk(SCHEMA, body))


def fixed64(field: int, value: int) -> bytes:
    return varint(field << 3 | 1) + struct.pack("<Q", value)


def raw(tensor: int, offset: int, length: int, dims: list[int], **more: int) -> bytes:
    body = number(1, tensor) + number(2, offset) + number(3, length) + number(5, 1)
    body += packed_numbers(6, dims)
    if more:
        body += number(7, more["first"]) + number(8, more["count"])
    return chunk(10, body)


def step(at: int, base: int, length: int, *raws: bytes, block: int | None = None) -> bytes:
    body = number(1, at) + number(2, GLOBAL_MODE) + number(3, at)
    body += fixed64(5, base) + fixed64(6, length) + number(7, 0)
    body += fixed64(8, length if block is None else block) + b"".join(raws)
    return framed(chunk(STEP, body))


def write_log(text: bytes, run: Path) -> None:
    """Another log for a segment that nothing else tells of."""
    log_file(run).write_bytes(text)
    size = segment_file(run).stat().st_size
    os.truncate(segment_file(run), max(size - 40, 0))  # without its footer


def cut(find: Callable[[Path], Path], size: int, run: Path) -> None:
    os.truncate(find(run), min(size, find(run).stat().st_size))


def flip(find: Callable[[Path], Path], number_of: int, run: Path) -> None:
    """One byte at a place that depends on the number alone."""
    content = bytearray(find(run).read_bytes())
    chance = random.Random(number_of)
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    find(run).write_bytes(content)


def put(find: Callable[[Path], Path], content: bytes, run: Path) -> None:
    find(run).write_bytes(content)


def unlink(find: Callable[[Path], Path], run: Path) -> None:
    find(run).unlink()


def packed(name: str, damage: Break, **expected: Any) -> None:
    add(f"packed_{name}", damage, **{"untouched": (), "packed": True, **expected})


packed("nothing_is_wrong", nothing, untouched=STEPS)

# The segment knows as much as its log.
for place in (1, 11, 12, 13, 100, 300, 500):
    packed(f"log_cut_at_{place}", partial(cut, log_file, place))
    packed(f"segment_cut_at_{place}", partial(cut, segment_file, place))
for place in (1000, 5000, 50_000):
    packed(f"segment_cut_at_{place}", partial(cut, segment_file, place))
for chance in range(40):
    packed(f"log_flipped_{chance}", partial(flip, log_file, chance), opens=None)
    packed(f"segment_flipped_{chance}", partial(flip, segment_file, chance), opens=None)
packed("log_lost", partial(unlink, log_file), untouched=STEPS)
packed("segment_lost", partial(unlink, segment_file), tells="v2/seg/")
FOREIGN = {
    "empty": b"",
    "zeros": bytes(100_000),
    "noise": random.Random(1).randbytes(100_000),
    "text": b"This is no such file.\n" * 100,
    "png": b"\x89PNG\r\n\x1a\n" + bytes(1000),
}
for label, content in FOREIGN.items():
    packed(f"log_is_{label}", partial(put, log_file, content))
    packed(f"segment_is_{label}", partial(put, segment_file, content))

LATER = {"opens": False, "tells": "later release"}
packed("later_version", partial(write_log, header(version=9)), **LATER)
packed("unknown_feature", partial(write_log, header(features=1 << 40)), **LATER)
packed(
    "unknown_feature_in_the_middle",
    partial(write_log, header() + names(b"w") + header(features=2)),
    **LATER,
)

FAR = 1 << 59
W = header() + names(b"w") + schema([], [])
LOGS = {
    "no_header": names(b"w") + schema([], []) + step(1, 0, 64),
    "only_a_header": header(),
    "unknown_entry": header() + framed(chunk(77, b"x")) + names(b"w"),
    "step_far_outside": W + step(1, FAR, FAR, raw(0, 0, 64, [4])),
    "step_just_outside": W + step(1, 0, 1 << 20, raw(0, 1 << 19, 64, [4])),
    "sum_overflows": W + step(1, (1 << 64) - 64, 128, raw(0, 0, 64, [4])),
    "block_outside": W + step(1, 0, 64, block=1 << 40),
    "steps_lie_over_each_other": W
    + b"".join(step(i, 0, 640, raw(0, 0, 64, [4])) for i in range(9)),
    "same_step_again": W + step(1, 0, 640, raw(0, 0, 64, [4])) * 50,
    "records_lie_over_each_other": W + step(1, 0, 640, *[raw(0, 0, 640, [4])] * 100),
    "huge_record": W + step(1, 0, 1 << 50, raw(0, 0, 1 << 50, [1 << 47])),
    "huge_shape": W + step(1, 0, 640, raw(0, 0, 64, [1 << 62, 1 << 62])),
    "negative_shape": W + step(1, 0, 640, raw(0, 0, 64, [(1 << 64) - 5])),
    "many_dims": W + step(1, 0, 640, raw(0, 0, 64, [1] * 200_000)),
    "huge_part": W + step(1, 0, 1 << 50, raw(0, 0, 1 << 50, [1 << 47], first=0, count=1 << 47)),
    "parts_without_end": W
    + step(1, 0, 640, *[raw(0, 0, 64, [1 << 40], first=i * 8, count=8) for i in range(1000)]),
    "part_without_a_beginning": W + step(1, 0, 640, raw(0, 0, 64, [8], first=8, count=8)),
    "unknown_name": W + step(1, 0, 640, raw(5, 0, 64, [4])),
    "unknown_schema": header() + names(b"w") + step(1, 0, 640),
    "names_out_of_order": header() + names(b"w", first=7) + schema([], []),
    "names_without_end": header() + names(*[b"n%d" % i for i in range(100_000)]),
    "very_long_name": header() + names(b"w" * 200_000) + schema([], []) + step(1, 0, 64),
    "name_of_no_text": header()
    + names(b"\xff\xfe", b"", b"a\x00b", b"\x1b[31mred")
    + schema([0, 1, 2, 3], [1] * 4)
    + step(1, 0, 640, block=64),
    "reduction_of_a_reduction": header()
    + names(b"smdebug/reductions/min/smdebug/reductions/min/w", b"smdebug/reductions/", b"x")
    + schema([0, 1, 2], [1] * 3)
    + step(1, 0, 640, block=64),
    "many_numbers": header()
    + names(b"w")
    + schema([0] * 200_000, [1] * 200_000)
    + step(1, 0, 640, block=64),
    "schema_of_unknown_types": header() + names(b"w") + schema([0], [250]) + step(1, 0, 640),
    "schema_of_texts": header() + names(b"w") + schema([0], [7]) + step(1, 0, 640),
    "schema_with_unknown_reductions": header() + names(b"w") + schema([0], [1], [9]),
    "bytes_after_the_end": W + framed(chunk(END, b"")) + step(1, 0, 640),
    "negative_step": W + step((1 << 64) - 3, 0, 640),
    "huge_step": W + step((1 << 63) - 1, 0, 640),
}
for label, text in LOGS.items():
    packed(f"log_{label}", partial(write_log, text), opens=None)


def second_layout(run: Path) -> None:
    (run / "index/000000000").mkdir(parents=True)
    (run / "index/000000000/000000000000_worker_0.json").write_text("{}")


def false_mark(run: Path) -> None:
    second_layout(run)
    (run / "v2/export.json").write_text("[")


def many_writers(run: Path) -> None:
    """The log of one segment under the names of many."""
    content = log_file(run).read_bytes()
    for i in range(500):
        folder = run / f"v2/log/worker_{i}.{i:014x}deadbeef"
        folder.mkdir()
        (folder / "00000000").write_bytes(content)


def odd_names(run: Path) -> None:
    for name in ("worker_0", "worker_0.zz", ".0000000000000100000002", "a b.\n", "x." + "0" * 200):
        (run / "v2/log" / name).mkdir()
        (run / "v2/log" / name / "00000000").write_bytes(b"x")
    no_text = os.path.join(os.fsencode(run), b"v2/log/\xff.0000000000000100000002")
    os.mkdir(no_text)
    shutil.copy(log_file(run), os.path.join(no_text, b"00000000"))
    (log_file(run).parent / "99999999999").write_bytes(b"x")


def link_folder(run: Path) -> None:
    shutil.rmtree(run / "v2")
    (run / "v2").symlink_to("../secret_packed/v2")


def link_log(run: Path) -> None:
    log_file(run).unlink()
    secret = next((run.parent / "secret_packed/v2/log").glob("*/0*"))
    for folder in (run / "v2/log").iterdir():
        (folder / "00000000").symlink_to(secret)


def link_segment(run: Path) -> None:
    path = segment_file(run)
    path.unlink()
    path.symlink_to(next((run.parent / "secret_packed/v2/seg").glob("*/*/0*")))


packed("second_layout", second_layout, opens=False, tells="two runs")
packed("false_mark_of_an_export", false_mark, untouched=STEPS)
packed("many_writers", many_writers)
packed("odd_names", odd_names, untouched=STEPS)
packed("folder_is_a_link_outside", link_folder, opens=None)
packed("log_is_a_link_outside", link_log, opens=None)
packed("segment_is_a_link_outside", link_segment)
for kind, find in FILES.items():
    for thing, make in THINGS.items():
        packed(f"{kind}_becomes_{thing}", partial(replace, find, make), opens=None)


def unended(run: Path) -> None:
    end_marker(run).unlink()


for label, ended in (("finished", nothing), ("followed", unended)):
    for what in (remove, recreate, partial(cut, segment_file, 64), partial(cut, log_file, 64)):
        name = what.__name__ if not isinstance(what, partial) else f"cuts_{what.args[0].__name__}"
        packed(f"{label}_run_{name}", ended, during=what)
