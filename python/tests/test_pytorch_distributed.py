"""The hook for PyTorch in several processes: data parallel, sharded, dying and restarted ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from smdebug import shards
from smdebug.pytorch import Hook, create_trial, modes
from torch_training import EVERY_STEP, SMALL_NAMES, assert_value, saved, train_small

HERE = Path(__file__).resolve().parent
TIMEOUT_SECS = 240


def run_ranks(case: str, size: int, where: Path, dying: int | None = None) -> list[Any]:
    """Runs a case of torch_ranks.py; what each rank has seen."""
    path = os.pathsep.join([str(HERE.parent), str(HERE)])
    processes = [
        subprocess.Popen(
            [sys.executable, str(HERE / "torch_ranks.py"), case, str(where)],
            env={
                **os.environ,
                "PYTHONPATH": path,
                "SMDEBUG_STRICT": "1",
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]
    outputs = [process.communicate(timeout=TIMEOUT_SECS)[0] for process in processes]
    for rank, (process, output) in enumerate(zip(processes, outputs, strict=True)):
        expected = -signal.SIGKILL if rank == dying else 0
        assert process.returncode == expected, f"rank {rank}: {output}"
    if dying is not None:
        return []
    return [torch.load(where / f"seen_{rank}.pt") for rank in range(size)]


def collection_files(run: Path) -> list[str]:
    return sorted(p.name for p in run.glob("collections/*/*"))


LAYER = ["fc.bias", "fc.weight"]


@pytest.mark.parametrize("size", [2, 4])
def test_every_worker_records_its_own_gradients(tmp_path: Path, size: int) -> None:
    seen = run_ranks("wrapper", size, tmp_path)
    trial = create_trial(str(tmp_path / "run"))
    workers = [f"worker_{rank}" for rank in range(size)]
    assert trial.workers() == workers
    assert collection_files(tmp_path / "run") == [f"{w}_collections.json" for w in workers]
    root = "DistributedDataParallel"
    expected = [f"{root}_module.{layer}" for layer in LAYER]
    expected += [f"gradient/{name}" for name in expected]
    expected += [f"{m}_{k}_0" for m in (root, "module", "module.fc") for k in ("input", "output")]
    expected += ["MSELoss_input_0", "MSELoss_input_1", "MSELoss_output_0"]
    assert trial.tensor_names() == sorted(expected)
    assert trial.steps() == [0, 1, 2]
    for at in range(3):
        local = []
        for rank, worker in enumerate(workers):
            name = f"{root}_module.fc.weight"
            assert_value(saved(trial, name, at, worker=worker), seen[rank][at][0]["fc.weight"])
            local.append(saved(trial, f"gradient/{name}", at, worker=worker))
        reduced = seen[0][at][1]["fc.weight"].numpy()
        assert not np.allclose(local[0], local[1])
        np.testing.assert_allclose(np.mean(local, axis=0), reduced, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("case", ["raw_one", "early"])
def test_only_the_chief_records_unless_asked(tmp_path: Path, case: str) -> None:
    run_ranks(case, 2, tmp_path)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.workers() == ["worker_0"]
    assert collection_files(tmp_path / "run") == ["worker_0_collections.json"]
    assert trial.steps() == [0, 1, 2]
    assert {"Net_fc.weight", "gradient/Net_fc.weight", "fc_input_0"} <= set(trial.tensor_names())
    events = [p.name for p in (tmp_path / "run/events").rglob("*.tfevents")]
    assert len(events) == 3 and all("worker_0" in name for name in events)


def test_names_can_be_those_of_the_model_in_the_wrapper(tmp_path: Path) -> None:
    run_ranks("canonical", 2, tmp_path)
    names = create_trial(str(tmp_path / "run")).tensor_names(regex="fc|Net")
    expected = [*(f"Net_{layer}" for layer in LAYER), *(f"gradient/Net_{layer}" for layer in LAYER)]
    expected += [f"{m}_{k}_0" for m in ("Net", "fc") for k in ("input", "output")]
    assert names == sorted(expected)


def test_the_optimizer_sees_reduced_gradients(tmp_path: Path) -> None:
    seen = run_ranks("optimizer", 2, tmp_path)
    trial = create_trial(str(tmp_path / "run"))
    for at in range(3):
        for rank, worker in enumerate(("worker_0", "worker_1")):
            value = saved(trial, "gradient/Net_fc.weight", at, worker=worker)
            assert_value(value, seen[rank][at][1]["fc.weight"])


PARAMETERS = ["inner.0.weight", "inner.0.bias", "out.weight", "out.bias"]


@pytest.mark.parametrize(
    ("case", "prefix"), [("sharded", "FSDPDeep_"), ("sharded_canonical", "Deep_")]
)
def test_parts_of_a_sharded_model_give_the_whole(tmp_path: Path, case: str, prefix: str) -> None:
    seen = run_ranks(case, 2, tmp_path)[0]
    trial = create_trial(str(tmp_path / "run"))
    names = [f"{prefix}{name}" for name in PARAMETERS]
    assert trial.tensor_names(regex="Deep") == sorted(names + [f"gradient/{n}" for n in names])
    assert trial.steps(mode=modes.TRAIN) == trial.steps(mode=modes.EVAL) == [0, 1, 2]
    for at, (before, gradients) in enumerate(seen):
        for path in PARAMETERS:
            for name, whole in (
                (f"{prefix}{path}", before),
                (f"gradient/{prefix}{path}", gradients),
            ):
                check_whole(trial, name, at, whole[path].double().numpy(), raw=case == "sharded")


def check_whole(trial: Any, name: str, at: int, whole: np.ndarray, raw: bool) -> None:
    """Parts and their numbers against the tensor of an unsharded training."""
    parts = shards.parts(trial, name, at, modes.TRAIN)
    rows = whole.shape[0]
    first = -(-rows // 2)
    assert [part.shape for part in parts] == [whole.shape] * 2
    assert [part.offset[0] for part in parts] == [0, first]
    assert [part.local_shape[0] for part in parts] == [first, rows - first]
    assert all("dim=0" in part.placements[0] or "S(0)" in part.placements[0] for part in parts)
    if raw:
        value = shards.value(trial, name, at, modes.TRAIN)
        np.testing.assert_allclose(value, whole, rtol=1e-5, atol=1e-6)
    merged = shards.reduction_values(trial, name, at, modes.TRAIN)
    for absolute, x in ((False, whole), (True, np.abs(whole))):
        expected = {
            "min": x.min(),
            "max": x.max(),
            "mean": x.mean(),
            "sum": x.sum(),
            "std": x.std(),
        }
        for reduction, number in expected.items():
            found = merged[reduction, absolute]
            assert found == pytest.approx(number, rel=1e-4, abs=1e-6), (name, reduction, absolute)
    assert merged["l1", False] == pytest.approx(np.abs(whole).sum(), rel=1e-4)
    assert merged["l2", False] == pytest.approx(np.sqrt((whole**2).sum()), rel=1e-4)


def test_a_run_with_a_dead_worker_can_be_read(tmp_path: Path) -> None:
    run_ranks("dying", 3, tmp_path, dying=2)
    trial = create_trial(str(tmp_path / "run"))
    assert trial.tensor("Net_fc.weight").workers(1) == ["worker_0", "worker_1", "worker_2"]
    last = trial.tensor("Net_fc.weight").workers(3)
    assert last == ["worker_0", "worker_1"]
    assert saved(trial, "fc_output_0", 3, worker="worker_1").shape == (1, 2)


def test_a_restarted_job_leaves_each_attempt_readable(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "--max-restarts", "1", "--monitor-interval", "0.1"),
            *(str(HERE / "torch_ranks.py"), "elastic", str(tmp_path)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parent), str(HERE)])},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
    )
    assert done.returncode == 0, done.stderr
    for place, attempt, steps in (("run", 0, 2), ("run/restart_1", 1, 3)):
        trial = create_trial(str(tmp_path / place))
        assert trial.workers() == ["worker_0", "worker_1"]
        assert trial.steps() == list(range(steps))
        assert (saved(trial, "Net_fc.weight", steps - 1, worker="worker_1") == attempt).all()


def test_a_restarted_job_does_not_overwrite_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def attempt() -> Hook:
        hook = Hook(tmp_path / "run", save_all=True, save_config=EVERY_STEP)
        train_small(hook, count=2)
        return hook

    killed = attempt()  # never closed
    killed.end_step()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    second = attempt()
    assert second.out_dir == str(tmp_path / "run/restart_1")
    second.close()
    killed.close()
    for place in ("run", "run/restart_1"):
        trial = create_trial(str(tmp_path / place))
        assert (trial.steps(), trial.tensor_names()) == ([0, 1], SMALL_NAMES)


def test_all_ranks_save_the_same_steps_within_a_budget(tmp_path: Path) -> None:
    bills = run_ranks("budget", 2, tmp_path)
    trial = create_trial(str(tmp_path / "run"))
    assert [bill["stride"] for bill in bills] == [16, 16]
    assert trial.steps() == trial.steps(show_incomplete_steps=True)
    assert {96, 112} <= set(trial.steps()) and len(trial.steps()) < 60
