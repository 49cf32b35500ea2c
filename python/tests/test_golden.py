"""Our parsers read the files that the original wrote."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from smdebug import _core
from smdebug.collection import CollectionManager
from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden"
RUNS = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["runs"]
FILES = [(run, file) for run, expected in RUNS.items() for file in expected["files"]]
# Quantised types are read as the whole numbers they hold; two of them share a code with those.
STORED_AS = {
    "qint8": "int8",
    "quint8": "uint8",
    "qint16": "int16",
    "quint16": "uint16",
    "qint32": "int32",
}


def ids(case: Any) -> str:
    return case if isinstance(case, str) else Path(case["index"]).stem


def check_value(record: _core.EventRecord, expected: dict[str, Any]) -> None:
    assert list(record.value.shape) == expected["shape"]
    if expected["dtype"] == "string":
        assert record.dtype == "str"
        assert record.value.ravel().tolist() == expected["strings"]
        return
    dtype = STORED_AS.get(expected["dtype"], expected["dtype"])
    assert record.value.dtype == np.dtype(dtype)
    assert record.value.tobytes().hex() == expected["hex"]


@pytest.mark.parametrize(("run", "file"), FILES, ids=ids)
def test_every_index_file_is_read(run: str, file: dict[str, Any]) -> None:
    path = GOLDEN / run / file["index"]
    index = _core.parse_index(path.read_text(encoding="utf-8"), str(path))
    assert index["mode"] is ModeKeys[file["mode"]]
    assert index["mode_step"] == file["mode_step"]
    assert index["event_file"] == file["event"]
    assert index["tensors"] == [(t["name"], t["start"], t["length"]) for t in file["tensors"]]
    assert index["shapes"] == [
        (s["name"], s["original_name"], tuple(s["shape"])) for s in file["shapes"]
    ]
    worker = _core.worker_from_file_name(file["worker"])
    assert _core.parse_step_file_name(str(path)) == (file["step"], worker)
    assert _core.index_file_name(file["step"], file["worker"]) == file["index"]


@pytest.mark.parametrize(("run", "file"), [f for f in FILES if f[1]["event"]], ids=ids)
def test_every_tensor_is_read(run: str, file: dict[str, Any]) -> None:
    path = GOLDEN / run / file["event"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file["event_sha256"]
    assert _core.event_file_name(file["step"], file["worker"]) == file["event"]
    records = _core.read_event_file(str(path))
    assert len(records) == len(file["tensors"])
    for record, expected in zip(records, file["tensors"], strict=True):
        assert record.name == expected["name"]
        assert (record.offset, record.length) == (expected["start"], expected["length"])
        assert record.wall_secs == expected["wall_time"]
        assert (record.step, record.mode_step) == (file["step"], file["mode_step"])
        assert record.mode is ModeKeys[file["mode"]]
        assert not record.checksummed
        check_value(record, expected)
        alone = _core.read_record(str(path), expected["start"], expected["length"])
        check_value(alone, expected)


COLLECTIONS = [(run, path) for run, expected in RUNS.items() for path in expected["collections"]]


@pytest.mark.parametrize(("run", "path"), COLLECTIONS)
def test_every_collections_file_is_read(run: str, path: str) -> None:
    manager = CollectionManager.load(str(GOLDEN / run / path))
    expected = RUNS[run]["collections"][path]
    assert manager.get_num_workers() == expected["_meta"]["num_workers"]
    assert manager.to_json_dict() == expected


@pytest.mark.parametrize("run", RUNS)
def test_nothing_but_the_expected_index_files_counts(run: str) -> None:
    found = {
        str(path.relative_to(GOLDEN / run))
        for path in (GOLDEN / run / "index").rglob("*")
        if _core.parse_step_file_name(str(path)) is not None
    }
    assert found == {file["index"] for file in RUNS[run]["files"]}


def expected_values(file: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What a step holds by name; of a name that was written twice, the last counts."""
    return {tensor["name"]: tensor for tensor in file["tensors"]}


@pytest.mark.parametrize("name", ["hook", "types", "workers"])
def test_packed_runs_of_an_earlier_day_are_read(name: str) -> None:
    trial = create_trial(str(GOLDEN / "packed" / name))
    assert trial.training_ended()
    seen = 0
    for file in RUNS[name]["files"]:
        place = {"step_num": file["mode_step"], "mode": ModeKeys[file["mode"]]}
        for tensor, expected in expected_values(file).items():
            if tensor.startswith("smdebug/reductions/"):
                op, of = tensor.removeprefix("smdebug/reductions/").split("/", 1)
                found = trial.tensor(of).reduction_value(
                    reduction_name=op.removeprefix("abs_"), abs=op.startswith("abs_"), **place
                )
            else:
                found = trial.tensor(tensor).value(worker=file["worker"], **place)
            if expected["dtype"] == "string":
                assert found.ravel().tolist() == expected["strings"]
            else:
                assert found.dtype == np.dtype(STORED_AS.get(expected["dtype"], expected["dtype"]))
                assert np.ascontiguousarray(found).tobytes().hex() == expected["hex"]
            seen += 1
        for shape in file["shapes"]:
            found = trial.tensor(shape["name"]).shape(worker=file["worker"], **place)
            assert list(found) == shape["shape"]
    assert seen > 10
