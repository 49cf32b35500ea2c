"""What the released package's reader accepts and refuses: the facts of docs/dev/original.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import original_view
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from expectation import collection, event_path, index_path, reduction_config
from record_encoding import Stamp, chunk, double, frame, number, tensor_record

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

STAMP = Stamp(1600000000.5, 0, "TRAIN", 0)
VALUE = np.array([1, 2], dtype=np.float32)
GOOD = tensor_record("w", VALUE, STAMP)
PAYLOAD = GOOD[12:-4]
META = {"mode": "TRAIN", "mode_step": 0, "event_file_name": event_path(0, "worker_0")}
READABLE = VALUE.tobytes().hex()


def index(start: int = 0, length: int = len(GOOD), **fields: Any) -> dict:
    """An index document with one tensor."""
    tensors = [{"tensorname": "w", "start_idx": start, "length": length}]
    return {"meta": META, "tensor_payload": tensors, "shape_payload": [], **fields}


def collections(extra: dict | None = None, workers: int = 1, **fields: Any) -> dict:
    """A collections document with one collection."""
    one = {"w": collection("w", "w", **fields)}
    return {"collections": one, "_meta": {"num_workers": workers}, **(extra or {})}


def write_run(root: Path, event: bytes, index_text: str, collections_text: str) -> None:
    """Writes a finished run of one step by hand."""
    files = {
        "collections/000000000/worker_0_collections.json": collections_text.encode(),
        event_path(0, "worker_0"): event,
        index_path(0, "worker_0"): index_text.encode(),
        "training_job_end.ts": b"",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def outcome(root: Path) -> str:
    """The value's bytes in hex or its strings, or the class name of what was raised."""
    document = original_view.read_run(root)
    if "error" in document:
        return "opening: " + document["error"]
    (entry,) = document["tensors"]["w"]["entries"]
    value = entry["value"]
    return value.get("error") or value.get("hex") or ",".join(value["strings"])


def message_record(message: bytes) -> bytes:
    """A record with a hand-made tensor message."""
    value = chunk(1, b"w") + chunk(8, message)
    return frame(double(1, 1.5) + chunk(5, chunk(1, value)))


def dims(*extents: int) -> bytes:
    """The shape field, without names."""
    return chunk(2, b"".join(chunk(2, number(1, n)) for n in extents))


EVENTS = {
    "constant_footer": (GOOD, READABLE),
    "true_checksum": (frame(PAYLOAD, checksummed=True), "NameError"),
    "wrong_length_checksum": (GOOD[:8] + b"\0\0\0\0" + GOOD[12:], "NameError"),
    "cut_in_the_header": (GOOD[:6], "error"),
    "cut_in_the_footer": (GOOD[:-2], "error"),
    "empty_file": (b"", "IndexError"),
    "changed_value": (
        GOOD.replace(VALUE.tobytes(), b"\1" + VALUE.tobytes()[1:]),
        "01" + READABLE[2:],
    ),
    "no_metadata_no_dim_names": (
        message_record(number(1, 1) + dims(2) + chunk(4, VALUE.tobytes())),
        READABLE,
    ),
    "float_val": (message_record(number(1, 1) + dims(2) + chunk(5, VALUE.tobytes())), READABLE),
    "unknown_field": (
        message_record(number(1, 1) + dims(2) + chunk(4, VALUE.tobytes()) + chunk(99, b"x")),
        READABLE,
    ),
    "bfloat16": (message_record(number(1, 14) + dims(2) + chunk(4, b"\x80?\0@")), "KeyError"),
    "strings": (message_record(dims(2) + chunk(8, b"a") + chunk(8, b"b")), "a,b"),
    "strings_with_dtype": (
        message_record(number(1, 7) + dims(2) + chunk(8, b"a") + chunk(8, b"b")),
        "SMDebugTypeError",
    ),
    "strings_of_rank_2": (
        message_record(dims(1, 2) + chunk(8, b"a") + chunk(8, b"b")),
        "SMDebugValueError",
    ),
    "strings_of_rank_0": (message_record(dims() + chunk(8, b"a")), "SMDebugValueError"),
}
VERSION = frame(double(1, 1.5) + chunk(3, b"brain.Event:2"))
SHAPE = [{"tensorname": "w", "originalname": "w", "shape": [2]}]
INDICES = {
    "unknown_keys": (json.dumps(index(more=1, meta={**META, "more": 1})), READABLE),
    "indented": (json.dumps(index(), indent=1) + "\n", READABLE),
    "no_shape_payload": (
        json.dumps({k: v for k, v in index().items() if k != "shape_payload"}),
        READABLE,
    ),
    "shape_beside_value": (json.dumps(index(shape_payload=SHAPE)), "TensorUnavailableForStep"),
    "empty_meta": (json.dumps(index(meta={})), "opening: IndexReaderException"),
    "two_objects": (json.dumps(index()) * 2, "opening: IndexReaderException"),
    "empty_file": ("", "opening: IndexReaderException"),
    "negative_mode_step": (
        json.dumps(index(meta={**META, "mode_step": -1})),
        "opening: SMDebugValueError",
    ),
}
RAW = reduction_config(raw=True)
COLLECTIONS = {
    "unknown_key_in_a_collection": (collections(more=1), READABLE),
    "unknown_key_in_meta": (collections({"_meta": {"num_workers": 1, "more": 1}}), READABLE),
    "unknown_key_in_reduction_config": (
        collections(reduction_config={**RAW, "extra_reductions": "median"}),
        READABLE,
    ),
    "unknown_key_at_the_top": (collections({"more": 1}), "opening: SMDebugValueError"),
    "median": (
        collections(reduction_config={**RAW, "reductions": "median"}),
        "opening: SMDebugValueError",
    ),
    "norm_without_suffix": (
        collections(reduction_config={**RAW, "reductions": "l1"}),
        "opening: SMDebugValueError",
    ),
    "more_workers_than_files": (collections(workers=2), "opening: MissingCollectionFiles"),
}


@pytest.mark.parametrize("name", EVENTS)
def test_event_file(name: str, tmp_path: Path) -> None:
    event, wanted = EVENTS[name]
    length = len(event) if len(event) > len(GOOD) // 2 else len(GOOD)
    write_run(tmp_path, event, json.dumps(index(length=length)), json.dumps(collections()))
    assert outcome(tmp_path) == wanted


@pytest.mark.parametrize("name", INDICES)
def test_index_file(name: str, tmp_path: Path) -> None:
    text, wanted = INDICES[name]
    write_run(tmp_path, GOOD, text, json.dumps(collections()))
    assert outcome(tmp_path) == wanted


@pytest.mark.parametrize("name", COLLECTIONS)
def test_collections_file(name: str, tmp_path: Path) -> None:
    document, wanted = COLLECTIONS[name]
    write_run(tmp_path, GOOD, json.dumps(index()), json.dumps(document))
    assert outcome(tmp_path) == wanted


def test_records_before_the_indexed_one_do_not_matter(tmp_path: Path) -> None:
    text = json.dumps(index(start=len(VERSION)))
    write_run(tmp_path, VERSION + GOOD, text, json.dumps(collections()))
    assert outcome(tmp_path) == READABLE


def test_index_name_without_a_step_prevents_opening(tmp_path: Path) -> None:
    write_run(tmp_path, GOOD, json.dumps(index()), json.dumps(collections()))
    (tmp_path / "index/000000000/hello.json").write_text("{}")
    assert outcome(tmp_path) == "opening: ValueError"


def test_two_underscores_in_the_path_change_worker_names(tmp_path: Path) -> None:
    run = tmp_path / "my__run"
    write_run(run, GOOD, json.dumps(index()), json.dumps(collections()))
    document = original_view.read_run(run)
    assert document["workers"] == ["worker_0"]
    assert document["tensors"]["w"]["entries"][0]["worker"] == "worker/0"
