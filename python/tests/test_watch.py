"""`smdebug watch` beside a training that runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest
import smdebug
from recorded import PACKAGE, TIMEOUT_SECS, wait_until

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))


def start_watch(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, "watch", "--rules", "ExplodingTensor", "--interval", "0.1", *map(str, words)],
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def make_hook(out_dir: object, layout: str = "original") -> smdebug.Hook:
    return smdebug.Hook(
        out_dir, include_regex=".*", save_config={"save_interval": 1}, layout=layout
    )


def save(hook: smdebug.Hook, value: float) -> None:
    with hook.step():
        hook.save_tensor("x", np.array([1.0, value]))


def findings(out_dir: Path) -> list[dict]:
    [file] = (out_dir / "findings").glob("watch_*.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_hits_are_told_while_the_job_runs(tmp_path, layout):
    out_dir = tmp_path / "run"
    watch = start_watch(out_dir, "--json", "--on-fire", "continue")
    assert "Waiting for it." in watch.stderr.readline()
    hook = make_hook(out_dir, layout)
    save(hook, 1)
    save(hook, np.nan)
    save(hook, np.nan)
    hit = json.loads(watch.stdout.readline())  # the job has not ended
    assert (hit["kind"], hit["step"]) == ("hit", 1)
    assert [record["kind"] for record in findings(out_dir)][:2] == ["begin", "hit"]
    hook.close()
    diagnosis = json.loads(watch.stdout.readline())
    assert diagnosis["kind"] == "diagnosis"
    assert diagnosis["steps"] == 3
    assert diagnosis["findings"][0]["hits"] == 2
    assert watch.wait(TIMEOUT_SECS) == 1
    assert findings(out_dir)[-1]["kind"] == "end"
    # Others who look at the run do not mind.
    assert smdebug.create_trial(out_dir).steps() == [0, 1, 2]
    done = subprocess.run([PROGRAM, "verify", out_dir], capture_output=True, check=False)
    assert done.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_what_was_found(tmp_path, number):
    out_dir = tmp_path / "run"
    hook = make_hook(out_dir)
    for value in (np.nan, 1):
        save(hook, value)
    wait_until(out_dir.exists)  # written by another thread
    watch = start_watch(out_dir, "--on-fire", "continue")
    assert "ExplodingTensor" in watch.stdout.readline()
    watch.send_signal(number)
    out, err = watch.communicate(timeout=TIMEOUT_SECS)
    assert watch.returncode == 130
    assert "1 finding" in out
    assert err == ""
    assert [record["kind"] for record in findings(out_dir)] == ["begin", "hit", "finding", "end"]
    hook.close()


def test_ctrl_c_before_the_run_begins_leaves_nothing(tmp_path):
    watch = start_watch(tmp_path / "nowhere")
    assert "Waiting for it." in watch.stderr.readline()
    watch.send_signal(signal.SIGINT)
    watch.communicate(timeout=TIMEOUT_SECS)
    assert watch.returncode == 130
    assert list(tmp_path.iterdir()) == []


def test_a_healthy_job_is_exit_code_zero(tmp_path):
    hook = make_hook(tmp_path / "run")
    save(hook, 1)
    hook.close()
    watch = start_watch(tmp_path / "run")
    out, _ = watch.communicate(timeout=TIMEOUT_SECS)
    assert watch.returncode == 0
    assert "no issues found" in out
