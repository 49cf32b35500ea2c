"""`smdebug tensorboard`: the real TensorBoard shows what was recorded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import boards
import numpy as np
import pytest
from smdebug import Hook, ReductionConfig, SaveConfig, modes
from smdebug.trials import create_trial

PROGRAM = boards.ROOT / "build" / "dev" / "smdebug"


@pytest.fixture(params=["original", "packed"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A run of two modes with weights, their reductions and scalars."""
    random = np.random.default_rng(1)
    out = tmp_path / "run"
    hook = Hook(
        out_dir=str(out),
        save_config=SaveConfig(save_interval=1),
        save_all=True,
        layout=request.param,
        reduction_config=ReductionConfig(
            reductions=["mean"], abs_norms=["l2"], save_raw_tensor=True
        ),
    )
    for step in range(4):
        hook.set_mode(modes.TRAIN if step < 3 else modes.EVAL)
        hook.begin_step()
        hook.save("layer:0/weight", random.normal(size=(20, 30)).astype(np.float32))
        hook.save("odd", np.array([np.nan, 1.0, -np.inf, 1e-320, 1e30]))
        hook.save_scalar("loss", 1.0 / (step + 1))
    hook.close()
    return out


def convert(run: Path, out: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "tensorboard", run, "--out", out], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_scalars_reductions_and_texts_are_there(run, tmp_path):
    convert(run, tmp_path / "board")
    found = boards.read(tmp_path / "board")
    assert sorted(found) == ["EVAL", "TRAIN"]
    losses = found["TRAIN"]["scalars"]["scalar/loss"]
    assert [step for step, _, _ in losses] == [0, 1, 2]
    assert [value for _, _, value in losses] == [np.float32(1 / n) for n in (1, 2, 3)]
    assert all(wall > 1.7e9 for _, wall, _ in losses)
    trial = create_trial(str(run))
    for reduction, stored in (("mean", ("mean", False)), ("abs_l2", ("l2", True))):
        shown = found["TRAIN"]["scalars"][f"layer_0/weight/{reduction}"]
        tensor = trial.tensor("layer:0/weight")
        expected = [
            np.float32(tensor.reduction_value(step, *stored[:1], abs=stored[1]))
            for step in range(3)
        ]
        assert [value for _, _, value in shown] == expected
    ((step, text),) = found["TRAIN"]["texts"]["collections"]
    assert step == 0
    assert '"collections"' in text


def test_histograms_count_every_element(run, tmp_path):
    convert(run, tmp_path / "board")
    found = boards.read(tmp_path / "board")
    trial = create_trial(str(run))
    for event in found["TRAIN"]["histograms"]["layer_0/weight"]:
        values = trial.tensor("layer:0/weight").value(event["step"]).astype(np.float64)
        assert event["num"] == values.size == sum(event["counts"])
        assert (event["min"], event["max"]) == (values.min(), values.max())
        np.testing.assert_allclose(event["sum"], values.sum(), rtol=1e-12)
        np.testing.assert_allclose(event["sum_squares"], (values**2).sum(), rtol=1e-12)
        limits = np.array(event["limits"])
        expected, _ = np.histogram(values, bins=limits)
        assert event["counts"] == [0, *expected]
    (event, *_) = found["TRAIN"]["histograms"]["odd"]
    assert event["num"] == 5
    assert sum(event["counts"]) == 2
    assert (event["min"], event["max"]) == (1e-320, 1e30)


@pytest.mark.parametrize("loader", ["--load_fast=true", "--load_fast=false"])
def test_the_server_shows_them(run, tmp_path, loader):
    convert(run, tmp_path / "board")
    with boards.serve(tmp_path / "board", loader) as server:
        tags = boards.wait_for(lambda: server.get("plugin/scalars/tags"), lambda t: len(t) == 2)
        assert "scalar/loss" in tags["TRAIN"]
        points = server.get("plugin/scalars/scalars", run="TRAIN", tag="scalar/loss")
        assert [step for _, step, _ in points] == [0, 1, 2]
        shown = server.get("plugin/histograms/histograms", run="TRAIN", tag="layer_0/weight")
        assert [step for _, step, _ in shown] == [0, 1, 2]
        for _, _, buckets in shown:
            assert sum(count for _, _, count in buckets) == pytest.approx(600)
