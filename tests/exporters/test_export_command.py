"""The command `smdebug export RUN --to NAME`, run as people run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from mlflow import MlflowClient

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
TIMEOUT_SECS = 120


def export(*words: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [PROGRAM, "export", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )


def test_a_run_goes_to_mlflow(run, store):
    experiment = f"command {run.parent.name}"
    done = export(
        *(run, "--to", "mlflow", "--set", f"tracking_uri={store}", "--set", "run_name=a=b"),
        *(
            "--set",
            f"experiment={experiment}",
            "--reduction",
            "mean",
            "--regex",
            "loss|weight",
            "--mode",
            "train",
        ),
        *("--worker", "worker_1"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "carried over to mlflow: 3 steps, 2 names, 6 numbers\n"
    client = MlflowClient(tracking_uri=store)
    (found,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    assert found.info.run_name == "a=b"
    assert found.data.metrics == {
        "train/worker_1/scalar/loss": 10.5,
        "train/worker_1/fc/weight/mean": 1.75,
    }


def test_what_was_carried_over_is_there_for_programs(run, tmp_path):
    done = export("--json", run, "--to", "wandb", "--set", f"dir={tmp_path}/w")
    assert (done.returncode, done.stderr) == (0, "")
    about = json.loads(done.stdout)
    assert about == {"run": str(run), "to": "wandb", "steps": 4, "names": 1, "numbers": 8}
    assert len(list((tmp_path / "w").rglob("*.wandb"))) == 1


@pytest.mark.parametrize("run", ["packed"], indirect=True)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--to", "wandb", "--set", "projct=x"), "Did you mean 'project'?"),
        (("--to", "wandb", "--set", "mode=ofline"), "Did you mean 'offline'?"),
        (("--to", "mlflow", "--set", "reductions=mean"), "Give --reduction instead"),
        (("--to", "mlflow", "--set", "tracking_uri=strange://x"), "The exporter 'mlflow' failed"),
        (("--to", "opentelemetry"), "has set no global MeterProvider"),
        (("--to", "opentelemetry", "--set", "meter_provider=x"), "must be a MeterProvider"),
    ],
)
def test_what_is_wrong_gets_one_message(words, message, run):
    done = export(run, *words)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("smdebug: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("run", ["packed"], indirect=True)
def test_a_table_is_still_written_wherever_the_file_is_named(run, tmp_path):
    for words in (
        (run, tmp_path / "a.csv", "--regex", "loss"),
        (run, "--regex", "loss", tmp_path / "b.csv"),
        ("--regex", "loss", run, tmp_path / "c.csv"),
    ):
        done = export(*words)
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "c.csv").read_bytes()
