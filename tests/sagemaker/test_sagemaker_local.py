"""`smdebug sagemaker-local`: a script finds what a training container has, and its end comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from container import ROOT
from smdebug import create_trial

PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
TRAIN = """
import argparse, json, os, sys, time
import numpy as np
import smdebug
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--name")
parser.add_argument("--fail-at", type=int, default=-1)
options = parser.parse_args()
hook = smdebug.Hook.create_from_json_file()
checkpoint = "CHECKPOINT_CONFIG_FILE_PATH" in os.environ and os.path.exists(
    os.environ["CHECKPOINT_CONFIG_FILE_PATH"]) and json.load(
    open(os.environ["CHECKPOINT_CONFIG_FILE_PATH"]))["LocalPath"] + "/model"
done = int(open(checkpoint).read()) if checkpoint and os.path.exists(checkpoint) else -1
for step in range(done + 1, options.steps):
    hook.step()
    hook.save("fc.weight", np.full(3, step))
    hook.save("loss", np.float64(step))
    if checkpoint and step == 3:
        open(checkpoint, "w").write(str(step))
    time.sleep(0.05 if options.fail_at >= 0 else 0)  # a fast loop is looked at now and then only
    if step == options.fail_at:
        os._exit(7)
print("trained", options.lr, options.name, hook.step)
"""


class Local:
    """Calls the program in a folder of its own."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.ml = folder / "sagemaker-local/opt/ml"
        path = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
        self.environment = environment | {"PATH": path, "SMDEBUG_LOG_LEVEL": "warning"}

    def script(self, text: str, name: str = "train.py") -> str:
        (self.folder / name).write_text(textwrap.dedent(text))
        return name

    def config(self, document: Any, name: str = "job.json") -> str:
        (self.folder / name).write_text(json.dumps(document))
        return name

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [PROGRAM, "sagemaker-local", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments)
        out, err = process.communicate(timeout=120)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


@pytest.fixture
def local(tmp_path: Path, child_environment: dict[str, str]) -> Local:
    return Local(tmp_path, child_environment)


def test_a_request_of_the_sdk_runs_as_it_is(local: Local, sdk_requests: dict[str, Any]) -> None:
    done = local.run("--config", local.config(sdk_requests["spot"]), local.script(TRAIN))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "trained 0.1 a b 11"
    run = local.ml / "output/tensors"
    trial = create_trial(str(run))
    assert trial.tensor("fc.weight").steps() == list(range(12))
    assert trial.tensor("loss").steps() == [0]
    assert (run / "training_job_end.ts").exists(), "the platform ends the job"
    assert f"tensors      {run}  12 steps" in done.stderr
    assert f"checkpoints  {local.ml}/checkpoints" in done.stderr
    assert "1 lines" in done.stderr, "the mean of the loss"
    (metrics,) = (local.ml / "output/metrics/sagemaker").glob("*.json")
    assert json.loads(metrics.read_text())["MetricName"] == "loss_GLOBAL"


def test_the_script_finds_what_a_container_has(local: Local, sdk_requests: dict[str, Any]) -> None:
    request = sdk_requests["spot"] | {"InputDataConfig": [{"ChannelName": "training"}]}
    script = local.script(
        """
        import json, os, sys
        config = os.environ["SM_INPUT_CONFIG_DIR"]
        print(json.dumps({
            "variables": dict(os.environ),
            "files": {n: json.load(open(config + "/" + n)) for n in sorted(os.listdir(config))},
            "arguments": sys.argv[1:],
        }))
        """
    )
    done = local.run("--config", local.config(request), script, "--own", "--json", "x y")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    ml = str(local.ml)
    hps = {"lr": 0.1, "steps": 12, "name": "a b"}
    assert found["arguments"] == [
        *("--lr", "0.1", "--steps", "12", "--name", "a b"),
        *("--own", "--json", "x y"),
    ]
    files = found["files"]
    assert files["hyperparameters.json"] == {"lr": "0.1", "steps": "12", "name": "a b"}
    assert files["debughookconfig.json"] == {
        **request["DebugHookConfig"],
        "LocalPath": ml + "/output/tensors",
    }
    assert files["checkpointconfig.json"]["LocalPath"] == ml + "/checkpoints"
    assert files["tensorboardoutputconfig.json"]["LocalPath"] == ml + "/output/tensorboard"
    assert files["resourceconfig.json"]["current_host"] == "algo-1"
    assert files["resourceconfig.json"]["current_instance_type"] == "ml.m5.large"
    variables = found["variables"]
    assert variables["TRAINING_JOB_NAME"] == "job-1"
    assert variables["GREETING"] == "hello"
    assert json.loads(variables["SM_HPS"]) == hps
    assert json.loads(variables["SM_USER_ARGS"]) == found["arguments"]
    assert (variables["SM_HP_LR"], variables["SM_HP_NAME"]) == ("0.1", "a b")
    assert variables["SM_CHANNEL_TRAINING"] == ml + "/input/data/training"
    for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_CHANNEL_TRAINING"):
        assert os.path.isdir(variables[name])


def test_without_a_configuration_there_is_a_default_hook(local: Local) -> None:
    done = local.run("--root", "try", local.script(TRAIN), "--steps", "2")
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(local.folder / "try/opt/ml/output/tensors"))
    assert trial.tensor_names() == ["loss"]


def test_parts_of_a_request_are_joined(local: Local) -> None:
    hook = {"CollectionConfigurations": [{"CollectionName": "weights"}], "LocalPath": "/my/tensors"}
    done = local.run(
        *("--config", local.config(hook), "--config", '{"HyperParameters": {"steps": "3"}}'),
        *("--config", '{"TrainingJobName": "mine"}', local.script(TRAIN)),
    )
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(local.folder / "sagemaker-local/my/tensors"))
    assert trial.tensor("fc.weight").steps() == [0]


def test_a_failed_job_goes_on_from_its_checkpoint(local: Local) -> None:
    request = {
        "DebugHookConfig": {
            "HookParameters": {"save_interval": "1"},
            "CollectionConfigurations": [{"CollectionName": "weights"}],
        },
        "CheckpointConfig": {"S3Uri": "s3://bucket/x"},
    }
    arguments = ("--config", local.config(request), local.script(TRAIN), "--steps", "12")
    done = local.run(*arguments, "--fail-at", "6")
    assert done.returncode == 7
    assert "exit code 7" in done.stderr
    run = local.ml / "output/tensors"
    assert not (run / "training_job_end.ts").exists()
    done = local.run(*arguments)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(run))
    weight = trial.tensor("fc.weight")
    assert weight.steps() == list(range(12))
    assert [weight.value(step)[0] for step in range(12)] == list(range(12))
    done = local.run(*arguments)
    assert done.returncode == 2
    assert "A job has ended here; choose another --root" in done.stderr


def test_json_tells_programs_where_things_are(local: Local) -> None:
    done = local.run("--json", local.script(TRAIN), "--steps", "2")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["exit_code"] == 0
    assert found["tensors"] == {"path": str(local.ml / "output/tensors"), "steps": 1}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGUSR1"])
def test_signals_reach_the_script(local: Local, name: str) -> None:
    script = local.script(
        f"""
        import signal, sys
        def stop(*args):
            print("got {name}", flush=True)
            sys.exit(5)
        signal.signal(signal.{name}, stop)
        print("ready", flush=True)
        signal.pause()
        """
    )
    process = local.start(script)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", "output streams"
    process.send_signal(getattr(signal, name))
    out, _ = process.communicate(timeout=60)
    assert (out, process.returncode) == (f"got {name}\n", 5)


def test_a_script_that_dies_of_a_signal_is_told_by_the_exit_code(local: Local) -> None:
    script = local.script("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert local.run(script).returncode == 128 + signal.SIGKILL


def test_a_program_need_not_be_python(local: Local) -> None:
    script = local.script('#!/bin/sh\necho "$TRAINING_JOB_NAME $*"\n', "train.sh")
    (local.folder / script).chmod(0o755)
    done = local.run(script, "-x", "--", "y")
    assert (done.stdout, done.returncode) == ("local-job -x -- y\n", 0)
    assert "No tensors were recorded." in done.stderr


WRONG = {
    "no_json": ("{", "line 1"),
    "a_list": ("[]", "must be a JSON object"),
    "typo": ('{"DebugHokConfig": {}}', "Did you mean 'DebugHookConfig'?"),
    "ambiguous": ('{"S3OutputPath": "s3://b", "LocalPath": "/x"}', "stands below its name"),
    "bad_value": (
        '{"DebugHookConfig": {"HookParameters": {"save_interval": "often"}}}',
        "HookParameters.save_interval",
    ),
    "bad_reduction": (
        '{"CollectionConfigurations": [{"CollectionName": "w", "CollectionParameters": '
        '{"reductions": "meen"}}]}',
        "'mean'",
    ),
    "bad_hyperparameters": ('{"HyperParameters": {"lr": 0.1}}', "must hold strings"),
    "relative": ('{"CheckpointConfig": {"LocalPath": "here"}}', "must be a path from the root"),
    "part_is_no_object": ('{"DebugHookConfig": 3}', "DebugHookConfig must be a JSON object"),
    "channels": ('{"InputDataConfig": {"training": 1}}', "with a ChannelName"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_configurations_are_refused_and_nothing_is_made(local: Local, name: str) -> None:
    text, message = WRONG[name]
    (local.folder / "job.json").write_text(text)
    done = local.run("--config", "job.json", local.script("print('ran')"))
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert done.stdout == ""
    assert not (local.folder / "sagemaker-local").exists()


def test_unknown_parameters_are_warned_of(local: Local) -> None:
    request = {"DebugHookConfig": {"HookParameters": {"save_intervall": "3"}}}
    done = local.run("--config", local.config(request), local.script(""))
    assert done.returncode == 0
    assert "'save_interval'" in done.stdout + done.stderr
