"""The example in plain NumPy saves what it says."""

import sys
from pathlib import Path

import pytest
import smdebug

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

import numpy_mlp  # noqa: E402


def test_the_example_saves_whole_weights_at_the_first_step_only(tmp_path):
    numpy_mlp.train(tmp_path, 6)
    trial = smdebug.create_trial(tmp_path)
    weight = trial.tensor("block1/weight")
    assert weight.value(0).shape == (32, 32)
    with pytest.raises(smdebug.exceptions.TensorUnavailableForStep):
        weight.value(2)
    assert weight.series("std")[0].tolist() == [0, 2, 4]
    assert trial.tensor("scalar/loss").steps() == [0, 1, 2, 3, 4, 5]


def test_the_block_that_falls_ill_has_no_gradient_any_more(tmp_path):
    numpy_mlp.train(tmp_path, 12)
    trial = smdebug.create_trial(tmp_path)
    sick, well = (trial.tensor(f"gradient/block{i}/weight").series("l2")[1] for i in (3, 2))
    assert sick[1] > 0 and sick[-1] == 0
    assert well[-1] > 0
