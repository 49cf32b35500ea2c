"""Hooks with TensorBoard on: the real TensorBoard shows the job while it runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boards
import numpy as np
import pytest
import s3_server
from smdebug import Hook, ReductionConfig, SaveConfig, _core, modes
from smdebug.core.writer import FileWriter
from smdebug.credentials import botocore_credentials


def record(out: Path, steps: int = 3, **options: Any) -> Hook:
    """A few steps of a job that is not over yet."""
    random = np.random.default_rng(1)
    hook = Hook(
        out_dir=str(out),
        save_config=SaveConfig(save_interval=1),
        include_collections=["weights", "losses", "gradients"],
        **options,
    )
    hook.set_mode(modes.TRAIN)
    for step in range(steps):
        hook.begin_step()
        hook.save("fc/weight", random.normal(size=(50, 40)).astype(np.float32))
        hook.save("gradient/fc/weight", np.zeros((50, 40), dtype=np.float32))
        hook.save("CrossEntropyLoss_output_0", np.array([1.0 / (step + 1)], dtype=np.float32))
        hook.save_scalar("lr", 0.5)
    return hook


def test_a_running_job_is_shown(tmp_path):
    hook = record(tmp_path / "run", export_tensorboard=True)
    hook.begin_step()  # ends the step before
    found = boards.wait_for(
        lambda: boards.read(tmp_path / "run" / "tensorboard"),
        lambda found: len(found.get("TRAIN", {}).get("scalars", {}).get("scalar/lr", [])) == 3,
    )
    board = found["TRAIN"]
    assert sorted(board["scalars"]) == ["CrossEntropyLoss_output_0", "scalar/lr"]
    assert [value for _, _, value in board["scalars"]["CrossEntropyLoss_output_0"]] == [
        np.float32(1 / n) for n in (1, 2, 3)
    ]
    assert sorted(board["histograms"]) == ["gradients/gradient/fc/weight", "weights/fc/weight"]
    for event in board["histograms"]["gradients/gradient/fc/weight"]:
        assert event["counts"] == [0, 2000]
        assert event["limits"] == [0, 1e-12]
    for event in board["histograms"]["weights/fc/weight"]:
        assert sum(event["counts"]) == event["num"] == 2000
    ((_, text),) = board["texts"]["collections"]
    assert json.loads(text.strip("`").removeprefix("json"))["collections"]
    hook.close()


def test_one_file_and_one_directory_per_mode(tmp_path):
    hook = Hook(out_dir=str(tmp_path / "run"), tensorboard_dir=str(tmp_path / "board"))
    for step in range(20):
        hook.set_mode(modes.TRAIN if step % 5 else modes.EVAL)
        hook.begin_step()
        hook.save_scalar("loss", step)
    hook.close()
    files = sorted(path.parent.name for path in (tmp_path / "board").rglob("*.tfevents"))
    assert files == ["EVAL", "TRAIN"]
    found = boards.read(tmp_path / "board")
    assert [step for step, _, _ in found["EVAL"]["scalars"]["scalar/loss"]] == [0, 5, 10, 15]


def test_collections_decide_about_histograms_and_odd_tensors_have_none(tmp_path):
    quiet = ReductionConfig(save_raw_tensor=False, save_shape=False, reductions=["max"])
    hook = Hook(
        out_dir=str(tmp_path / "run"),
        tensorboard_dir=str(tmp_path / "board"),
        save_config=SaveConfig(save_interval=1),
        include_collections=["weights", "biases"],
        reduction_config=quiet,
    )
    hook.get_collection("biases").save_histogram = False
    hook.set_mode(modes.TRAIN)
    hook.begin_step()
    hook.save("a.weight", np.ones(3))
    hook.save("a.bias", np.ones(3))
    hook.save("b.weight", np.array([np.nan, np.inf]))
    hook.save("c.weight", np.array([True, False]))
    hook.close()
    found = boards.read(tmp_path / "board")["TRAIN"]
    assert set(found["histograms"]) == {"weights/a.weight"}


def test_without_tensorboard_nothing_is_written(tmp_path):
    record(tmp_path / "run").close()
    assert not list((tmp_path / "run").rglob("tensorboard"))


@pytest.mark.parametrize(("rank", "folder"), [(0, "TRAIN"), (1, "worker_1/TRAIN")])
def test_workers_do_not_mix_their_curves(tmp_path, monkeypatch, rank, folder):
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", "2")
    board = tmp_path / "board"
    record(tmp_path / "run", tensorboard_dir=str(board), include_workers="all").close()
    assert list(boards.read(board)) == [folder]


def test_object_stores_get_whole_files(tmp_path, monkeypatch):
    with s3_server.running() as server:
        for name, value in s3_server.environment(server.url, tmp_path).items():
            monkeypatch.setenv(name, value)
        bucket = server.make_bucket("boards")
        record(tmp_path / "run", tensorboard_dir=f"s3://{bucket}/board").close()
        storage = _core.Storage.open(f"s3://{bucket}/board", credentials=botocore_credentials)
        for path, *_ in storage.list():
            file = tmp_path / "board" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(storage.read(path))
    found = boards.read(tmp_path / "board")["TRAIN"]
    assert len(found["scalars"]["scalar/lr"]) == 3
    assert len(found["histograms"]["weights/fc/weight"]) == 3


def test_a_directory_that_cannot_be_used_does_not_harm_the_run(tmp_path, caplog):
    (tmp_path / "board").write_text("a file")
    hook = record(tmp_path / "run", tensorboard_dir=str(tmp_path / "board"))
    hook.close()
    assert len(list((tmp_path / "run" / "index").rglob("*.json"))) == 3
    assert "the run itself is not harmed" in caplog.text


def test_the_file_writer_of_the_original_works(tmp_path):
    with FileWriter(str(tmp_path), "1_host", step=2, wtype="tensorboard", mode=modes.EVAL) as file:
        file.write_scalar_summary("a:0", 0.5, global_step=7, timestamp=1.5e9)
        file.write_histogram_summary(np.arange(10.0), "w", global_step=7)
        file.write_histogram_summary(np.array([True]), "flags", global_step=7)
        path = file.name()
    assert Path(path).is_file()
    board = boards.read(tmp_path)["EVAL"]
    assert board["scalars"] == {"a_0": [[7, 1.5e9, 0.5]]}
    assert board["histograms"]["w"][0]["num"] == 10
    assert list(board["histograms"]) == ["w"]


def test_a_managed_job_writes_where_its_configuration_file_says(tmp_path, monkeypatch):
    config = tmp_path / "tensorboardoutputconfig.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "local")}))
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    monkeypatch.setenv("SAGEMAKER_METRICS_DIRECTORY", str(tmp_path / "metrics"))
    monkeypatch.setenv("TENSORBOARD_CONFIG_FILE_PATH", str(config))
    record(tmp_path / "run", tensorboard_dir=str(tmp_path / "argument")).close()
    assert len(boards.read(tmp_path / "local")["TRAIN"]["scalars"]["scalar/lr"]) == 3
    assert not (tmp_path / "argument").exists()
    assert not (tmp_path / "run" / "training_job_end.ts").exists()
    # Without the file, what was asked for counts inside a managed job, too.
    monkeypatch.delenv("TENSORBOARD_CONFIG_FILE_PATH")
    record(tmp_path / "other", tensorboard_dir=str(tmp_path / "argument")).close()
    assert len(boards.read(tmp_path / "argument")["TRAIN"]["scalars"]["scalar/lr"]) == 3
