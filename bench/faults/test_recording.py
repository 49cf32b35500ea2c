"""What the runs hold: names, collections, statistics, workers; and that they can be repeated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import smdebug
from smdebug import modes

from faults.case import faulty_cases, plain_case, record
from faults.library import Library
from faults.recorder import STATISTICS

NAMES = {
    "mlp": ["Net_input_0", "layers.0.relu_input_0", "layers.1.relu_output_0", "layers.0.fc.bias"],
    "lstm": ["lstm.tanh_input_0", "lstm.sigmoid_input_0", "layers.0.tanh_input_0"],
    "cnn": ["hybridsequential0_input_0", "layers.0.conv.weight", "layers.1.relu_output_0"],
    "transformer": ["embedding0_input_0", "layers.1.attention.softmax_output_0"],
    "regressor": ["MSELoss_input_0", "optimizer/exp_avg_sq/head.weight"],
    "trees": ["train-rmse", "validation-rmse", "trees/Node", "labels", "predictions"],
}


@pytest.mark.parametrize("trainer", NAMES)
def test_run_holds_the_names_that_rules_look_for(trainer: str, library: Library) -> None:
    run = library.evidence(plain_case(trainer, 1))
    assert set(NAMES[trainer]) <= set(run.names)
    if trainer == "trees":
        assert "feature_importance/weight/f0" in run.names
        return
    assert {f"gradient/{name}" for name in run.weights} <= set(run.names)
    assert {"scalar/lr", "scalar/gradient_norm", "scalar/optimizer_step"} <= set(run.names)
    assert run.trial.collection("losses").tensor_names == {run.loss_name}


def test_statistics_stand_at_every_step_and_elements_at_the_interval(library: Library) -> None:
    run = library.evidence(plain_case("mlp", 1))
    steps = run.case.settings.steps
    for name in ("head.weight", "gradient/head.weight", "layers.0.relu_output_0"):
        saved = run.trial.tensor(name).reduction_values(7, mode=modes.TRAIN)
        assert {(s, a) for s in [*STATISTICS, "l1", "l2"] for a in (False, True)} <= set(saved)
        assert len(run.series(name, "l2")) == steps
        whole = run.trial.tensor(name).value(20, mode=modes.TRAIN)
        assert np.linalg.norm(whole) == pytest.approx(run.series(name, "l2")[20], rel=1e-5)
        with pytest.raises(smdebug.exceptions.TensorUnavailableForStep):
            run.trial.tensor(name).value(7, mode=modes.TRAIN)


def test_weights_collection_holds_weights_alone(library: Library) -> None:
    run = library.evidence(plain_case("regressor", 1))
    held = set(run.trial.tensor_names(collection="weights"))
    assert held == {"head.weight", "layers.0.fc.weight", "layers.1.fc.weight"}


def test_validation_is_recorded_in_eval(library: Library) -> None:
    run = library.evidence(plain_case("mlp", 1))
    points, means = run.validation
    assert points.tolist() == list(range(19, 240, 20))
    assert np.isfinite(means).all()
    labels, predictions = run.validation_classes()
    assert np.mean(labels == predictions) > 0.8


def test_ranks_are_workers_with_equal_weights_and_batches_of_their_own(library: Library) -> None:
    run = library.evidence(plain_case("ranks", 1))
    workers = run.trial.workers()
    assert workers == ["worker_0", "worker_1", "worker_2"]
    for step in (0, 100, 220):
        values = [run.value("head.weight", step, worker) for worker in workers]
        assert all(np.array_equal(value, values[0]) for value in values)
        inputs = [run.value("Net_input_0", step, worker) for worker in workers]
        assert not np.array_equal(inputs[0], inputs[1])


@pytest.mark.parametrize("trainer", ["mlp", "ranks", "trees"])
def test_same_seed_gives_the_same_run(trainer: str, library: Library, tmp_path: Path) -> None:
    case = plain_case(trainer, 1)
    first = library.evidence(case)
    record(case, tmp_path / "again")
    again = smdebug.create_trial(str(tmp_path / "again" / "run"))
    assert first.trial.diff(again).equal
    other = library.evidence(plain_case(trainer, 2))
    assert not first.trial.diff(other.trial).equal


def test_truth_maps_global_steps_to_training_steps(library: Library) -> None:
    truth = library.evidence(plain_case("mlp", 1)).truth
    # Validation takes eight global steps after each twenty of training.
    assert [truth.train_step(s) for s in (0, 19, 20, 27, 28)] == [0, 19, 19, 19, 20]


def test_half_precision_shows_its_type_and_its_loss_scale(library: Library) -> None:
    cases = [c for c in faulty_cases(1) if c.fault and c.fault.number == 23]
    run = library.evidence(next(c for c in cases if c.trainer == "mlp"))
    assert run.value("layers.1.relu_output_0", 0).dtype == np.float16
    assert set(run.scalar("loss_scale")) == {1024.0}
    # A power of two leaves the gradients as they are.
    twin = library.evidence(plain_case("mlp", 1))
    assert run.loss[0] == pytest.approx(twin.loss[0], rel=1e-3)
    assert run.scalar("gradient_norm")[0] == pytest.approx(
        twin.scalar("gradient_norm")[0], rel=1e-2
    )


def test_weights_in_bfloat16_are_recorded_as_they_are(library: Library) -> None:
    cases = [c for c in faulty_cases(1) if c.fault and c.fault.number == 24]
    run = library.evidence(next(c for c in cases if c.trainer == "mlp"))
    twin = library.evidence(plain_case("mlp", 1))

    def has_low_bits(weight: np.ndarray) -> bool:
        return bool((weight.view(np.uint32) & 0xFFFF).any())

    assert not has_low_bits(run.value("head.weight", 200))
    assert has_low_bits(twin.value("head.weight", 200))
