"""Scripts for MXNet that do not know of smdebug, recorded by `smdebug run` in real processes."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import mxnet as mx
import pytest
from markdown_examples import check_examples
from mxnet_training import images, lenet, parameters_of, run, train
from script_runs import Scripts
from smdebug import modes, zcc
from smdebug.hook import BaseHook
from smdebug.mxnet import Collection, Hook
from smdebug.open_trial import create_trial

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "mxnet_scripts"
PLAIN = str(SCRIPTS / "plain.py")
EVERYTHING = ("--save", "all", "--raw", "--interval", "1")
PARAMETERS = [f"dense{i}_{kind}" for i in (1, 2) for kind in ("bias", "weight")]
OUTSIDE = {f"hybridsequential0_{kind}_0" for kind in ("input", "output")}
LOSS = {f"softmaxcrossentropyloss0_{n}" for n in ("input_0", "input_1", "output_0")}
NAMES = {
    *PARAMETERS,
    *(f"gradient/{name}" for name in PARAMETERS),
    *(f"{b}_{kind}_0" for b in ("dense1", "dense1_relu", "dense2") for kind in ("input", "output")),
    *OUTSIDE,
    *LOSS,
}
scripts = Scripts(OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
start, unrecorded, recorded = scripts.start, scripts.unrecorded, scripts.recorded


def test_model_and_loss_of_a_script_are_found(out_dir: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, "plain")
    assert trial.steps() == trial.steps(mode=modes.TRAIN) == [0, 1, 2]
    assert set(trial.tensor_names()) == NAMES  # the first block is not trained
    assert trial.tensor_names(collection="losses") == ["softmaxcrossentropyloss0_output_0"]
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == [0, 1, 2], name
    for line in unrecorded(PLAIN, "plain").stdout.splitlines()[:3]:
        step, first, loss = line.split()
        found = trial.tensor("hybridsequential0_input_0").value(int(step))
        assert found.shape == (5, 3) and float(found[0, 0]) == float(first)
        losses = trial.tensor("softmaxcrossentropyloss0_output_0").value(int(step))
        assert float(losses[0]) == float(loss)


def test_a_hybridised_net_of_a_script_is_found(out_dir: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, "hybrid")
    inner = {n for n in NAMES if n.startswith("dense") and ("input" in n or "output" in n)}
    assert set(trial.tensor_names()) == NAMES - inner
    assert trial.steps() == [0, 1, 2]


def test_the_mode_follows_autograd(out_dir: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, "evaluate")
    assert trial.steps(mode=modes.TRAIN) == trial.steps(mode=modes.EVAL) == [0, 1, 2]
    assert trial.tensor("gradient/dense1_weight").steps(mode=modes.EVAL) == []


def test_without_options_statistics_and_every_loss_are_recorded(out_dir: Path) -> None:
    trial = recorded(out_dir, PLAIN, "plain", 30)
    assert trial.tensor("softmaxcrossentropyloss0_output_0").steps() == list(range(30))
    assert set(trial.tensor_names(collection="outputs")) == {
        n for n in NAMES - LOSS if "output" in n
    }
    weight = trial.tensor("dense1_weight")
    assert weight.steps()[0] == 0
    assert ("l2", False) in weight.reduction_values(0)


def test_a_script_that_fails_fails_as_before(out_dir: Path) -> None:
    trial = recorded(out_dir, *EVERYTHING, PLAIN, "fail", code=3)
    assert trial.steps() == [0, 1, 2]


@pytest.mark.parametrize("when", ["early", "late"])
def test_a_script_with_a_hook_of_its_own_is_left_to_it(tmp_path: Path, when: str) -> None:
    done = start(
        "-m",
        "smdebug.run",
        "--out",
        tmp_path / "ours",
        SCRIPTS / "own_hook.py",
        tmp_path / "own",
        when,
    )
    assert done.returncode == 0, done.stderr
    assert "Hook" in done.stdout.splitlines()
    trial = create_trial(str(tmp_path / "own"))
    assert trial.tensor("dense0_weight").steps() == [0, 1]


def config(tmp_path: Path, **more: Any) -> Path:
    """A configuration that saves everything."""
    path = tmp_path / "hook.json"
    document = {
        "LocalPath": str(tmp_path / "run"),
        "HookParameters": {"save_interval": "1", "save_all": "true"},
        **more,
    }
    path.write_text(json.dumps(document))
    return path


def test_recording_can_be_switched_on_and_off_in_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    before = (mx.gluon.Block.__call__, mx.gluon.Trainer.__init__)
    assert zcc.enable(config(tmp_path))
    assert mx.gluon.Block.__call__ is not before[0]
    seen = run(lambda hook: train(hook, lenet(), images(2)), _Silent())
    # All that belongs to a step was seen: calls are those of MXNet again.
    assert mx.gluon.Block.__call__ is before[0]
    zcc.disable()
    assert (mx.gluon.Block.__call__, mx.gluon.Trainer.__init__) == before
    trial = create_trial(str(tmp_path / "run"))
    assert trial.steps() == [0, 1]
    assert (trial.tensor("conv0_weight").value(1) == seen[1][0]["conv0_weight"]).all()
    net = lenet()
    run(lambda hook: train(hook, net, images(1)), _Silent())
    assert trial.steps() == [0, 1] and parameters_of(net)


class _Silent:
    def register_block(self, block: Any) -> None:
        """Nobody registers anything."""


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"auto_mod": True}, "Did you mean 'auto_mode'?"),
        ({"op_hook": "yes"}, "FrameworkParameters.op_hook must be of type bool, not 'yes'."),
    ],
)
def test_wrong_options_are_one_line_and_the_script_goes_on(
    tmp_path: Path, parameters: dict[str, Any], said: str
) -> None:
    path = config(tmp_path, FrameworkParameters=parameters)
    plain = unrecorded(PLAIN, "plain")
    done = start("-m", "smdebug.run", "--config", path, PLAIN, "plain", SMDEBUG_STRICT="0")
    assert (done.returncode, done.stdout) == (0, plain.stdout)
    assert len([line for line in done.stderr.splitlines() if said in line]) == 1


def test_operators_can_be_asked_for_in_the_file(tmp_path: Path) -> None:
    path = config(tmp_path, FrameworkParameters={"op_hook": True})
    done = start("-m", "smdebug.run", "--config", path, PLAIN, "hybrid")
    assert done.returncode == 0, done.stderr
    assert done.stdout == unrecorded(PLAIN, "hybrid").stdout
    trial = create_trial(str(tmp_path / "run"))
    assert "dense1_relu_fwd_output" in trial.tensor_names()


def test_a_plan_tells_what_there_is_to_record_and_writes_nothing(tmp_path: Path) -> None:
    words = ["plan", "--json", "--out", tmp_path / "run", "--interval", "5"]
    done = start("-m", "smdebug.cli", *words, PLAIN, "plain", 50)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    tensors = {tensor["name"]: tensor for tensor in plan["tensors"]}
    assert tensors["dense1_weight"]["shape"] == [4, 3]
    assert tensors["dense1_weight"]["dtype"] == "float32"
    assert set(PARAMETERS) | {"softmaxcrossentropyloss0_output_0"} <= set(tensors)
    assert plan["steps_run"] == 3
    assert {c["name"]: c["when"] for c in plan["collections"]}["weights"] == "every 5th step"
    assert 0 < plan["bytes_per_full_step"] < plan["bytes_per_1000_steps"]
    assert plan["step_secs"] > 0 and plan["predicted_overhead"] > 0
    assert plan["unmatched"] == []
    assert not (tmp_path / "run").exists()


def test_a_plan_names_patterns_that_match_nothing(tmp_path: Path) -> None:
    words = ["plan", "--json", "--steps", "2", "--include", "dens1_weight"]
    done = start("-m", "smdebug.cli", *words, PLAIN, "plain", 1_000_000)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert plan["steps_run"] == 2
    (unmatched,) = plan["unmatched"]
    assert unmatched["pattern"] == "dens1_weight"
    assert "dense1_weight" in unmatched["near"]


def test_the_guide_is_true(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/mxnet.md", tmp_path)


def test_the_quick_start_prints_what_is_shown(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, "MXNet")


def test_the_reference_names_every_argument_and_member() -> None:
    text = (ROOT / "docs/reference/mxnet.md").read_text(encoding="utf-8")
    common = set(inspect.signature(BaseHook.__init__).parameters)
    arguments = set(inspect.signature(Hook.__init__).parameters) - common - {"options"}
    members = {n for n in vars(Hook) if not n.startswith("_")} - set(vars(BaseHook))
    own = {n for n in vars(Collection) if not n.startswith("_")}
    assert {n for n in arguments | members | own if f"`{n}" not in text} == set()
