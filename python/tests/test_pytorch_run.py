"""Scripts for PyTorch that do not know of smdebug, recorded by `smdebug run` in real processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from script_runs import Scripts
from smdebug import modes
from smdebug.open_trial import create_trial

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "torch_scripts"
PLAIN = str(SCRIPTS / "plain.py")
EVERYTHING = ("--save", "all", "--raw", "--interval", "1")
SEQUENTIAL = [f"Sequential_{i}.{kind}" for i in (0, 2) for kind in ("bias", "weight")]
SEQUENTIAL_NAMES = {
    *SEQUENTIAL,
    *(f"gradient/{name}" for name in SEQUENTIAL),
    *(f"{m}_{kind}_0" for m in ("0", "1", "2", "Sequential") for kind in ("input", "output")),
}
scripts = Scripts()
start, unrecorded, recorded = scripts.start, scripts.unrecorded, scripts.recorded


@pytest.mark.parametrize(
    ("loss", "names"),
    [
        ("module", {f"CrossEntropyLoss_{n}" for n in ("input_0", "input_1", "output_0")}),
        ("function", {"nll_loss_output_0"}),
        ("imported", {"cross_entropy_loss_output_0"}),
        ("own", {f"Half_{n}" for n in ("input_0", "input_1", "output_0")}),
        ("expression", {"loss_output_0"}),
        ("sum", {"cross_entropy_loss_output_0", "loss_output_0"}),
    ],
)
def test_model_and_loss_of_a_script_are_found(out_dir: Path, loss: str, names: set[str]) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, loss)
    assert trial.steps() == trial.steps(mode=modes.TRAIN) == [0, 1, 2]
    assert set(trial.tensor_names()) == SEQUENTIAL_NAMES | names
    assert set(trial.tensor_names(collection="losses")) == {n for n in names if "output" in n}
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == [0, 1, 2], name


def test_step_0_is_the_first_batch_and_the_loss_is_the_one_that_was_printed(out_dir: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, "own")
    printed = unrecorded(PLAIN, "own").stdout.splitlines()[:3]
    for step, line in enumerate(printed):
        _, first, loss = line.split()
        value = trial.tensor("Sequential_input_0").value(step)
        assert value.shape == (5, 3)
        assert float(value[0, 0]) == float(first)
        assert float(trial.tensor("Half_output_0").value(step)) == float(loss)


def test_a_model_that_computes_its_loss_itself_has_it_in_losses(out_dir: Path) -> None:
    trial = recorded(out_dir, PLAIN, "inside", 4)
    assert trial.tensor_names(collection="losses") == ["Judge_output_0"]
    assert trial.tensor("Judge_output_0").steps() == [0, 1, 2, 3]
    other = recorded(out_dir.with_name("other"), "--save", "weights", PLAIN, "inside", 4)
    # Nothing looks at the model's output: the number that is differentiated is taken.
    assert other.tensor_names(collection="losses") == ["loss_output_0"]
    assert other.tensor("loss_output_0").steps() == [0, 1, 2, 3]


def test_without_a_configuration_statistics_are_recorded_and_the_loss_at_every_step(
    out_dir: Path,
) -> None:
    plain = start(PLAIN, "module", 210)
    done = start("-m", "smdebug.run", "--out", out_dir, PLAIN, "module", 210)
    assert done.stdout == plain.stdout
    what, bill = done.stderr.splitlines()
    assert "recording the loss at every step, and min, max, mean, std" in what
    assert "Recording took" in bill
    assert (out_dir / "v2").is_dir()  # the packed layout
    trial = create_trial(str(out_dir))
    assert trial.tensor("CrossEntropyLoss_output_0").steps() == list(range(210))
    weight = trial.tensor("Sequential_0.weight")
    # The budget chooses the steps.
    assert weight.steps()[0] == 0
    assert max(np.diff([*weight.steps(), 210])) <= 100
    plain_ones = {(name, False) for name in ("min", "max", "mean", "std", "sum", "l1", "l2")}
    absolute = {(name, True) for name in ("min", "max", "mean")}
    assert set(weight.reduction_values(0)) == plain_ones | absolute
    held = {name for name in trial.tensor_names() if weight.steps() == trial.tensor(name).steps()}
    assert held == {n for n in SEQUENTIAL_NAMES if "input" not in n}


@pytest.mark.parametrize("way", ["wrapper", "in_place"])
def test_compiled_models_are_found_without_a_word(out_dir: Path, way: str) -> None:
    done = start("-m", "smdebug.run", "--out", out_dir, *EVERYTHING, PLAIN, way, 4)
    assert done.stdout == unrecorded(PLAIN, way, 4).stdout
    assert done.stderr.count("\n") == 2, done.stderr  # what and bill; no warning of the compiler
    trial = create_trial(str(out_dir))
    prefix = "OptimizedModule__orig_mod." if way == "wrapper" else "Sequential_"
    assert trial.steps() == [0, 1, 2, 3]
    for name in (f"{prefix}0.weight", f"gradient/{prefix}2.bias", "cross_entropy_loss_output_0"):
        assert trial.tensor(name).steps() == [0, 1, 2, 3]


def test_a_compiled_loss_is_neither_compiled_again_nor_lost(out_dir: Path) -> None:
    plain = start(PLAIN, "compiled_loss", 6, TORCH_LOGS="recompiles")
    done = start(
        "-m", "smdebug.run", "--out", out_dir, PLAIN, "compiled_loss", 6, TORCH_LOGS="recompiles"
    )
    assert done.stdout == plain.stdout
    assert done.stderr.count("Recompiling") == plain.stderr.count("Recompiling")
    trial = create_trial(str(out_dir))
    [loss] = trial.tensor_names(collection="losses")
    assert trial.tensor(loss).steps() == list(range(6))


def test_ranks_of_torchrun_record_and_the_launcher_is_silent(out_dir: Path) -> None:
    launcher = ("-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    script = SCRIPTS / "ranks.py"
    plain = start(*launcher, script, "torchrun")
    done = start("-m", "smdebug.run", "--out", out_dir, *EVERYTHING, *launcher, script, "torchrun")
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    trial = create_trial(str(out_dir))
    assert trial.workers() == ["worker_0"]
    assert trial.steps() == [0, 1, 2]
    names = trial.tensor_names()
    assert "DistributedDataParallel_module.0.weight" in names
    assert trial.tensor("mse_loss_output_0").steps() == [0, 1, 2]
    assert trial.tensor("gradient/DistributedDataParallel_module.0.weight").steps() == [0, 1, 2]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_children_that_the_script_starts_record(out_dir: Path, tmp_path: Path, method: str) -> None:
    both = (*EVERYTHING, "--workers", "all")
    done = start(
        "-m", "smdebug.run", "--out", out_dir, *both, SCRIPTS / "ranks.py", method, tmp_path
    )
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(out_dir))
    assert trial.workers() == ["worker_0", "worker_1"]
    loss = trial.tensor("mse_loss_output_0")
    assert loss.steps() == [0, 1, 2]
    assert loss.value(2, worker="worker_0") != loss.value(2, worker="worker_1")
    assert (out_dir / "training_job_end.ts").exists()


def test_what_was_recorded_before_ctrl_c_is_complete(out_dir: Path) -> None:
    command = [sys.executable, "-m", "smdebug.run", "--out", str(out_dir), "--interval", "1"]
    process = subprocess.Popen(
        [*command, PLAIN, "module", "100000000"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python"), "SMDEBUG_STRICT": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(5)]
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=240)
    assert lines[4].startswith("4 ")
    assert process.returncode == -signal.SIGINT
    assert "\nKeyboardInterrupt\n" in errors
    assert (out_dir / "training_job_end.ts").exists()
    assert create_trial(str(out_dir)).steps()[:5] == [0, 1, 2, 3, 4]


def test_a_script_for_lightning_is_recorded(out_dir: Path, tmp_path: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, SCRIPTS / "trainers.py", "lightning", tmp_path)
    assert trial.steps(mode=modes.TRAIN) == list(range(6))
    assert trial.steps(mode=modes.EVAL) == list(range(6))  # two epochs, without the sanity check
    for name in ("cross_entropy_loss_output_0", "gradient/Lit_net.0.weight"):
        assert trial.tensor(name).steps(mode=modes.TRAIN) == list(range(6))
    assert trial.tensor_names(collection="losses") == ["cross_entropy_loss_output_0"]


def test_a_script_for_transformers_is_recorded(out_dir: Path, tmp_path: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, SCRIPTS / "trainers.py", "transformers", tmp_path)
    assert trial.steps(mode=modes.TRAIN) == [0, 1, 2, 3]  # two updates of two micro-batches
    root = "BertForSequenceClassification"
    assert trial.tensor_names(collection="losses") == [f"{root}_output_0"]
    for name in (f"{root}_output_0", f"gradient/{root}_classifier.weight", f"{root}_input_0"):
        assert trial.tensor(name).steps(mode=modes.TRAIN) == [0, 1, 2, 3]


@pytest.mark.parametrize("when", ["first", "late", "get_hook"])
def test_a_script_that_records_by_itself_is_left_to_it(
    out_dir: Path, tmp_path: Path, when: str
) -> None:
    own = tmp_path / "own"
    done = start(
        "-m", "smdebug.run", "--out", out_dir, *EVERYTHING, SCRIPTS / "own_hook.py", when, own
    )
    assert done.returncode == 0, done.stderr
    if when == "first":
        assert not out_dir.exists()
        assert create_trial(str(own)).steps() == [0, 1, 2, 3]
        assert "nothing was recorded" in done.stderr
    elif when == "late":
        assert create_trial(str(out_dir)).steps() == [0, 1]
        assert create_trial(str(own)).steps() == [0, 1]
    else:  # the hook that it asks for is ours
        assert create_trial(str(out_dir)).steps() == [0, 1, 2, 3]
        assert not own.exists()


def test_what_cannot_be_recorded_changes_nothing_in_the_script(tmp_path: Path) -> None:
    site = f"{ROOT / 'python/smdebug/zcc/site'}{os.pathsep}{ROOT / 'python'}"
    plain = unrecorded(PLAIN, "module")
    (tmp_path / "broken.json").write_text('{"HookParameters": {"save_interval": "often"}}')
    (tmp_path / "file").write_text("")
    (tmp_path / "unwritable.json").write_text(f'{{"LocalPath": "{tmp_path}/file/run"}}')
    cases = {
        "no configuration": {},
        "switched off": {"SMDEBUG_CONFIG_FILE_PATH": "none.json", "USE_SMDEBUG": "0"},
        "missing": {"SMDEBUG_CONFIG_FILE_PATH": str(tmp_path / "none.json")},
        "broken": {"SMDEBUG_CONFIG_FILE_PATH": str(tmp_path / "broken.json")},
        "unwritable": {"SMDEBUG_CONFIG_FILE_PATH": str(tmp_path / "unwritable.json")},
    }
    for name, variables in cases.items():
        done = start(PLAIN, "module", PYTHONPATH=site, SMDEBUG_STRICT="0", **variables)
        assert done.returncode == 0, name
        assert done.stdout == plain.stdout, name
        if name in ("no configuration", "switched off"):
            assert done.stderr == plain.stderr, name
        else:
            assert "not" in done.stderr or "smdebug" in done.stderr, name
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.json", "file", "unwritable.json"]


IN_PROCESS = """
import sys
import torch, torch.nn.functional as F
from torch import nn
from torch.nn.modules import module as m
import smdebug.zcc as zcc

def state():
    return (F.cross_entropy, torch.autograd.backward, torch.compile, nn.Module.compile,
            nn.modules.loss._Loss.__dict__.get("__call__"), m._has_any_global_hook(),
            [type(f) for f in sys.meta_path])

def train(model):
    loss = F.cross_entropy(model(torch.ones(2, 3)), torch.zeros(2, dtype=torch.long))
    loss.backward()

before = state()
zcc.disable()
assert zcc.enable(sys.argv[1]) and zcc.enable(sys.argv[1]) and zcc.is_enabled()
assert len(sys.meta_path) == len(before[-1]) + 1
assert state() != before and m._has_any_global_hook()
model = nn.Sequential(nn.Linear(3, 2))
train(model)
assert m._has_any_global_hook()
train(model)
assert not m._has_any_global_hook()  # a model and a loss are known
scripted = torch.jit.script(nn.CrossEntropyLoss())  # TorchScript sees the functions as they were
assert scripted(torch.ones(2, 3), torch.zeros(2, dtype=torch.long)).item() > 1
zcc.disable()
zcc.disable()
assert state() == before
train(model)
assert model._forward_pre_hooks == {} and not zcc.is_enabled()
"""


def test_everything_can_be_undone(out_dir: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        f'{{"LocalPath": "{out_dir}", "HookParameters": {{"save_all": true, "save_interval": 1}},'
        ' "FrameworkParameters": {"canonical_names": true}}'
    )
    done = start("-c", IN_PROCESS, config)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1]
    assert trial.tensor("cross_entropy_loss_output_0").steps() == [0, 1]


def test_options_of_the_framework_come_with_the_configuration(
    out_dir: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config.json"
    config.write_text(
        '{"HookParameters": {"save_all": true, "save_interval": 1}, "FrameworkParameters":'
        ' {"canonical_names": true, "gradient_source": "optimizer"}}'
    )
    trial = recorded(out_dir, "--config", config, PLAIN, "wrapper", 2)
    assert trial.tensor("gradient/Sequential_0.weight").steps() == [0, 1]
    config.write_text('{"FrameworkParameters": {"gradient_source": "optimiser"}}')
    command = ["-m", "smdebug.run", "--config", config, "--out", tmp_path / "second"]
    done = start(*command, PLAIN, "module", SMDEBUG_STRICT="0")
    assert done.returncode == 0
    assert "gradient_source must be 'backward' or 'optimizer', not 'optimiser'" in done.stderr


def test_the_statistics_are_those_of_the_values(out_dir: Path) -> None:
    trial = recorded(out_dir, "--raw", "--interval", "1", PLAIN, "module")
    weight = trial.tensor("Sequential_0.weight")
    value = weight.value(1)
    assert weight.reduction_value(1, "mean") == pytest.approx(value.mean(), rel=1e-6)
    assert weight.reduction_value(1, "max", abs=True) == np.abs(value).max()
