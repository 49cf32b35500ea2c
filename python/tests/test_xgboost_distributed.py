"""The hook for XGBoost in several processes: connected by the collective, and by Dask."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recorded import PACKAGE
from smdebug.xgboost import Hook, SaveConfig, create_trial
from xgboost.tracker import RabitTracker
from xgboost_training import value

WORKER = """
import json, sys
import numpy as np
import xgboost
from smdebug.xgboost import Hook, SaveConfig

out_dir, workers, part = sys.argv[1], sys.argv[2], int(sys.argv[3])
arguments = json.loads(sys.argv[4])
x = np.random.RandomState(0).rand(40, 4)
y = (x[:, 0] > 0.5).astype(np.float32)
# Made before the processes are connected: the rank is not known yet.
hook = Hook(out_dir, save_all=True, save_config=SaveConfig(save_interval=1), include_workers=workers)
with xgboost.collective.CommunicatorContext(**arguments):
    data = xgboost.DMatrix(x[part::2], y[part::2])
    hook.train_data = hook.validation_data = data
    log = {}
    params = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
    model = xgboost.train(params, data, 3, evals=[(data, "train")], callbacks=[hook],
                          evals_result=log, verbose_eval=False)
    rank = xgboost.collective.get_rank()
    shap = model.predict(data, pred_contribs=True)
hook.close()
print(json.dumps([rank, log["train"]["logloss"], float(np.abs(shap).sum())]))
"""


def run_two(out_dir: Path, workers: str) -> list[tuple[int, list[float], float]]:
    """(rank, losses, sum of SHAP values) of two processes, by rank."""
    import json

    tracker = RabitTracker(n_workers=2, host_ip="127.0.0.1")
    tracker.start()
    arguments = json.dumps(tracker.worker_args())
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(out_dir), workers, str(part), arguments],
            env={"PYTHONPATH": str(PACKAGE), "SMDEBUG_STRICT": "1", "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for part in (0, 1)
    ]
    found = []
    for process in processes:
        out, err = process.communicate(timeout=100)
        assert process.returncode == 0, err
        found.append(tuple(json.loads(out.splitlines()[-1])))
    return sorted(found)


def test_workers_are_named_by_the_rank_that_the_collective_gives(out_dir: Path) -> None:
    first, second = run_two(out_dir, "all")
    assert first[1] == second[1]  # reduced over both
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1, 2]
    assert sorted(trial.workers()) == ["worker_0", "worker_1"]
    for rank, losses, shap in (first, second):
        worker = f"worker_{rank}"
        loss = trial.tensor("train-logloss")
        assert [loss.value(step, worker=worker)[0] for step in range(3)] == losses
        # SHAP values are those of the rows that the process has.
        saved = trial.tensor("full_shap/f0").value(2, worker=worker)
        assert np.abs(saved).sum() == pytest.approx(shap, rel=1e-6)


def test_the_chief_alone_records_without_holding_up_the_other(out_dir: Path) -> None:
    first, _ = run_two(out_dir, "one")
    trial = create_trial(str(out_dir))
    assert trial.workers() == ["worker_0"]
    losses = [value(trial, "train-logloss", step)[0] for step in range(3)]
    assert losses == first[1]
    assert value(trial, "full_shap/f0", 2).shape == (20, 5)
    assert (out_dir / "training_job_end.ts").exists()


def test_dask_workers_record_with_copies_of_the_hook(out_dir: Path) -> None:
    import dask.array
    import xgboost.dask
    from distributed import Client, LocalCluster

    x = np.random.RandomState(0).rand(40, 4)
    y = (x[:, 0] > 0.5).astype(np.float32)
    hook = Hook(str(out_dir), save_config=SaveConfig(save_interval=1), include_workers="all")
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    )
    with cluster, Client(cluster) as client:
        data = xgboost.dask.DaskDMatrix(
            client, dask.array.from_array(x, (20, 4)), dask.array.from_array(y, 20)
        )
        params = {"objective": "binary:logistic", "max_depth": 2, "nthread": 1}
        result: Any = xgboost.dask.train(
            client, params, data, 3, evals=[(data, "train")], callbacks=[hook]
        )
    losses = result["history"]["train"]["logloss"]
    trial = create_trial(str(out_dir))
    assert sorted(trial.workers()) == ["worker_0", "worker_1"]
    for worker in trial.workers():
        loss = trial.tensor("train-logloss")
        found = [loss.value(step, worker=worker)[0] for step in range(3)]
        assert found == pytest.approx(losses, rel=1e-12)
    assert (out_dir / "training_job_end.ts").exists()
