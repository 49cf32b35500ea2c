"""Jobs that are killed and started again keep their steps and their counters."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import interrupted_job
import numpy as np
import pytest
from smdebug import Hook, create_trial, modes
from smdebug.logger import get_logger

LAYOUTS = ["original", "packed"]
SCRIPT = Path(interrupted_job.__file__)
EVERY = 7
KILLS = 7
mode_of = interrupted_job.mode_of


class Job:
    """The folders of one job."""

    def __init__(self, folder: Path, layout: str, environment: dict[str, str]) -> None:
        self.layout = layout
        self.run = folder / "run"
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir(parents=True)
        self.state_file = self.checkpoints / "metadata.json"
        self.metrics = folder / "metrics"
        config = folder / "checkpointconfig.json"
        config.write_text(json.dumps({"LocalPath": str(self.checkpoints)}))
        self.environment = environment | {
            "CHECKPOINT_CONFIG_FILE_PATH": str(config),
            "TRAINING_JOB_NAME": "spot",
            "SAGEMAKER_METRICS_DIRECTORY": str(self.metrics),
            "SMDEBUG_LOG_LEVEL": "warning",
        }

    def start(self, steps: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                *(sys.executable, str(SCRIPT), str(self.run), str(self.checkpoints)),
                *(str(steps), str(EVERY), self.layout),
            ],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def noted(self) -> int:
        """The step that the next hook has to go on from."""
        if not self.state_file.exists():
            return -1
        entries = json.loads(self.state_file.read_text())
        return max((e["latest-global-step-seen"] for e in entries), default=-1)

    def restore_checkpoint(self, whole: int) -> None:
        """Goes back to the last checkpoint whose state and steps are there.

        A kill right after a checkpoint leaves one that was not noted, or not waited for.
        """
        for step in interrupted_job.checkpoints(self.checkpoints):
            if step > min(self.noted(), whole):
                (self.checkpoints / "deep" / f"{step}.json").unlink()
        if self.noted() > whole:
            entries = json.loads(self.state_file.read_text())
            kept = [e for e in entries if e["latest-global-step-seen"] <= whole]
            self.state_file.write_text(json.dumps(kept))


def kill_after(process: subprocess.Popen[str], lines: int) -> list[list[str]]:
    """Kills the process once it has printed so many lines; all that it printed."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line.split())
        if len(seen) == lines:
            process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, seen
    return seen


def check_counters(lines: list[list[str]]) -> None:
    """The hook counts what the training counts."""
    for line in lines:
        step, global_step, mode_step = map(int, line)
        assert global_step == step, lines
        assert mode_step == sum(mode_of(s) is mode_of(step) for s in range(step)), lines


def recorded(run: Path) -> dict[int, np.ndarray]:
    """The saved values by step; each must be of one piece and of its step."""
    tensor = create_trial(str(run)).tensor("w")
    values = {step: tensor.value(step) for step in tensor.steps(show_incomplete_steps=True)}
    for step, value in values.items():
        assert np.all(value == value[0]), "a mixture of two starts"
        assert value[0] // 1000 == step
    return values


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_job_that_is_killed_again_and_again_counts_on(
    tmp_path: Path, layout: str, seed: int, child_environment: dict[str, str]
) -> None:
    dice = random.Random(f"{layout}{seed}")
    job = Job(tmp_path, layout, child_environment)
    safe: dict[int, np.ndarray] = {}  # up to the last checkpoint: never to change again
    resumed = 0
    for _ in range(KILLS):
        from_step = job.noted()
        ready, *lines = kill_after(job.start(10_000), dice.randrange(3, 40))
        assert ready[:2] == ["ready", str(from_step)]
        assert (int(ready[2]) > 0) == (from_step >= 0), "training_run counts resumed starts"
        assert not lines or int(lines[0][0]) == from_step + 1
        check_counters(lines)
        resumed += from_step >= 0
        found = recorded(job.run)
        for step, value in safe.items():
            np.testing.assert_array_equal(found[step], value, f"step {step} is safe")
        whole = next(step for step in range(10_000) if step not in found) - 1
        # The last checkpoint may have come right before the kill; those before it are whole.
        done = [
            c for c in interrupted_job.checkpoints(job.checkpoints) if c <= from_step + len(lines)
        ]
        assert all(c <= min(job.noted(), whole) for c in done[:-1]), (done, job.noted(), whole)
        job.restore_checkpoint(whole)
        safe = {step: value for step, value in found.items() if step <= job.noted()}
    assert resumed >= 4, "the kills came too early to show much"

    last = job.noted() + 30
    survivor = job.start(last + 1)
    lines = [line.split() for line in survivor.communicate(timeout=120)[0].splitlines()[1:]]
    check_counters(lines)
    trial = create_trial(str(job.run))
    assert trial.steps(show_incomplete_steps=True)[: last + 1] == list(range(last + 1))
    train = sum(mode_of(step) is modes.TRAIN for step in range(last + 1))
    assert trial.steps(mode=modes.TRAIN)[:train] == list(range(train))
    scalar = trial.tensor("scalar/step")
    assert [scalar.value(step).item() for step in range(last + 1)] == list(range(last + 1))
    check_metrics(job, survivor.pid, len(lines))


def check_metrics(job: Job, survivor: int, steps: int) -> None:
    """Whole lines, but for the last one of a killed process; each tells of its own step."""
    assert len((job.metrics / f"{survivor}.json").read_text().splitlines()) == steps
    files = list(job.metrics.glob("*.json"))
    assert len(files) >= 4
    for file in files:
        lines = file.read_text().splitlines(keepends=True)
        for line in lines:
            if not line.endswith("\n"):
                assert line is lines[-1]
                continue
            metric = json.loads(line)
            step = int(metric["Value"])
            assert metric["MetricName"] == f"scalar/step_{mode_of(step).name}"
            same_mode = sum(mode_of(s) is mode_of(step) for s in range(step))
            assert metric["IterationNumber"] == same_mode


def resumable(job: Job, monkeypatch: pytest.MonkeyPatch) -> Hook:
    for name, value in job.environment.items():
        if name not in os.environ or os.environ[name] != value:
            monkeypatch.setenv(name, value)
    return Hook(job.run, save_all=True, save_config={"save_interval": 1}, layout=job.layout)


DAMAGE = {
    "cut": lambda text: text[: len(text) // 2],
    "empty": lambda text: "",
    "not_json": lambda text: "steps: 12",
    "not_a_list": lambda text: '{"training-run": 0}',
    "absurd": lambda text: text.replace('step-seen": ', 'step-seen": 99999999999999'),
    "negative": lambda text: text.replace('"TRAIN": ', '"TRAIN": -'),
    "ahead": lambda text: text.replace('"TRAIN": ', '"TRAIN": 9'),
    "binary": lambda text: "\0\1\2" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_damaged_state_is_told_and_nothing_is_written_over(
    tmp_path: Path,
    layout: str,
    damage: str,
    child_environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = Job(tmp_path, layout, child_environment)
    hook = resumable(job, monkeypatch)
    for step in range(20):
        hook.set_mode(mode_of(step))
        hook.step()
        hook.save_tensor("w", interrupted_job.weights(step, 0))
        if step == 10:
            (job.checkpoints / "model").write_text("x")
    hook.close()
    assert job.noted() == 10
    before = recorded(job.run)
    job.state_file.write_text(DAMAGE[damage](job.state_file.read_text()))
    records: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: records.append(record.getMessage())  # type: ignore[method-assign]
    get_logger().addHandler(handler)
    again = resumable(job, monkeypatch)
    get_logger().removeHandler(handler)
    assert any("is damaged, so steps go on with 20" in text for text in records), records
    assert again.step == 19
    again.set_mode(modes.TRAIN)
    again.step()
    again.save_tensor("w", interrupted_job.weights(20, 1))
    again.close()
    after = recorded(job.run)
    assert sorted(after) == list(range(21))
    for step, value in before.items():
        np.testing.assert_array_equal(after[step], value)
    trial = create_trial(str(job.run))
    assert trial.mode_step(20) == 16, "the modes go on, too"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_of_two_processes_in_one_directory_one_is_told_to_stay_out(
    tmp_path: Path, layout: str, child_environment: dict[str, str]
) -> None:
    code = (
        "import sys, time, numpy as np, smdebug\n"
        "hook = smdebug.Hook(sys.argv[1], save_all=True, save_config={'save_interval': 1},"
        " layout=sys.argv[2])\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for step in range(50):\n"
        "    hook.step(); hook.save_tensor('w', np.full(100, float(sys.argv[3])))\n"
        "time.sleep(1)\n"  # neither ends before the writers of both have had their turn
        "print('recorded', flush=True); sys.stdin.readline()\n"
        "hook.close()\n"
    )
    run = tmp_path / "run"
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(run), layout, str(number)],
            env=child_environment | {"SMDEBUG_STRICT": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    for racer in racers:
        assert racer.stdout is not None and racer.stdin is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")  # type: ignore[union-attr]
        racer.stdin.flush()  # type: ignore[union-attr]
    texts = ["", ""]
    for number, racer in enumerate(racers):
        for line in racer.stdout:  # type: ignore[union-attr]
            texts[number] += line
            if line == "recorded\n":
                break
    for number, racer in enumerate(racers):
        texts[number] += racer.communicate("end\n", timeout=120)[0]
        assert racer.returncode == 0, "training goes on in both"
    refused = [number for number in range(2) if "Another process" in texts[number]]
    assert len(refused) == 1, texts
    winner = racers[1 - refused[0]]
    assert f"({winner.pid} on " in texts[refused[0]], "the message says who"
    tensor = create_trial(str(run)).tensor("w")
    assert tensor.steps() == list(range(50))
    for step in range(50):
        np.testing.assert_array_equal(tensor.value(step), np.full(100, 1.0 - refused[0]))
