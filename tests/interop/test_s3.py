"""Runs in S3: the released package reads ours, and our storage reads its."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import original_view
import pytest
import s3_server
from smdebug import Hook, ReductionConfig, SaveConfig, _core, modes

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

EVERY_STEP = SaveConfig(save_interval=1)
WRITE = """
import sys
import numpy as np
from smdebug.core.writer import FileWriter
from smdebug.core.modes import ModeKeys
from smdebug.core.access_layer import training_has_ended
for step in range(3):
    writer = FileWriter(trial_dir=sys.argv[1], step=step, worker="worker_0")
    writer.write_tensor(tdata=np.arange(4, dtype=np.float32) + step, tname="w",
                        mode=ModeKeys.TRAIN, mode_step=step)
    writer.close()
training_has_ended(sys.argv[1])
"""


@pytest.fixture(scope="module")
def server() -> Iterator[s3_server.Server]:
    with s3_server.running() as running:
        yield running


@pytest.fixture
def s3(server: s3_server.Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A bucket; the environment of both implementations leads to it."""
    for name, value in s3_server.environment(server.url, tmp_path).items():
        if name != "PYTHONPATH":
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    return server.make_bucket(f"bucket-{tmp_path.name.replace('_', '-')}"[:60])


def read(uri: str) -> dict:
    document = original_view.read_run(uri, timeout_secs=120)
    assert "error" not in document, document
    return document


def test_the_released_package_reads_our_run_value_by_value(s3: str) -> None:
    uri = f"s3://{s3}/runs/ours"
    rng = np.random.default_rng(5)
    given = {
        (mode.name, step): rng.standard_normal((3, 4)).astype(np.float32)
        for mode in (modes.TRAIN, modes.EVAL)
        for step in range(3)
    }
    reductions = ReductionConfig(["min", "mean"], save_raw_tensor=True)
    with Hook(uri, save_config=EVERY_STEP, reduction_config=reductions) as hook:
        for (mode, _), array in given.items():
            hook.set_mode(modes[mode])
            hook.step()
            hook.save_tensor("ünï w+=", array)
            hook.save_scalar("loss", float(array[0, 0]))
    document = read(uri)
    assert document["ended"]
    seen = original_view.entries(document)
    for (mode, step), array in given.items():
        entry = seen[("ünï w+=", mode, step, "worker_0")]
        assert entry["value"] == {
            "dtype": "float32",
            "shape": [3, 4],
            "hex": array.tobytes().hex(),
        }
        least = next(r for r in entry["reductions"] if r["name"] == "min")
        assert bytes.fromhex(least["hex"]) == array.min().tobytes()
        loss = seen[("scalar/loss", mode, step, "worker_0")]["value"]
        assert np.frombuffer(bytes.fromhex(loss["hex"]))[0] == float(array[0, 0])


def test_our_storage_reads_a_run_of_the_released_package(s3: str) -> None:
    uri = f"s3://{s3}/runs//theirs"
    subprocess.run(
        [str(original_view.PYTHON), "-c", WRITE, uri], capture_output=True, timeout=120, check=True
    )
    storage = _core.Storage.open(uri)
    files = [path for path, _ in storage.list()]
    assert files[-1] == "training_job_end.ts"
    for step in range(3):
        index = json.loads(storage.read(f"index/000000000/{step:012}_worker_0.json"))
        (place,) = index["tensor_payload"]
        event = index["meta"]["event_file_name"]
        assert event in files
        length = place["length"]
        record = storage.read_range(event, place["start_idx"], length)
        assert len(record) == length
        wanted = np.arange(4, dtype=np.float32) + step
        assert wanted.tobytes() in record
    assert storage.requests == {"LIST": 1, "GET": 6}
