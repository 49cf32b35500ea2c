"""The hook among processes: workers, forks, signals, and the end of the interpreter."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path

import numpy as np
import pytest
import recorded
from smdebug import Hook, SaveConfig

EVERY_STEP = SaveConfig(save_interval=1)

WORKER = """
import sys
import numpy as np
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1), include_workers=sys.argv[2])
print("ready", flush=True)
sys.stdin.readline()
for step in range(3):
    hook.step()
    hook.save_tensor("rank", np.full(2, int(hook.worker.split("_")[1])))
hook.close()
"""


def run_workers(out_dir: Path, include_workers: str) -> None:
    processes = [
        recorded.start(
            WORKER,
            out_dir,
            include_workers,
            RANK=str(rank),
            WORLD_SIZE="2",
            SMDEBUG_LOG_LEVEL="off",
        )
        for rank in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, err = process.communicate(timeout=recorded.TIMEOUT_SECS)
        assert process.returncode == 0, err


def test_two_workers_write_into_one_directory(out_dir: Path) -> None:
    run_workers(out_dir, "all")
    for rank in range(2):
        worker = f"worker_{rank}"
        assert recorded.steps(out_dir, worker) == [0, 1, 2]
        assert recorded.value(out_dir, "rank", 2, worker).tolist() == [rank, rank]
        path = out_dir / f"collections/000000000/{worker}_collections.json"
        assert json.loads(path.read_text())["_meta"] == {"num_workers": 2}
    assert (out_dir / "training_job_end.ts").exists()
    assert not list(out_dir.rglob("*.tmp"))


def test_one_worker_writes_unless_all_are_asked_for(out_dir: Path) -> None:
    run_workers(out_dir, "one")
    assert recorded.steps(out_dir, "worker_0") == [0, 1, 2]
    assert recorded.steps(out_dir, "worker_1") == []
    (path,) = out_dir.glob("collections/*/*")
    assert json.loads(path.read_text())["_meta"] == {"num_workers": 1}


def test_a_second_process_does_not_disturb_the_first(out_dir: Path) -> None:
    code = """
import sys
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
hook.step()
hook.save_tensor("mine", [1])
hook.end_step()
print("ready", flush=True)
sys.stdin.readline()
hook.close()
"""
    first = recorded.start(code, out_dir, SMDEBUG_LOG_LEVEL="off")
    assert first.stdout is not None
    assert first.stdout.readline() == "ready\n"
    second = """
import sys
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
hook.step()
hook.save_tensor("theirs", [2])
hook.close()
"""
    recorded.run(second, out_dir)
    assert not (out_dir / "training_job_end.ts").exists()
    _, err = first.communicate("go on\n", timeout=recorded.TIMEOUT_SECS)
    assert first.returncode == 0, err
    assert recorded.names(out_dir) == ["mine"]


AT_EXIT = """
import sys
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
hook.step()
hook.save_tensor("w", [1, 2])
hook.save_scalar("s", 3)
"""


@pytest.mark.parametrize(
    ("ending", "status"),
    [("", 0), ("sys.exit(3)", 3), ("raise KeyError('mine')", 1), ("del hook", 0)],
)
def test_the_end_of_the_interpreter_closes_the_hook(
    out_dir: Path, ending: str, status: int
) -> None:
    process = recorded.start(AT_EXIT + ending, out_dir)
    process.communicate(timeout=recorded.TIMEOUT_SECS)
    assert process.returncode == status
    assert recorded.names(out_dir) == ["scalar/s", "w"]
    assert (out_dir / "training_job_end.ts").exists()


WAITING = """
import signal, sys
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
if sys.argv[2] == "handler":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
with hook.step():
    hook.save_tensor("w", [1])
hook.step()
hook.save_tensor("w", [2])
print("ready", flush=True)
sys.stdin.readline()
"""


def terminate(out_dir: Path, handler: str) -> int:
    process = recorded.start(WAITING, out_dir, handler, SMDEBUG_LOG_LEVEL="off")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    recorded.wait_for(out_dir / "index/000000000/000000000000_worker_0.json")
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=recorded.TIMEOUT_SECS)
    return process.returncode


def test_a_handler_of_sigterm_that_exits_saves_everything(out_dir: Path) -> None:
    assert terminate(out_dir, "handler") == 7
    assert recorded.steps(out_dir) == [0, 1]
    assert (out_dir / "training_job_end.ts").exists()


def test_sigterm_without_a_handler_still_kills(out_dir: Path) -> None:
    assert terminate(out_dir, "none") == -signal.SIGTERM
    assert recorded.steps(out_dir) == [0]
    assert not (out_dir / "training_job_end.ts").exists()
    # The dead process's claim does not silence the next one.
    recorded.run(AT_EXIT, out_dir)
    assert recorded.names(out_dir) == ["scalar/s", "w"]


def test_a_forked_child_records_nothing(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", np.ones(2))
    child = os.fork()
    if child == 0:
        status = 1
        try:
            hook.save_tensor("child", np.ones(2))
            hook.save_scalar("child", 1)
            hook.step()
            hook.save_tensor("child", np.ones(2))
            hook.end_step()
            hook.close()
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    hook.step()
    hook.save_tensor("w", np.ones(2))
    hook.close()
    assert recorded.steps(out_dir) == [0, 1]
    assert recorded.names(out_dir, 0) == ["w"]
    assert recorded.names(out_dir, 1) == ["w"]


def train_in_child(hook: Hook) -> None:
    hook.step()
    hook.save_tensor("child", np.ones(2))


def test_a_multiprocessing_child_leaves_the_run_alone(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", np.ones(2))
    child = multiprocessing.get_context("fork").Process(target=train_in_child, args=(hook,))
    child.start()
    child.join(recorded.TIMEOUT_SECS)
    assert child.exitcode == 0
    assert not (out_dir / "training_job_end.ts").exists()
    hook.close()
    assert recorded.steps(out_dir) == [0]
    assert recorded.names(out_dir) == ["w"]


def test_the_at_exit_handler_of_a_forked_child_leaves_the_run_alone(out_dir: Path) -> None:
    code = """
import os, sys
from smdebug import Hook, SaveConfig
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1))
hook.step()
hook.save_tensor("w", [1])
if os.fork() == 0:
    sys.exit(0)
_, status = os.wait()
assert status == 0
assert not os.path.exists(os.path.join(sys.argv[1], "training_job_end.ts"))
hook.step()
hook.save_tensor("w", [2])
"""
    recorded.run(code, out_dir)
    assert recorded.steps(out_dir) == [0, 1]
    assert (out_dir / "training_job_end.ts").exists()


def test_in_a_managed_job_there_is_no_end_marker(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAINING_JOB_NAME", "job")
    hook = Hook(out_dir, save_config=EVERY_STEP)
    hook.step()
    hook.save_tensor("w", [1])
    hook.close()
    assert recorded.steps(out_dir) == [0]
    assert not (out_dir / "training_job_end.ts").exists()


def test_ranks_that_make_no_sense_are_refused(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "2")
    hook = Hook(out_dir)
    with pytest.raises(ValueError, match="RANK"):
        hook.step()
