"""What stands in the transaction log of an offline run of Weights & Biases."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
import smdebug
import wandb
from conftest import LOSSES, STEPS, WORKERS, loss, wall_secs, weight
from smdebug import modes
from smdebug.exceptions import SMDebugError, SMDebugRuntimeError, SMDebugValueError
from smdebug.exporters import create_exporter
from smdebug.exporters.wandb import WandbExporter
from wandb.proto import wandb_internal_pb2

# The log's framing is that of LevelDB's log files: blocks with records that may go on in the next
# one, after a header of the file.
FILE_HEADER = 7
BLOCK = 32768
RECORD_HEADER = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4


def records(log: Path) -> Iterator[wandb_internal_pb2.Record]:
    data = log.read_bytes()
    assert data[:4] == b":W&B"
    at = FILE_HEADER
    payload = b""
    while at < len(data):
        left = BLOCK - at % BLOCK
        if left < RECORD_HEADER.size:
            at += left
            continue
        _, length, kind = RECORD_HEADER.unpack_from(data, at)
        at += RECORD_HEADER.size
        payload += data[at : at + length]
        at += length
        assert kind in (FULL, FIRST, MIDDLE, LAST)
        if kind in (FULL, LAST):
            yield wandb_internal_pb2.Record.FromString(payload)
            payload = b""


def log_of(exporter: WandbExporter) -> Path:
    """The complete log: the process that writes it goes on after the end of a run."""
    wandb.teardown()
    (log,) = Path(exporter.run_dir).glob("*.wandb")
    return log


def rows(exporter: WandbExporter) -> dict[int, dict[str, float]]:
    """The history by step."""
    found: dict[int, dict[str, float]] = {}
    for record in records(log_of(exporter)):
        if record.WhichOneof("record_type") != "history":
            continue
        row = {}
        for item in record.history.item:
            row[item.key or "/".join(item.nested_key)] = float(json.loads(item.value_json))
        found[int(row.pop("_step", record.history.step.num))] = row
    return found


def test_a_run_is_carried_over_with_its_steps_times_modes_and_workers(
    run, tmp_path, in_thread, capfd
):
    exporter = create_exporter(
        "wandb", project="demo", name="first", dir=tmp_path / "wandb", reductions="mean"
    )

    def carry():
        with exporter:
            smdebug.create_trial(run).export_to(exporter)

    in_thread(carry)
    assert capfd.readouterr() == ("", "")
    assert Path(exporter.run_dir).is_relative_to(tmp_path / "wandb")

    history = rows(exporter)
    assert sorted(history) == sorted(STEPS)
    for number, (mode, _) in STEPS.items():
        row = history[number]
        assert row["_timestamp"] == wall_secs(number, "worker_1")
        for worker in WORKERS:
            prefix = f"{mode.name.lower()}/" + ("" if worker == "worker_0" else "worker_1/")
            found = row[f"{prefix}scalar/loss"]
            assert found == loss(number, worker) or math.isnan(LOSSES[number])
            assert math.isnan(found) == math.isnan(LOSSES[number])
            assert row[f"{prefix}fc/weight/mean"] == weight(number).mean()
            assert row[f"{prefix}fc/bias/mean"] == number
        assert len([name for name in row if not name.startswith("_")]) == 6
    (about,) = (r.run for r in records(log_of(exporter)) if r.WhichOneof("record_type") == "run")
    assert (about.project, about.display_name) == ("demo", "first")


def test_thousands_of_numbers_per_step_arrive(tmp_path, step):
    with WandbExporter(dir=tmp_path) as exporter:
        for number in range(2):
            exporter.export(step(number, numbers={f"layer{i}/mean": i for i in range(3000)}))
    history = rows(exporter)
    assert len(history) == 2
    for row in history.values():
        numbers = {name: value for name, value in row.items() if name.startswith("train/")}
        assert numbers == {f"train/layer{i}/mean": i for i in range(3000)}


def test_a_run_of_the_program_goes_on_beside_ours(tmp_path, step):
    theirs = wandb.init(
        project="theirs", dir=tmp_path, mode="offline", settings=wandb.Settings(silent=True)
    )
    try:
        with WandbExporter(dir=tmp_path) as exporter:
            exporter.export(step(7, modes.GLOBAL, scalar__loss=1.0))
            assert wandb.run is theirs
        theirs.log({"x": 1})
        assert wandb.run is theirs
    finally:
        theirs.finish()
    assert rows(exporter)[7]["scalar/loss"] == 1.0


def test_a_step_that_goes_back_is_an_error_and_not_lost_silently(tmp_path, step):
    with WandbExporter(dir=tmp_path) as exporter:
        exporter.export(step(5, scalar__loss=1.0))
        exporter.export(step(5, worker="worker_1", scalar__loss=2.0))
        with pytest.raises(SMDebugValueError, match="4 came after 5"):
            exporter.export(step(4, scalar__loss=1.0))
    assert sorted(rows(exporter)) == [5]
    assert rows(exporter)[5]["train/worker_1/scalar/loss"] == 2.0


def test_nothing_is_made_without_a_step_and_nothing_taken_after_the_end(tmp_path, step):
    exporter = WandbExporter(dir=tmp_path / "none")
    exporter.close()
    exporter.close()
    assert exporter.run_dir is None
    assert not (tmp_path / "none").exists()
    with pytest.raises(SMDebugRuntimeError, match="is closed"):
        exporter.export(step(0, scalar__loss=1.0))


def test_wrong_settings_are_explained():
    with pytest.raises(SMDebugError, match=r"'ofline' is no mode.*Did you mean 'offline'\?"):
        create_exporter("wandb", mode="ofline")
    with pytest.raises(SMDebugError, match=r"Did you mean 'project'\?"):
        create_exporter("wandb", projct="x")
