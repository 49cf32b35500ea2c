"""The hook for MXNet in the processes of a distributed store, on one machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from smdebug.mxnet import create_trial

HERE = Path(__file__).resolve().parent
TIMEOUT_SECS = 120
WORKERS = ("worker_0", "worker_1")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run_job(how: str, where: Path) -> list[dict[str, np.ndarray]]:
    """A scheduler, a server and two workers; what the workers have seen, by rank."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)]),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "SMDEBUG_STRICT": "1",
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "DMLC_PS_ROOT_PORT": str(free_port()),
        "DMLC_NUM_SERVER": "1",
        "DMLC_NUM_WORKER": "2",
    }
    command = [sys.executable, str(HERE / "mxnet_worker.py"), how, str(where)]
    roles = ["scheduler", "server", "worker", "worker"]
    processes = [
        subprocess.Popen(
            command,
            env={**environment, "DMLC_ROLE": role, "TEST_WORKER": str(i - 2)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for i, role in enumerate(roles)
    ]
    try:
        outputs = [process.communicate(timeout=TIMEOUT_SECS)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    for role, process, output in zip(roles, processes, outputs, strict=True):
        assert process.returncode == 0, f"{role}: {output}"
    seen = [dict(np.load(where / f"seen_{how}_{number}.npz")) for number in (0, 1)]
    return sorted(seen, key=lambda found: int(found["rank"]))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, np.ndarray]]:
    """What workers see that nobody records."""
    return run_job("bare", tmp_path_factory.mktemp("bare"))


@pytest.mark.parametrize("how", ["object", "name"])
def test_workers_are_named_by_rank_and_record_their_own_gradients(
    tmp_path: Path, bare: list[dict[str, np.ndarray]], how: str
) -> None:
    seen = run_job(how, tmp_path)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.workers() == list(WORKERS)
    assert trial.steps() == [0, 1, 2]
    assert set(trial.tensor_names()) >= {"dense0_weight", "gradient/dense0_weight"}
    for rank, worker in enumerate(WORKERS):
        for at in range(3):
            for saved, own in (("gradient/dense0_weight", "gradient"), ("dense0_weight", "weight")):
                found = trial.tensor(saved).value(at, worker=worker)
                np.testing.assert_array_equal(found, seen[rank][f"{own}_{at}"])
    for at in range(3):
        weights = [trial.tensor("dense0_weight").value(at, worker=w) for w in WORKERS]
        gradients = [trial.tensor("gradient/dense0_weight").value(at, worker=w) for w in WORKERS]
        np.testing.assert_array_equal(*weights)
        assert not np.array_equal(*gradients)
        assert not np.array_equal(gradients[0], weights[0])
    names = [path.name for path in (tmp_path / "run").rglob("*") if path.is_file()]
    events = [name for name in names if name.endswith(".tfevents")]
    assert len(events) == 6 and all(any(w in name for w in WORKERS) for name in events)
    for at in range(3):
        assert seen[0][f"weight_{at}"].tobytes() == bare[0][f"weight_{at}"].tobytes()
