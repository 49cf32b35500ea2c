"""Recording to S3: everything arrives, and the training does not notice when it cannot."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import s3_server as support
import smdebug
from conftest import Messages
from s3_runs import spooled, until
from smdebug import _core

EVERY_STEP = smdebug.SaveConfig(save_interval=1)
PROGRAM = Path(__file__).resolve().parents[2] / "build/dev/smdebug"

RECORD = """
import os, sys
import numpy as np
import smdebug
hook = smdebug.Hook(sys.argv[1], save_config=smdebug.SaveConfig(save_interval=1))
for step in range(int(sys.argv[2])):
    hook.step()
    hook.save_tensor("w", np.full(8, step))
hook.end_step()
"""


def record(hook: smdebug.Hook, steps: int) -> None:
    for step in range(steps):
        hook.step()
        hook.save_tensor("w", np.full(8, step))
    hook.end_step()


def run_script(script: str, *arguments: str, timeout: float = 90) -> str:
    """What it printed and logged; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def steps_in(uri: str) -> list[int]:
    """Steps with an index; every event file that an index names must be there."""
    storage = _core.Storage.open(uri)
    files = [path for path, _ in storage.list()]
    indexes = [path for path in files if path.startswith("index/")]
    for path in indexes:
        meta = json.loads(storage.read(path))["meta"]
        assert meta["event_file_name"] in files
    return [int(re.search(r"(\d+)_worker_0\.json$", path)[1]) for path in indexes]


def has_ended(uri: str) -> bool:
    return "training_job_end.ts" in [path for path, _ in _core.Storage.open(uri).list()]


@pytest.fixture
def dead_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """A port where a server may appear later; the environment leads to it."""
    port = support.free_port()
    url = f"http://127.0.0.1:{port}"
    for name, value in support.environment(url, tmp_path).items():
        monkeypatch.setenv(name, value)
    return port


def test_a_run_arrives_and_nothing_stays_behind(s3: str, tmp_path: Path) -> None:
    uri = f"s3://{s3}/runs/first"
    with smdebug.Hook(uri, save_config=EVERY_STEP) as hook:
        assert hook.out_dir == uri
        record(hook, 5)
    assert steps_in(uri) == [0, 1, 2, 3, 4]
    assert has_ended(uri)
    assert spooled(tmp_path) == []
    names = [path for path, _ in _core.Storage.open(uri).list()]
    assert "collections/000000000/worker_0_collections.json" in names
    assert not [name for name in names if "claim" in name]
    with pytest.raises(smdebug.exceptions.SMDebugRuntimeError, match="finished job"):
        smdebug.Hook(uri)


def test_pending_data_and_the_marker_arrive_at_interpreter_exit(s3: str) -> None:
    run_script(RECORD, f"s3://{s3}/run", "20")
    assert steps_in(f"s3://{s3}/run") == list(range(20))
    assert has_ended(f"s3://{s3}/run")


def test_a_job_that_is_resumed_goes_on_in_the_same_place(s3: str) -> None:
    uri = f"s3://{s3}/run"
    managed = "import os\nos.environ['TRAINING_JOB_NAME'] = 'x'\n"  # writes no end marker
    run_script(managed + RECORD, uri, "3")
    assert not has_ended(uri)
    with smdebug.Hook(uri, save_config=EVERY_STEP) as hook:
        record(hook, 5)
    assert steps_in(uri) == [0, 1, 2, 3, 4]
    assert has_ended(uri)


def test_training_goes_on_while_no_server_answers(
    dead_s3: int, tmp_path: Path, messages: Messages
) -> None:
    uri = "s3://later/run"
    hook = smdebug.Hook(uri, save_config=EVERY_STEP)
    assert len(messages.containing("It is not known whether s3://later/run holds")) == 1
    record(hook, 50)
    hook._core.write_collections()
    until(lambda: len(spooled(tmp_path)) > 100)  # two for each step

    def told() -> bool:
        record_one = hook.begin_step()
        with record_one:
            hook.save_scalar("loss", 1.0)
        return bool(messages.containing("does not work at the moment; files wait in"))

    until(told)
    last = int(hook.step)
    with support.running(dead_s3) as server:
        server.make_bucket("later")
        hook.close()
        assert steps_in(uri) == list(range(last + 1))
        assert has_ended(uri)
        assert spooled(tmp_path) == []
    assert messages.containing("could not be sent") == []


def test_training_goes_on_while_the_server_hangs(dead_s3: int, tmp_path: Path) -> None:
    with support.running(dead_s3) as server:
        server.make_bucket("bucket")
        hook = smdebug.Hook("s3://bucket/run", save_config=EVERY_STEP)
        record(hook, 3)
        until(lambda: len(steps_in("s3://bucket/run")) == 3)
        server.pause()
        hook.begin_step()
        hook.save_tensor("w", np.zeros(8))
        hook.end_step()
        record(hook, 20)
        until(lambda: len(spooled(tmp_path)) > 40)
        server.resume()
        hook.close()
        assert steps_in("s3://bucket/run") == list(range(24))
        assert has_ended("s3://bucket/run")


def test_the_next_hook_sends_what_a_killed_process_left(
    dead_s3: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = "s3://bucket/run"
    script = RECORD + "print('recorded', flush=True)\nsys.stdin.readline()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", script, uri, "4"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while "recorded" not in process.stdout.readline():
        pass
    until(lambda: len([p for p in spooled(tmp_path) if p.match("files/index/*/*.json")]) == 4)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    left = spooled(tmp_path)
    assert len(left) >= 10  # steps, collections, destination
    (destination,) = [path for path in left if path.name == "destination"]
    assert destination.read_text() == uri + "\n"
    with support.running(dead_s3) as server:
        server.make_bucket("bucket")
        hook = smdebug.Hook(uri, save_config=EVERY_STEP)
        hook.begin_step(10)
        hook.save_scalar("loss", 1.0)
        hook.close()
        assert steps_in(uri) == [0, 1, 2, 3, 10]
        assert spooled(tmp_path) == []


def test_closing_says_what_is_left_and_sync_sends_it(
    dead_s3: int, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_SPOOL_DRAIN_SECS", "0.2")
    uri = "s3://bucket/run"
    hook = smdebug.Hook(uri, save_config=EVERY_STEP)
    record(hook, 3)
    hook.close()
    (message,) = messages.containing("could not be sent")
    files, count, folder, target = re.search(
        r"(\d+) files with (\d+) bytes .* 'smdebug sync (\S+) (\S+)'", message
    ).groups()
    assert target == uri
    with support.running(dead_s3) as server:
        server.make_bucket("bucket")
        command = [str(PROGRAM), "sync", folder, target, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)
        assert (report["files_sent"], report["bytes_sent"]) == (int(files), int(count))
        assert steps_in(uri) == [0, 1, 2]
        assert has_ended(uri)


def test_a_full_spool_costs_steps_and_nothing_else(
    dead_s3: int, messages: Messages, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SMDEBUG_SPOOL_MAX_BYTES", "20000")
    hook = smdebug.Hook("s3://bucket/run", save_config=EVERY_STEP)
    for step in range(10):
        hook.step()
        hook.save_tensor("w", np.full(1000, step, dtype=np.float64))
    hook.end_step()
    assert hook._core.wait_until_written(30_000)  # before the server makes room
    with support.running(dead_s3) as server:
        server.make_bucket("bucket")
        hook.close()
        assert steps_in("s3://bucket/run") == [0, 1]
        assert has_ended("s3://bucket/run")
    # Once when it happens, and once as the first error of the hook's life.
    assert len(messages.containing("The spool is full")) <= 2
    assert messages.containing("8 steps could not be saved")


def test_a_forked_child_sends_nothing(s3: str) -> None:
    script = (
        RECORD
        + """
child = os.fork()
if child == 0:
    hook.step()
    hook.save_tensor("child", np.zeros(3))
    hook.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
hook.step()
hook.save_tensor("w", np.zeros(3))
"""
    )
    run_script(script, f"s3://{s3}/run", "3")
    assert steps_in(f"s3://{s3}/run") == [0, 1, 2, 3]
    storage = _core.Storage.open(f"s3://{s3}/run")
    assert not [p for p, _ in storage.list("events") if b"child" in storage.read(p)]


def test_two_workers_end_the_job_together(s3: str) -> None:
    script = RECORD.replace("save_config=", "include_workers='all', save_config=")
    environment = {**os.environ, "WORLD_SIZE": "2", "SMDEBUG_LOG_LEVEL": "off"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, f"s3://{s3}/run", "3"],
            env={**environment, "RANK": str(rank)},
        )
        for rank in range(2)
    ]
    for process in processes:
        assert process.wait(timeout=90) == 0
    files = [path for path, _ in _core.Storage.open(f"s3://{s3}/run").list()]
    assert len([path for path in files if path.startswith("index/")]) == 6
    assert "training_job_end.ts" in files


def test_a_missing_bucket_stops_the_hook_at_once(s3: str, tmp_path: Path) -> None:
    with pytest.raises(smdebug.exceptions.SMDebugValueError, match="no bucket 'nowhere-at-all'"):
        smdebug.Hook("s3://nowhere-at-all/run")
    assert spooled(tmp_path) == []


def test_a_place_that_is_misspelled_is_explained() -> None:
    for place in ("s3:/bucket/run", "s3://b/run"):
        with pytest.raises(smdebug.exceptions.SMDebugValueError, match="bucket"):
            smdebug.Hook(place)


def test_a_dry_run_needs_no_spool(s3: str, tmp_path: Path) -> None:
    with smdebug.Hook(f"s3://{s3}/run", save_config=EVERY_STEP, dry_run=True) as hook:
        record(hook, 3)
    assert _core.Storage.open(f"s3://{s3}").list() == []
    assert not (tmp_path / "spool").exists()


# ---- a C++ program that is killed


def fault_program(name: str, *arguments: object) -> list[str]:
    path = support.ROOT / "build/dev/tests/fault" / name
    assert path.exists(), "Build the dev preset first."
    return [str(path), *map(str, arguments)]


def check_run(uri: str) -> dict[str, int]:
    """Every value of every step that a reader sees, by the program that knows what was recorded."""
    done = subprocess.run(
        fault_program("smd_fault_checker", uri),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: int(value) for name, value in re.findall(r"(\w+)=(-?\d+)", done.stdout)}


def test_what_a_reader_sees_is_whole_whenever_the_writer_is_killed(s3: str) -> None:
    dice = random.Random(7)
    seen = []
    for run in range(6):
        uri = f"s3://{s3}/run{run}"
        for life in range(3):
            process = subprocess.Popen(
                fault_program("smd_fault_recorder", uri, "--seed", run * 10 + life),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(dice.uniform(0, 0.4))  # the moment of the kill; nothing depends on it
            process.kill()
            process.communicate(timeout=30)
            seen.append(check_run(uri)["steps"])
    assert max(seen) > 0
    last = subprocess.run(
        fault_program("smd_fault_recorder", uri, "--seed", 99, "--steps", 30),
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert "close=ok" in last.stdout
    state = check_run(uri)
    assert state["steps"] >= 30
    assert state["ended"] == 1


@pytest.mark.parametrize("layout", ["original", "packed"], indirect=True)
def test_findings_of_rules_inside_of_the_training_arrive(s3: str, layout: str) -> None:
    uri = f"s3://{s3}/runs/first"
    with smdebug.Hook(uri, save_config=EVERY_STEP, rules=["VanishingGradient"]) as hook:
        for step in range(8):
            hook.begin_step()
            vanished = np.full((2, 3), 1e-9 if step >= 3 else 1, np.float32)
            hook.save_tensor("gradient/a", vanished, "gradients")
    lines = bytes(_core.Storage.open(uri).read("findings/worker_0.jsonl")).decode().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [3, 4, 5, 6, 7]
