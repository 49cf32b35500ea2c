"""Scripts with monitored sessions that do not know of smdebug, recorded by `smdebug run`."""

from __future__ import annotations

import json
from pathlib import Path

from script_runs import Scripts
from smdebug.open_trial import create_trial

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "session_scripts"
LOSS = "mean_squared_error/value:0"
scripts = Scripts(TF_CPP_MIN_LOG_LEVEL="3")
start, unrecorded, recorded = scripts.start, scripts.unrecorded, scripts.recorded


def test_a_script_is_recorded_without_a_change(out_dir: Path) -> None:
    trial = recorded(out_dir, SCRIPTS / "plain.py")
    assert trial.tensor(LOSS).steps() == list(range(12)), "the first run is step 0"
    assert trial.tensor_names(collection="losses") == [LOSS]
    assert trial.tensor_names(collection="weights") == ["dense/kernel:0"]
    assert trial.tensor_names(collection="biases") == ["dense/bias:0"]
    assert len(trial.tensor_names(collection="gradients")) == 2
    assert len(trial.tensor_names()) == 5
    assert trial.tensor("dense/kernel:0").reduction_value(0, "l2") > 0


def test_options_choose_what_is_recorded(out_dir: Path) -> None:
    words = ("--save", "gradients:6", "--include", "^output:0$", "--raw", "--interval", "4")
    trial = recorded(out_dir, *words, SCRIPTS / "plain.py")
    [kernel] = trial.tensor_names(regex="MatMul.*dependency_1")
    assert trial.tensor(kernel).steps() == [0, 6]
    assert trial.tensor("output:0").steps() == [0, 4, 8]
    assert trial.tensor("output:0").value(4).shape == (4, 2)


def test_a_script_that_records_by_itself_is_left_alone(out_dir: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    done = start("-m", "smdebug.run", "--out", out_dir, SCRIPTS / "own_hook.py", own)
    assert done.returncode == 0, done.stderr
    assert "True" in done.stdout.splitlines()
    assert create_trial(str(own)).tensor_names() == ["loss:0"]
    assert not out_dir.exists()


def test_a_program_without_a_session_leaves_nothing(out_dir: Path) -> None:
    done = start("-m", "smdebug.run", "--out", out_dir, SCRIPTS / "import_only.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == unrecorded(SCRIPTS / "import_only.py").stdout
    assert not out_dir.exists()


def test_a_place_that_cannot_be_written_does_not_stop_the_script(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    config = tmp_path / "job.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "file" / "run")}))
    done = start(
        *("-m", "smdebug.run", "--config", config, SCRIPTS / "plain.py"), SMDEBUG_STRICT="0"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == unrecorded(SCRIPTS / "plain.py").stdout


def test_everything_can_be_undone(tmp_path: Path) -> None:
    code = """
import tensorflow as tf, smdebug.zcc
train = tf.compat.v1.train
before = [train.MonitoredSession.__init__, train.Optimizer.apply_gradients]
before += [train.SingularMonitoredSession.__init__]
assert smdebug.zcc.enable("job.json")
assert train.MonitoredSession.__init__ is not before[0]
smdebug.zcc.disable()
after = [train.MonitoredSession.__init__, train.Optimizer.apply_gradients]
after += [train.SingularMonitoredSession.__init__]
print(before == after)
"""
    config = tmp_path / "job.json"
    config.write_text(json.dumps({"LocalPath": str(tmp_path / "run")}))
    done = start("-c", code.replace("job.json", str(config)))
    assert done.stdout == "True\n", done.stderr
