"""Runs say who trains them, and are stopped: real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess

import numpy as np
import pytest
import recorded
from smdebug import Hook, SaveConfig, run_control
from smdebug.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugValueError,
    TrainingStopRequested,
)
from smdebug.rules import Rule, invoke_rule
from smdebug.rules.action import StopTraining
from smdebug.rules.hit import Hit
from smdebug.trials import create_trial

LONG_SECS = 3600
# Announces itself and waits: (name of the run) sleeps, obeys a request, or ignores SIGTERM.
TRAINING = """
import signal, sys, threading, time
from pathlib import Path
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
out, how = Path(sys.argv[1]), sys.argv[2]
if how == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
record = run_control.announce(out)
(out / f"ready_{record.rank}").touch()
try:
    while True:
        if how == "obeys":
            run_control.raise_if_asked_to_stop(record, out)
        time.sleep(0.01)
except TrainingStopRequested as stop:
    print(stop)
    sys.exit(42)
"""


@pytest.fixture
def train(tmp_path):
    """Starts a training process; what is left at the end of the test is killed."""
    running: list[subprocess.Popen[str]] = []

    def start(name: str, how: str = "sleeps", **variables: str) -> subprocess.Popen[str]:
        out = tmp_path / "runs" / name
        process = recorded.start(TRAINING, out, how, **variables)
        running.append(process)
        recorded.wait_for(out / f"ready_{variables.get('RANK', 0)}")
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def hit_in(tmp_path):
    def make(name: str) -> Hit:
        return Hit("Above", 7, "Too high.", run=name, path=str(tmp_path / "runs" / name))

    return make


def end_of(process: subprocess.Popen[str]) -> int:
    return process.wait(timeout=recorded.TIMEOUT_SECS)


# --- records and requests


def test_a_record_describes_this_process(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "8")
    run_control.announce(tmp_path / "first")
    (record,) = run_control.records(tmp_path / "first")
    assert record.run == "first" and (record.rank, record.world_size) == (3, 8)
    assert (record.pid, record.uid) == (os.getpid(), os.geteuid())
    assert record.is_of_this_host and record.is_running
    assert "pytest" in " ".join(record.command)
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-5")
    assert run_control.announce(tmp_path / "first", rank=0, world_size=1).run == "job-5"
    assert [r.rank for r in run_control.records(tmp_path / "first")] == [0, 3]
    assert sorted(p.name for p in (tmp_path / "first/control.smd").iterdir()) == [
        "process_0.json",
        "process_3.json",
    ]


def test_a_rank_that_is_no_number_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(SMDebugValueError, match="RANK must be a number, not 'first'"):
        run_control.announce(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        {"host": "elsewhere"},
        {"boot_id": "another"},
        {"start_ticks": 1},
        {"pid": 1},
        {"pid": 0},
        {"pid": -1},
        {"uid": 12345},
        {"pid": 2**22 + 1},
    ],
    ids=str,
)
def test_another_process_is_not_taken_for_the_announced_one(tmp_path, change):
    run_control.announce(tmp_path)
    path = tmp_path / "control.smd/process_0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    (record,) = run_control.records(tmp_path)
    assert not record.is_running


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"version": 1}', '{"version": 2}', "[" * 100_000, '{"version": "1"}'],
    ids=lambda text: text[:15],
)
def test_a_broken_record_is_skipped(tmp_path, text):
    run_control.announce(tmp_path, rank=1)
    (tmp_path / "control.smd/process_0.json").write_text(text)
    assert [record.rank for record in run_control.records(tmp_path)] == [1]


@pytest.mark.parametrize("change", [{"pid": "1"}, {"command": 5}, {"host": 5}, {"pid": True}])
def test_a_record_of_wrong_types_is_skipped(tmp_path, change, messages):
    run_control.announce(tmp_path)
    path = tmp_path / "control.smd/process_0.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert run_control.records(tmp_path) == []
    assert messages.containing("does not describe a process of a run")


def test_a_request_is_found_by_those_who_started_before_it(tmp_path):
    assert run_control.asked(tmp_path, "stop") is None
    run_control.ask(tmp_path, "stop", rule="R", step=3, message="m")
    found = run_control.asked(tmp_path, "stop")
    assert (found["rule"], found["step"], found["message"]) == ("R", 3, "m")
    assert run_control.asked(tmp_path, "stop", since=found["time"] + 1) is None
    later = run_control.announce(tmp_path)
    run_control.raise_if_asked_to_stop(later, tmp_path)
    run_control.ask(tmp_path, "stop", rule="S", step=4, message="")
    with pytest.raises(TrainingStopRequested, match="Rule S asked at step 4"):
        run_control.raise_if_asked_to_stop(later, tmp_path)
    with pytest.raises(SMDebugValueError, match="stop, save_now, checkpoint"):
        run_control.ask(tmp_path, "../stop")


def test_runs_are_found_in_folders(tmp_path):
    for name in ("b", "a", "deep/er/c"):
        run_control.announce(tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [str(path.relative_to(tmp_path)) for path in run_control.runs_under(tmp_path)]
    assert found == ["a", "b", "deep/er/c"]


# --- stopping


def test_a_run_stops_as_it_is_asked_to(train, hit_in, messages):
    process = train("job", "obeys")
    StopTraining(grace_s=LONG_SECS).invoke("", hit_in("job"))
    assert end_of(process) == 42
    assert "Rule Above asked at step 7 for the training to stop. Too high." in process.stdout.read()
    assert messages.containing("The run stopped as it was asked to")


def test_a_run_that_does_not_listen_gets_sigterm(train, hit_in, messages):
    process = train("job")
    StopTraining(grace_s=0.1, kill_s=LONG_SECS).invoke("", hit_in("job"))
    assert end_of(process) == -signal.SIGTERM
    assert messages.containing("The run ended after SIGTERM")


def test_a_run_that_ignores_sigterm_is_killed(train, hit_in, messages):
    process = train("job", "stubborn")
    StopTraining(grace_s=0.1, kill_s=0.1).invoke("", hit_in("job"))
    assert end_of(process) == -signal.SIGKILL
    assert messages.containing("The run ended after SIGKILL")


def test_signals_come_at_once_if_nothing_else_is_wanted(train, hit_in, tmp_path):
    process = train("job", "obeys")
    StopTraining(mode="signal", grace_s=LONG_SECS, kill_s=LONG_SECS).invoke("", hit_in("job"))
    assert end_of(process) == -signal.SIGTERM
    assert run_control.asked(tmp_path / "runs/job", "stop") is None


RECORDED_TRAINING = """
import sys, time
import numpy as np
from smdebug import Hook, SaveConfig, run_control
from smdebug.exceptions import TrainingStopRequested
record = run_control.announce(sys.argv[1])
hook = Hook(sys.argv[1], save_all=True, save_config=SaveConfig(save_interval=3))
try:
    for step in range(10**9):
        hook.step()
        hook.save("w", np.full(2, step, np.float32))
        hook.end_step()
        time.sleep(0.005)  # as if it trained
        run_control.raise_if_asked_to_stop(record, sys.argv[1])
except TrainingStopRequested as stop:
    hook.close()
    print(stop.rule, stop.step)
    sys.exit(42)
"""


def test_a_rule_watches_a_recording_run_and_stops_it(out_dir):
    class Above(Rule):
        def invoke_at_step(self, step):
            return self.base_trial.tensor("w").value(step)[0] > 30

    process = recorded.start(RECORDED_TRAINING, out_dir)
    try:
        trial = create_trial(out_dir)
        with pytest.raises(RuleEvaluationConditionMet, match="Above at step 33"):
            invoke_rule(Above(trial, StopTraining(grace_s=LONG_SECS)), raise_eval_cond=True)
        assert end_of(process) == 42
        assert process.stdout.read().splitlines()[-1].split() == ["Above", "33"]
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([10**9])


def test_a_cooperative_stop_sends_no_signal(train, hit_in, tmp_path, messages):
    process = train("job")
    action = StopTraining(mode="cooperative", grace_s=0, kill_s=0)
    action.invoke("", hit_in("job"))
    assert run_control.asked(tmp_path / "runs/job", "stop")["rule"] == "Above"
    assert process.poll() is None
    action.invoke("", hit_in("job"))
    assert messages.containing("it has acted 1 times, which is the limit")


def test_all_processes_of_a_run_are_stopped(train, hit_in):
    ranks = [train("job", RANK=str(rank), WORLD_SIZE="2") for rank in range(2)]
    other = train("other")
    StopTraining(mode="signal", kill_s=LONG_SECS).invoke("", hit_in("job"))
    assert [end_of(process) for process in ranks] == [-signal.SIGTERM] * 2
    assert other.poll() is None


def test_nobody_is_signalled_for_a_run_without_processes(train, hit_in, tmp_path, messages):
    process = train("job")
    path = tmp_path / "runs/job/control.smd/process_0.json"
    fields = json.loads(path.read_text())
    # The number was given to another process meanwhile: one that must not be touched.
    path.write_text(json.dumps({**fields, "start_ticks": fields["start_ticks"] - 1}))
    StopTraining(grace_s=0, kill_s=0).invoke("", hit_in("job"))
    assert process.poll() is None
    assert messages.containing("No process that announced this run runs on this host")
    path.write_text(json.dumps({**fields, "host": "elsewhere"}))
    StopTraining(grace_s=0, kill_s=0, any_host=True).invoke("", hit_in("job"))
    path.write_text(json.dumps({**fields, "uid": fields["uid"] + 1}))
    StopTraining(grace_s=0, kill_s=0).invoke("", hit_in("job"))
    assert process.poll() is None
    path.write_text(json.dumps(fields))
    StopTraining(grace_s=0, kill_s=LONG_SECS).invoke("", hit_in("job"))
    assert end_of(process) == -signal.SIGTERM


def test_processes_of_another_user_are_left_alone(train, hit_in, monkeypatch, messages):
    process = train("job")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    StopTraining(mode="signal", kill_s=0).invoke("", hit_in("job"))
    assert process.poll() is None
    assert messages.containing("No process that announced this run runs on this host under this")


def test_a_prefix_stops_the_only_running_match(train, hit_in, tmp_path):
    ended = train("mnist-1")
    ended.kill()
    ended.wait()
    running, other = train("mnist-2"), train("resnet-1")
    action = StopTraining("mnist", mode="signal", kill_s=LONG_SECS)
    action.invoke("", hit_in("resnet-1"))
    assert end_of(running) == -signal.SIGTERM and other.poll() is None


def test_a_prefix_with_several_matches_stops_none(train, hit_in, messages, tmp_path):
    processes = [train("mnist-1"), train("mnist-2")]
    action = StopTraining("mnist", mode="signal", kill_s=0)
    action.invoke("", hit_in("mnist-1"))
    assert [process.poll() for process in processes] == [None, None]
    assert messages.containing("mnist-1") and messages.containing("mnist-2")
    StopTraining("cifar", mode="signal", kill_s=0).invoke("", hit_in("mnist-1"))
    assert messages.containing("but these were found: none")
    root = tmp_path / "runs/mnist-2"
    StopTraining("mnist", mode="signal", kill_s=LONG_SECS, root=root).invoke("", hit_in("mnist-1"))
    assert end_of(processes[1]) == -signal.SIGTERM and processes[0].poll() is None


def test_a_dry_run_stops_nobody(train, hit_in, messages, tmp_path):
    process = train("job")
    StopTraining(dry_run=True, mode="signal", kill_s=0).invoke("", hit_in("job"))
    assert process.poll() is None
    assert messages.containing(f"It would stop the processes {process.pid} of the run")


def test_a_rule_inside_of_the_training_only_asks(tmp_path, messages):
    run_control.announce(tmp_path)
    StopTraining(grace_s=LONG_SECS).invoke("", Hit("R", 1, "m", path=str(tmp_path)))
    assert run_control.asked(tmp_path, "stop")["rule"] == "R"
    assert messages.containing("The run was asked to stop")


def test_a_run_in_an_object_store_cannot_be_stopped(messages):
    StopTraining(any_host=True).invoke("", Hit("R", 1, path="s3://bucket/run"))
    assert messages.containing("A run in an object store has no processes here")
    StopTraining().invoke("legacy")
    assert messages.containing("The run of the rule is not known")


def test_control_files_disturb_neither_hook_nor_reader(out_dir):
    run_control.announce(out_dir)
    hook = Hook(out_dir, save_config=SaveConfig(save_interval=1))
    for step in range(3):
        hook.step()
        hook.save_tensor("x", np.full(2, step, np.float32))
        run_control.ask(out_dir, "save_now", collections=["weights"], steps=1)
    hook.close()
    trial = create_trial(out_dir)
    assert trial.steps() == [0, 1, 2] and trial.tensor("x").value(2).tolist() == [2, 2]
    assert run_control.records(out_dir)[0].is_running
