"""A hook does what the user of the SageMaker SDK asked for: these tensors, at these steps, so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import container
import numpy as np
import pytest
import smdebug
from smdebug import Hook, create_trial, modes

TRAIN, EVAL = range(12), range(4)
WEIGHT, BIAS, GRADIENT = "fc.weight", "fc.bias", "gradient/fc.weight"
RELU, TANH, LOSS = "relu0_output_0", "tanh0_output_0", "CrossEntropyLoss_output_0"
# By job: at which steps of TRAIN and of EVAL a tensor is to be there. Others are not.
ONCE = ([0], [0])
EXPECTED: dict[str, dict[str, tuple[list[int], list[int]]]] = {
    "nothing": {LOSS: ONCE},
    "save_all": {
        **{name: ([0, 3, 6, 9], [0, 3]) for name in (WEIGHT, BIAS, RELU, TANH, LOSS)},
        GRADIENT: ([0, 3, 6, 9], []),
    },
    "regex": {name: ([0, 1, 4], [0, 1]) for name in (RELU, TANH, LOSS)},
    "interval_by_mode": {name: ([0, 2, 4, 6, 8, 10], [0, 1]) for name in (WEIGHT, LOSS)},
    "start_and_end": {WEIGHT: ([2, 3, 4], [2, 3]), LOSS: (list(TRAIN), list(EVAL))},
    "precedence": {WEIGHT: ([0, 5, 10], [0, 3]), BIAS: ([0, 4, 8], [0, 2]), LOSS: ([0, 4, 8], [0])},
    "all_reductions": {GRADIENT: (list(TRAIN), []), LOSS: ONCE},
    "reductions_and_values": {name: (list(TRAIN), list(EVAL)) for name in (WEIGHT, LOSS)},
    "hook_reductions": {name: (list(TRAIN), list(EVAL)) for name in (WEIGHT, LOSS)},
    "no_losses": {},
    "custom": {RELU: ([0, 2, 4, 6, 8, 10], [0, 2]), LOSS: ONCE},
    "numbers_as_numbers": {WEIGHT: ([2, 4, 6, 8, 10], [2]), LOSS: ONCE},
    "rules": {GRADIENT: ([0], []), LOSS: ONCE},
    "spot": {WEIGHT: (list(TRAIN), list(EVAL)), LOSS: ONCE},
}


def value(name: str, mode: modes, step: int) -> np.ndarray:
    """What the training has under this name at this step of the mode."""
    rng = np.random.default_rng([sum(name.encode()), mode.value, step])
    return rng.standard_normal(1 if name == LOSS else (3, 4)).astype(np.float32)


def train(hook: Hook) -> None:
    """Two epochs with an evaluation each."""
    for epoch in range(2):
        for mode, count in ((modes.TRAIN, len(TRAIN) // 2), (modes.EVAL, len(EVAL) // 2)):
            hook.set_mode(mode)
            for step in range(epoch * count, (epoch + 1) * count):
                hook.step()
                names = [WEIGHT, BIAS, RELU, TANH, LOSS]
                for name in names + [GRADIENT] * (mode is modes.TRAIN):
                    hook.save(name, value(name, mode, step))
    hook.close()


@pytest.fixture
def job(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives a function that runs the training with the files of a request."""

    def run(document: dict[str, Any]) -> tuple[Hook, Path]:
        for name, text in container.write(document, tmp_path).items():
            monkeypatch.setenv(name, text)
        hook = Hook.create_from_json_file()
        train(hook)
        return hook, tmp_path / "tensors"

    return run


def recorded(run: Path) -> dict[str, tuple[list[int], list[int]]]:
    """What EXPECTED says, as it lies there."""
    trial = create_trial(str(run))
    return {
        name: (
            trial.tensor(name).steps(mode=modes.TRAIN),
            trial.tensor(name).steps(mode=modes.EVAL),
        )
        for name in trial.tensor_names()
    }


def textbook(array: np.ndarray, name: str) -> float:
    """A reduction by its name in the configuration."""
    x = array.astype(np.float64).ravel()
    if name.startswith("abs_"):
        x, name = np.abs(x), name.removeprefix("abs_")
    by_hand = {"variance": np.var, "l1": lambda v: np.abs(v).sum(), "l2": lambda v: (v @ v) ** 0.5}
    return float((by_hand.get(name) or getattr(np, name))(x))


@pytest.mark.parametrize("name", EXPECTED)
def test_the_tensors_are_there_at_the_steps_that_were_asked_for(
    name: str, sdk_requests: dict[str, Any], job: Any
) -> None:
    _, run = job(sdk_requests[name])
    assert recorded(run) == EXPECTED[name]


def test_every_request_of_the_sdk_is_looked_at(sdk_requests: dict[str, Any]) -> None:
    assert set(sdk_requests) == set(EXPECTED)


def test_all_twenty_reductions_are_saved_and_right(sdk_requests: dict[str, Any], job: Any) -> None:
    parameters = sdk_requests["all_reductions"]["DebugHookConfig"]["CollectionConfigurations"][0]
    wanted = parameters["CollectionParameters"]["reductions"].split(",")
    assert len(set(wanted)) == 20
    _, run = job(sdk_requests["all_reductions"])
    tensor = create_trial(str(run)).tensor(GRADIENT)
    for step in TRAIN:
        stored = tensor.reduction_values(step, mode=modes.TRAIN)
        assert len(stored) == 20
        truth = value(GRADIENT, modes.TRAIN, step)
        for (reduction, absolute), got in stored.items():
            name = ("abs_" if absolute else "") + reduction
            assert name in wanted
            assert got == pytest.approx(textbook(truth, name), rel=1e-5), name
        with pytest.raises(smdebug.exceptions.TensorUnavailableForStep):
            tensor.value(step, mode=modes.TRAIN)


def test_values_come_with_reductions_when_both_are_wanted(
    sdk_requests: dict[str, Any], job: Any
) -> None:
    _, run = job(sdk_requests["reductions_and_values"])
    tensor = create_trial(str(run)).tensor(WEIGHT)
    truth = value(WEIGHT, modes.EVAL, 3)
    np.testing.assert_array_equal(tensor.value(3, mode=modes.EVAL), truth)
    assert set(tensor.reduction_values(3, mode=modes.EVAL)) == {("mean", False), ("l2", False)}
    assert tensor.shape(3, mode=modes.EVAL) == (3, 4)


def test_reductions_of_the_hook_hold_for_collections_that_name_none(
    sdk_requests: dict[str, Any], job: Any
) -> None:
    _, run = job(sdk_requests["hook_reductions"])
    trial = create_trial(str(run))
    stored = trial.tensor(WEIGHT).reduction_values(0, mode=modes.TRAIN)
    assert set(stored) == {("min", False), ("max", False), ("mean", False)}
    loss = trial.tensor(LOSS)
    np.testing.assert_array_equal(
        loss.value(0, mode=modes.TRAIN), value(LOSS, modes.TRAIN, 0), "losses are kept as they are"
    )


def test_a_job_of_the_platform_gets_no_end_marker_from_us(
    sdk_requests: dict[str, Any], job: Any
) -> None:
    _, run = job(sdk_requests["nothing"])
    assert not (run / "training_job_end.ts").exists()


def test_without_variables_the_container_path_is_read(
    sdk_requests: dict[str, Any], tmp_path: Path, child_environment: dict[str, str], python: str
) -> None:
    """In a mount namespace of its own, where /opt is empty but for these files."""
    (tmp_path / "hook.json").write_text(json.dumps(sdk_requests["custom"]["DebugHookConfig"]))
    script = tmp_path / "train.py"
    script.write_text(
        "import smdebug, numpy\n"
        "hook = smdebug.Hook.create_from_json_file()\n"
        "for step in range(3):\n"
        "    hook.step()\n"
        "    hook.save('relu0_output_0', numpy.ones(2))\n"
        "hook.close()\n"
        "print(hook.out_dir, smdebug.create_trial(hook.out_dir).tensor('relu0_output_0').steps())\n"
    )
    config = "/opt/ml/input/config"
    commands = (
        f'mount -t tmpfs none /opt; mkdir -p {config}; cp "$1" {config}/debughookconfig.json;'
        'exec "$2" "$3"'
    )
    done = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "sh", "-ec", commands),
            *("sh", tmp_path / "hook.json", python, script),
        ],
        env=child_environment | {"SMDEBUG_LOG_LEVEL": "error"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "/opt/ml/output/tensors [0, 2]\n"
