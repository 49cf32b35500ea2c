"""Runs that are damaged: what can be read is read, the rest gives errors of smdebug."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import writing
from conftest import Messages
from smdebug.core.writer import FileWriter
from smdebug.exceptions import SMDebugFileNotFoundError, SMDebugRuntimeError
from smdebug.trials import create_trial


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two steps of one worker."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    folder = tmp_path / "run"
    writing.collections(folder)
    for number in range(2):
        writing.step(folder, number, w=np.float32(number), smdebug__reductions__mean__r=np.ones(1))
    writing.end(folder)
    return folder


def index(run: Path) -> Path:
    return run / "index/000000000/000000000001_worker_0.json"


def event_file(run: Path) -> Path:
    return run / "events/000000000001/000000000001_worker_0.tfevents"


def rename_tensor(run: Path, name: str) -> None:
    document: dict[str, Any] = json.loads(index(run).read_text())
    document["tensor_payload"][0]["tensorname"] = name
    index(run).write_text(json.dumps(document))


def test_files_whose_names_are_not_utf8_are_left_out(run: Path, messages: Messages) -> None:
    os.rename(index(run), os.fsencode(index(run)).replace(b"worker_0", b"w\xff"))
    collections = os.fsencode(run / "collections/000000000/worker_0_collections.json")
    with open(collections.replace(b"worker_0", b"w\xff"), "wb"):
        pass
    trial = create_trial(str(run))
    assert trial.workers() == ["worker_0"]
    assert trial.steps() == [0]
    assert len(messages.containing("not valid UTF-8")) == 2


def test_a_missing_event_file_is_an_error_of_ours(run: Path) -> None:
    event_file(run).unlink()
    trial = create_trial(str(run))
    with pytest.raises(SMDebugFileNotFoundError, match="000000000001_worker_0"):
        trial.tensor("w").series()
    assert isinstance(SMDebugFileNotFoundError("x"), FileNotFoundError)


def test_a_damaged_run_can_be_printed(run: Path) -> None:
    event_file(run).write_bytes(b"")
    trial = create_trial(str(run))
    assert "  w" in str(trial)
    assert "<td>w</td>" in trial._repr_html_()
    assert "at step 1: The record" in str(trial.tensor("r"))
    assert trial.tensor("w").value(0) == 0


def test_a_table_of_a_damaged_run_is_an_error_of_ours(run: Path, tmp_path: Path) -> None:
    event_file(run).write_bytes(b"")
    frame = create_trial(str(run)).frame()
    for read in (frame.to_arrow, frame.to_pandas, lambda: frame.export(tmp_path / "x.csv")):
        with pytest.raises(SMDebugRuntimeError, match=r"000000000001_worker_0\.tfevents"):
            read()
    assert not (tmp_path / "x.csv").exists()


def test_control_characters_of_names_are_not_printed(run: Path) -> None:
    rename_tensor(run, "\x1b[31mred\r\n")
    trial = create_trial(str(run))
    for text in (str(trial), str(trial.tensor("\x1b[31mred\r\n"))):
        assert "\\x1b[31mred\\r\\n" in text
        assert "\x1b" not in text


def test_a_reduction_that_is_an_array_is_an_error(run: Path) -> None:
    writer = FileWriter(str(run), "worker_0", step=5)
    writer.write_tensor(np.arange(3), "smdebug/reductions/min/r")
    writer.close()
    tensor = create_trial(str(run)).tensor("r")
    with pytest.raises(SMDebugRuntimeError, match="other than one number"):
        tensor.reduction_values(5)


def test_an_index_larger_than_any_is_left_out(run: Path, messages: Messages) -> None:
    os.truncate(index(run), 1 << 40)
    assert create_trial(str(run)).steps() == [0]
    assert messages.containing("more than any of its kind")
