"""What can be wrong with a run, by name: each case breaks a copy of a good one."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from good_run import (
    GOLDEN,
    STEPS,
    collections_file,
    end_marker,
    event_file,
    index_file,
)

sys.path.append(str(GOLDEN.parent))
from record_encoding import CONSTANT_FOOTER, chunk, frame, masked_crc32c, number, varint

Break = Callable[[Path], None]
MILLION = 1_000_000


@dataclass(frozen=True)
class Case:
    """One broken run, and what is still to be expected of it.

    `opens`: whether the run can be opened; None: either is right.
    `untouched`: steps at which `w` must have its right value once the run is open.
    `tells`: some message must hold this text.
    `during`: happens after the run was opened and read once.
    """

    name: str
    damage: Break
    opens: bool | None = True
    untouched: tuple[int, ...] = (0, 2)
    tells: str = ""
    golden: bool = False
    packed: bool = False
    during: Break | None = None
    mib: int = 1024

    @property
    def checks(self) -> tuple[bool, ...]:
        """Whether payloads are compared with their checksums; one of many is asked only once."""
        number = self.name.rpartition("_")[2]
        if "_cut_at_" in self.name or "flipped" in self.name:
            return (int(number) % 2 == 0,)
        return (False, True)


CASES: list[Case] = []


def case(name: str, **expected: Any) -> Callable[[Break], Break]:
    """Adds the decorated function to the table."""

    def add(damage: Break) -> Break:
        CASES.append(Case(name, damage, **expected))
        return damage

    return add


def add(name: str, damage: Break, **expected: Any) -> None:
    CASES.append(Case(name, damage, **expected))


def nothing(run: Path) -> None:
    """The run as it is."""


def files_of(run: Path) -> list[Path]:
    return sorted(path for path in run.rglob("*") if path.is_file() and not path.is_symlink())


def edit_index(change: Callable[[dict[str, Any]], None], run: Path) -> None:
    """Changes the index of step 1."""
    path = index_file(run)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def edit_collections(change: Callable[[dict[str, Any]], None], run: Path) -> None:
    path = collections_file(run)
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def rename_index(name: bytes, run: Path) -> None:
    """The index of step 1 under another name, given as bytes."""
    path = index_file(run)
    os.rename(path, os.path.join(os.fsencode(path.parent), name))


def replace(find: Callable[[Path], Path], make: Callable[[Path], Any], run: Path) -> None:
    """Something else in place of a file."""
    path = find(run)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path)


def make_socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path.name)
    os.chdir(here)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


def sparse(size: int) -> Callable[[Path], None]:
    """A file that says it is huge and takes no space."""

    def make(path: Path) -> None:
        path.touch()
        os.truncate(path, size)

    return make


KINDS: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "event": (event_file, {"tells": ".tfevents"}),
    "index": (index_file, {"tells": "index/000000000/000000000001_worker_0.json"}),
    "collections": (collections_file, {"opens": False, "tells": "_collections.json"}),
}

# ---- cut off


def cut(find: Callable[[Path], Path], per_mille: int, run: Path) -> None:
    path = find(run)
    os.truncate(path, path.stat().st_size * per_mille // 1000)


def cut_at(length: int, run: Path) -> None:
    os.truncate(event_file(run), length)


for length in [*range(0, 60), *range(60, 842, 13)]:
    add(f"event_cut_at_{length}", partial(cut_at, length), tells=".tfevents")
for per_mille in range(0, 1000, 40):
    add(f"index_cut_at_{per_mille}", partial(cut, index_file, per_mille), tells="worker_0.json")
for per_mille in range(0, 1000, 50):
    add(
        f"collections_cut_at_{per_mille}",
        partial(cut, collections_file, per_mille),
        opens=False,
        tells="_collections.json",
    )

# ---- flipped bits


def flip(seed: int, bits: int, run: Path) -> None:
    rng = random.Random(seed)
    path = files_of(run)[seed % len(files_of(run))]
    content = bytearray(path.read_bytes())
    for _ in range(bits if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


for seed in range(120):
    add(f"flipped_bit_{seed}", partial(flip, seed, 1), opens=None, untouched=())
for seed in range(60):
    add(f"flipped_bits_{seed}", partial(flip, seed, 2 + seed % 7), opens=None, untouched=())
for seed in range(80):
    add(
        f"golden_flipped_bit_{seed}",
        partial(flip, seed, 1 + seed % 3),
        opens=None,
        untouched=(),
        golden=True,
    )

# ---- other things where a file should be

THINGS: dict[str, Callable[[Path], Any]] = {
    "empty": lambda path: path.touch(),
    "pipe": os.mkfifo,
    "socket": make_socket,
    "directory": lambda path: path.mkdir(),
    "sparse_terabyte": sparse(1 << 40),
    "zeros": lambda path: path.write_bytes(bytes(4096)),
    "link_to_zeros": link_to("/dev/zero"),
    "link_to_itself": lambda path: path.symlink_to(path.name),
    "link_to_nowhere": link_to("nowhere"),
    "link_outside": link_to("../../../secret.tfevents"),
    "device": lambda path: os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5)),
}
for thing, make in THINGS.items():
    for kind, (find, expected) in KINDS.items():
        hides = kind != "event" and thing not in ("empty", "zeros", "sparse_terabyte")
        wanted = {**expected}
        if hides:  # not listed, and so not read
            wanted["tells"] = ""
        add(f"{kind}_is_{thing}", partial(replace, find, make), **wanted)
    if thing not in ("empty", "zeros", "sparse_terabyte"):
        add(
            f"end_marker_is_{thing}",
            partial(replace, end_marker, make),
            opens=None,
            untouched=STEPS,
        )
for folder in ("index", "events", "collections"):
    for thing in ("empty", "pipe", "link_to_itself", "link_to_nowhere", "socket"):
        add(
            f"{folder}_folder_is_{thing}",
            partial(replace, lambda run, folder=folder: run / folder, THINGS[thing]),
            opens=None,
            untouched=(),
        )
    add(
        f"{folder}_folder_is_linked_outside",
        partial(
            replace,
            lambda run, folder=folder: run / folder,
            link_to(f"../secret_run/{folder}"),
        ),
        opens=None,
        untouched=(),
    )


@case("links_in_a_circle", untouched=STEPS)
def _(run: Path) -> None:
    for folder in ("index", "events", "collections", "index/000000000"):
        (run / folder / "up").symlink_to("..")


@case("link_inside", untouched=STEPS)
def _(run: Path) -> None:
    event_file(run).rename(run / "events" / "moved")
    event_file(run).symlink_to("../moved")


@case("link_to_a_pipe_outside", tells=".tfevents")
def _(run: Path) -> None:
    os.mkfifo(run.parent / "canary")
    event_file(run).unlink()
    event_file(run).symlink_to("../../../canary")


# ---- absurd places in the index

NUMBERS: dict[str, Any] = {
    "2_63": 1 << 63,
    "2_64_less_1": (1 << 64) - 1,
    "2_64": 1 << 64,
    "2_62": 1 << 62,
    "negative": -1,
    "float": 1.5,
    "text": "1",
    "nested": {"a": [1]},
    "null": None,
    "true": True,
    "exponent": 1e300,
}


def set_place(key: str, value: Any, document: dict[str, Any]) -> None:
    for entry in document["tensor_payload"]:
        entry[key] = value


for label, absurd in NUMBERS.items():
    for key in ("start_idx", "length"):
        add(
            f"index_{key}_{label}",
            partial(edit_index, partial(set_place, key, absurd)),
            tells="000000000001_worker_0",
        )
    add(
        f"index_mode_step_{label}",
        partial(edit_index, lambda d, v=absurd: d["meta"].update(mode_step=v)),
    )
    add(
        f"index_crc32c_{label}",
        partial(edit_index, partial(set_place, "crc32c", absurd)),
    )


@case("index_offset_and_length_overflow", tells="absurd")
def _(run: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        for entry in document["tensor_payload"]:
            entry["start_idx"], entry["length"] = (1 << 64) - 10, 20

    edit_index(change, run)


@case("index_length_of_a_terabyte_in_a_sparse_file", tells=".tfevents")
def _(run: Path) -> None:
    os.truncate(event_file(run), 1 << 40)
    edit_index(partial(set_place, "length", (1 << 40) - 100_000), run)


@case("index_length_of_most_of_the_memory", tells=".tfevents", mib=256)
def _(run: Path) -> None:
    os.truncate(event_file(run), 400 << 20)
    edit_index(partial(set_place, "length", 300 << 20), run)


# ---- absurd records


def put_records(records: bytes, run: Path, length: int | None = None) -> None:
    """The event file of step 1 with these bytes, all of which the index gives to `w`."""
    event_file(run).write_bytes(records)

    def change(document: dict[str, Any]) -> None:
        size = len(records) if length is None else length
        document["tensor_payload"] = [{"tensorname": "w", "start_idx": 0, "length": size}]

    edit_index(change, run)


def record_of(length: int) -> bytes:
    head = struct.pack("<Q", length)
    return head + struct.pack("<I", masked_crc32c(head)) + b"x" * 100 + CONSTANT_FOOTER


def event_of(tensor: bytes, name: bytes = b"w") -> bytes:
    return frame(chunk(5, chunk(1, chunk(1, name) + chunk(8, tensor))))


def shape_of(*extents: int) -> bytes:
    return chunk(2, b"".join(chunk(2, number(1, n & ((1 << 64) - 1))) for n in extents))


for length in (0, 99, 101, 1 << 31, 1 << 62, 1 << 63, (1 << 64) - 1, (1 << 64) - 16):
    add(
        f"record_says_{length}_bytes",
        partial(put_records, record_of(length)),
        tells=".tfevents",
    )

FLOATS = number(1, 1)
TENSORS: dict[str, bytes] = {
    "shape_overflows": FLOATS + shape_of(1 << 40, 1 << 40) + chunk(4, bytes(4)),
    "shape_overflows_to_one": FLOATS + shape_of(1 << 32, 1 << 32, 1) + chunk(4, bytes(4)),
    "shape_2_62": FLOATS + shape_of(1 << 62) + chunk(4, bytes(4)),
    "shape_negative": FLOATS + shape_of(-1) + chunk(4, bytes(4)),
    "shape_negative_twice": FLOATS + shape_of(-1, -1) + chunk(4, bytes(4)),
    "empty_with_giant_extents": FLOATS + shape_of(0, 1 << 62, 1 << 62),
    "list_says_2_40": FLOATS + shape_of(1) + varint(5 << 3 | 2) + varint(1 << 40) + bytes(8),
    "content_says_2_63": FLOATS + shape_of(1) + varint(4 << 3 | 2) + varint(1 << 63) + bytes(8),
    "unending_varint": FLOATS + shape_of(1) + varint(7 << 3 | 2) + varint(20) + b"\xff" * 20,
    "wrong_wire_types": varint(1 << 3 | 2) + varint(4) + bytes(4) + varint(4 << 3) + varint(7),
    "unknown_type": number(1, 99) + shape_of(1) + chunk(4, bytes(4)),
    "unknown_type_2_31": number(1, 1 << 31) + shape_of(1) + chunk(4, bytes(4)),
    "no_type": shape_of(1) + chunk(4, bytes(4)),
    "strings_not_utf8": number(1, 7) + shape_of(1) + chunk(8, b"\xff\xfe\x80"),
    "strings_with_zeros": number(1, 7) + shape_of(1) + chunk(8, b"a\0b\0"),
    "strings_too_few": number(1, 7) + shape_of(1 << 40) + chunk(8, b"a"),
    "one_long_string_of_many": number(1, 7)
    + shape_of(2001)
    + chunk(8, b"a") * 2000
    + chunk(8, b"b" * MILLION),
}
for label, tensor in TENSORS.items():
    fine = label in ("empty_with_giant_extents", "strings_not_utf8", "strings_with_zeros")
    fine = fine or label in ("no_type",)
    add(
        f"tensor_{label}",
        partial(put_records, event_of(tensor)),
        tells="" if fine else ".tfevents",
    )
for count in (33, 65, 100_000):
    add(
        f"tensor_of_{count}_dimensions",
        partial(put_records, event_of(FLOATS + shape_of(*[1] * count) + chunk(4, bytes(4)))),
        tells="" if count < 65 else "dimensions",
    )
add(
    "tensor_name_in_the_record_is_not_utf8",
    partial(put_records, event_of(FLOATS + shape_of(1) + chunk(4, bytes(4)), b"\xff\x1b[31m")),
)
add("record_of_no_bytes", partial(put_records, frame(b"")), tells=".tfevents")
add("record_nested_deeply", partial(put_records, event_of(chunk(2, chunk(2, chunk(2, b"") * 99)))))

# ---- giant counts


@case("index_of_a_million_entries_for_one_record", mib=3072)
def _(run: Path) -> None:
    entry = json.dumps(json.loads(index_file(run).read_text())["tensor_payload"][0])
    text = index_file(run).read_text()
    at = text.index("[") + 1
    index_file(run).write_text(text[:at] + (entry + ",") * MILLION + text[at:])


@case("index_of_many_names", mib=2048)
def _(run: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        first = document["tensor_payload"][0]
        document["tensor_payload"] += [{**first, "tensorname": f"t{i}"} for i in range(30_000)]

    edit_index(change, run)


@case("index_of_many_empty_shapes", mib=2048)
def _(run: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document["shape_payload"] = [{"tensorname": "s", "shape": []}] * 200_000

    edit_index(change, run)


@case("index_larger_than_the_memory", tells="worker_0.json", mib=256)
def _(run: Path) -> None:
    index_file(run).write_text("[" + "0," * (20 * MILLION) + "0]")


SHAPES: dict[str, Any] = {
    "overflow": [1 << 40, 1 << 40],
    "2_62": [1 << 62],
    "2_63": [1 << 63],
    "negative": [-3],
    "float": [1.5],
    "text": "shape",
    "many": [1] * 100_000,
}
for label, shape in SHAPES.items():

    def change(document: dict[str, Any], shape: Any = shape) -> None:
        document["shape_payload"] = [{"tensorname": "w", "shape": shape}]

    add(f"index_shape_{label}", partial(edit_index, change))

# ---- names of files

PATHS: dict[str, str] = {
    "parent": "../secret.tfevents",
    "parents": "../" * 40 + "etc/passwd",
    "absolute": "/etc/passwd",
    "inner_parent": "events/../../secret.tfevents",
    "secret_run": "../secret_run/events/000000000001/000000000001_worker_0.tfevents",
    "dot": ".",
    "dots": "..",
    "dot_part": "events/./000000000001/000000000001_worker_0.tfevents",
    "empty_part": "events//000000000001/000000000001_worker_0.tfevents",
    "zero": "events/000000000001/000000000001_worker_0.tfevents\0.json",
    "long": "events/" + "a" * MILLION,
    "deep": "/".join(["a"] * 100_000),
    "backslash": "..\\secret.tfevents",
    "url": "file:///etc/passwd",
    "s3": "s3://bucket/key",
    "encoded": "%2e%2e/secret.tfevents",
    "escape": "events/\x1b[31m",
    "trailing_slash": "events/000000000001/000000000001_worker_0.tfevents/",
    "folder": "events",
    "itself": "index/000000000/000000000001_worker_0.json",
    "marker": "training_job_end.ts",
    "empty": "",
}
for label, path in PATHS.items():
    add(
        f"event_file_name_{label}",
        partial(edit_index, lambda d, p=path: d["meta"].update(event_file_name=p)),
    )
for label, value in {"number": 7, "null": None, "list": ["a"], "object": {}}.items():
    add(
        f"event_file_name_{label}",
        partial(edit_index, lambda d, v=value: d["meta"].update(event_file_name=v)),
        tells="worker_0.json",
    )

INDEX_NAMES: dict[str, bytes] = {
    "not_utf8": b"000000000001_w\xff\xfe.json",
    "escape": b"000000000001_\x1b[31mred.json",
    "newline": b"000000000001_a\nb.json",
    "dots": b"000000000001_...json",
    "device": b"000000000001__job-worker_.._.._etc.json",
    "no_worker": b"000000000001_.json",
    "no_step": b"worker.json",
    "step_2_63": b"9223372036854775808_worker_0.json",
    "step_20_digits": b"99999999999999999999_worker_0.json",
    "step_negative": b"-00000000001_worker_0.json",
    "step_hex": b"0x0000000001_worker_0.json",
    "step_float": b"1e3_worker_0.json",
    "long": b"000000000001_" + b"w" * 230 + b".json",
    "html": b"000000000001_<script>alert(1)<&.json",
}
for label, raw in INDEX_NAMES.items():
    add(f"index_name_{label}", partial(rename_index, raw))
# The greatest step that there is.
add("index_name_step_2_63_less_1", partial(rename_index, b"9223372036854775807_worker_0.json"))


@case("index_twice", untouched=STEPS)
def _(run: Path) -> None:
    shutil.copy(index_file(run), index_file(run).with_name("1_worker_0.json"))
    (run / "index/999999999").mkdir()
    shutil.copy(index_file(run), run / "index/999999999/000000000001_worker_0.json")


@case("collections_name_not_utf8", untouched=STEPS)
def _(run: Path) -> None:
    path = os.fsencode(collections_file(run))
    shutil.copy(path, path.replace(b"worker_0", b"w\xff\xfe"))


@case("only_collections_have_a_name_that_is_not_utf8", opens=False)
def _(run: Path) -> None:
    path = os.fsencode(collections_file(run))
    os.rename(path, path.replace(b"worker_0", b"w\xff\xfe"))


@case("collections_name_escape", untouched=STEPS)
def _(run: Path) -> None:
    path = collections_file(run)
    path.rename(path.with_name("\x1b[31m\n_collections.json"))


@case("file_names_of_other_kinds", untouched=STEPS)
def _(run: Path) -> None:
    for folder in ("index", "index/000000000", "events", "collections", "."):
        for name in (b"\xff", b"a\nb", b".json", b"_.json", b"__.csv", b"_collections.json"):
            with open(os.path.join(os.fsencode(run / folder), name), "wb"):
                pass


# ---- names of tensors

NAMES: dict[str, str] = {
    "zero": "a\0b",
    "long": "n" * MILLION,
    "escape": "\x1b[31mred\x07\r\n",
    "reduction_without_op": "smdebug/reductions//x",
    "reduction_alone": "smdebug/reductions/",
    "reduction_without_tensor": "smdebug/reductions/min/",
    "reduction_unknown": "smdebug/reductions/nonsense/w",
    "reduction_twice": "smdebug/reductions/min/smdebug/reductions/max/w",
    "reduction_abs_alone": "smdebug/reductions/abs_/w",
    "empty": "",
    "html": "<script>alert(1)</script>",
    "bidi": "\u202egpj.exe",
    "unicode_end": "\U0010ffff",
}
for label, name in NAMES.items():
    add(
        f"tensor_name_{label}",
        partial(edit_index, lambda d, n=name: d["tensor_payload"][0].update(tensorname=n)),
    )
    add(
        f"shape_name_{label}",
        partial(
            edit_index,
            lambda d, n=name: d["shape_payload"].append(
                {"tensorname": n, "originalname": n, "shape": [1]}
            ),
        ),
    )

# ---- texts that are not JSON, or too much of it

TEXTS: dict[str, bytes] = {
    "brackets": b"[" * (10 * MILLION),
    "braces": b'{"a":' * (2 * MILLION),
    "nested_and_closed": b"[" * 100_000 + b"]" * 100_000,
    "key_repeated": b"{" + b'"a":1,' * MILLION + b'"a":1}',
    "keys": b"{" + b",".join(b'"k%d":1' % i for i in range(300_000)) + b"}",
    "digits": b"1" * MILLION,
    "big_number": b'{"meta": ' + b"9" * 5000 + b"}",
    "big_exponent": b'{"meta": 1e999999999}',
    "not_utf8": b'{"meta": "\xff\xfe\x80"}',
    "surrogate": b'{"meta": "\\ud800"}',
    "surrogate_bytes": b'{"meta": "\xed\xa0\x80"}',
    "space": b" " * (2 * MILLION),
    "null": b"null",
    "nan": b"NaN",
    "number": b"7",
    "text": b'"text"',
    "array": b"[]",
    "object": b"{}",
    "zeros": bytes(1000),
    "utf16": '{"meta": 1}'.encode("utf-16"),
    "unclosed_text": b'"' + b"a" * MILLION,
    "html": b"<html></html>",
}


def put_text(find: Callable[[Path], Path], text: bytes, run: Path) -> None:
    find(run).write_bytes(text)


for label, text in TEXTS.items():
    add(f"index_text_{label}", partial(put_text, index_file, text), tells="worker_0.json")
    fine = label in ("object",)
    add(
        f"collections_text_{label}",
        partial(put_text, collections_file, text),
        opens=None if label in ("object", "key_repeated", "keys", "big_exponent") else False,
        tells="" if fine else "collections",
    )


def with_mark(find: Callable[[Path], Path], run: Path) -> None:
    find(run).write_bytes(b"\xef\xbb\xbf" + find(run).read_bytes())


add("index_with_byte_order_mark", partial(with_mark, index_file))
add("collections_with_byte_order_mark", partial(with_mark, collections_file), opens=None)
for key in ("meta", "tensor_payload", "shape_payload"):
    for label, value in {"null": None, "number": 7, "text": "x", "list": [1], "object": {}}.items():
        add(
            f"index_{key}_is_{label}",
            partial(edit_index, lambda d, k=key, v=value: d.update({k: v})),
        )

# ---- collections

for count in (0, -1, 1 << 62, 1 << 64, 1_000_000_000, 2, 1.5, "1", None, [1]):
    add(
        f"num_workers_{count}",
        partial(edit_collections, lambda d, n=count: d["_meta"].update(num_workers=n)),
        opens=None if count in ("1", None) else False,
    )

PATTERNS: dict[str, str] = {
    "backtracks": "(a+)+$",
    "backtracks_much": "(x+x+)+y",
    "does_not_compile": "(",
    "lookbehind": "(?<=a+)b",
    "recursion": "(?R)",
    "giant_repeat": "((((a{1,60000}){1,60000}){1,60000}){1,60000})",
    "nested": "(" * 100_000,
    "long": "a|" * 50_000,
    "zero": "a\0b",
    "many_groups": "(a)" * 70_000,
}
for label, pattern in PATTERNS.items():

    def change(document: dict[str, Any], pattern: str = pattern) -> None:
        for collection in document["collections"].values():
            collection["include_regex"] = [pattern]

    def add_names(document: dict[str, Any]) -> None:
        document["tensor_payload"][0]["tensorname"] = "a" * 60 + "!"
        document["tensor_payload"][1]["tensorname"] = "x" * 60 + "!"

    def both(run: Path, change: Any = change) -> None:
        edit_collections(change, run)
        edit_index(add_names, run)

    add(f"pattern_{label}", both, opens=None)

# ---- rights


@case("event_folder_without_rights", untouched=())
def _(run: Path) -> None:
    (run / "events").chmod(0)


@case("index_without_rights", untouched=())
def _(run: Path) -> None:
    index_file(run).chmod(0)


# ---- while it is read


def grow(run: Path) -> None:
    for path in (event_file(run), index_file(run)):
        with path.open("ab") as file:
            file.write(b"\xff" * 5000)


def remove(run: Path) -> None:
    shutil.rmtree(run)


def replace_by_file(run: Path) -> None:
    shutil.rmtree(run)
    run.touch()


def recreate(run: Path) -> None:
    kept = run.with_name("kept")
    shutil.copytree(run, kept)
    shutil.rmtree(run)
    shutil.copytree(kept, run)


def swap_for_link(run: Path) -> None:
    shutil.rmtree(run / "events")
    (run / "events").symlink_to("../secret_run/events")


def unended(run: Path) -> None:
    end_marker(run).unlink()


add("event_file_grows", nothing, during=grow, untouched=STEPS)
add("event_file_is_cut_while_read", nothing, during=partial(cut_at, 30), tells=".tfevents")
add("event_file_is_emptied_while_read", nothing, during=partial(cut_at, 0), tells=".tfevents")
for label, ended in (("finished", nothing), ("followed", unended)):
    for what in (remove, replace_by_file, recreate, swap_for_link):
        add(f"{label}_run_{what.__name__}", ended, during=what, untouched=())
    for kind, (find, _expected) in KINDS.items():
        for thing in ("pipe", "directory", "link_outside"):
            add(
                f"{label}_run_{kind}_becomes_{thing}",
                ended,
                during=partial(replace, find, THINGS[thing]),
                untouched=(),
            )


@case("nothing_is_wrong", untouched=STEPS)
def _(run: Path) -> None:
    pass


@case("golden_run", golden=True, untouched=())
def _(run: Path) -> None:
    pass


def make(chosen: Case, good: Path, folder: Path) -> Path:
    """The broken run, with a secret beside it."""
    run = folder / "run"
    own = good.parent / "packed" if chosen.packed else good
    shutil.copytree(GOLDEN if chosen.golden else own, run)
    if chosen.packed:
        shutil.copytree(good.parent / "secret_packed", folder / "secret_packed")
    shutil.copytree(good.parent / "secret_run", folder / "secret_run")
    shutil.copy(good.parent / "secret.tfevents", folder)
    chosen.damage(run)
    return run


def by_name() -> dict[str, Case]:
    import packed_cases  # noqa: F401  (adds to the table, of which it needs the functions above)

    table = {chosen.name: chosen for chosen in CASES}
    assert len(table) == len(CASES), "Two cases have the same name."
    return table


__all__ = ["CASES", "Case", "by_name", "make"]
