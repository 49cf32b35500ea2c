"""The released package reads packed runs after `smdebug export --index-only`, value by value."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import original_view
import pytest
import smdebug
from smdebug import Collection, Hook, ReductionConfig, SaveConfig, modes

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))
GOLDEN = ROOT / "tests/golden"
RUNS = ["types", "modes", "workers", "running", "devices", "shapes", "collections", "hook"]


def smdebug_program(*words: object) -> dict[str, Any]:
    done = subprocess.run(
        [PROGRAM, *map(str, words), "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def seen(run: Path) -> dict[str, Any]:
    """What the released package sees, without the place."""
    document = original_view.read_run(run)
    assert "error" not in document, document
    return document


def record(out_dir: Path) -> None:
    """Values with and without reductions, numbers, texts and shapes, in two modes."""
    everything = Collection(
        "everything",
        include_regex=["^w", "^b", "^f"],
        reduction_config=ReductionConfig(
            reductions=["min", "mean"], abs_reductions=["max"], norms=["l2"], save_raw_tensor=True
        ),
        save_config=SaveConfig(save_interval=1),
    )
    reduced = Collection(
        "reduced",
        include_regex=["^only"],
        reduction_config=ReductionConfig(reductions=["std"], save_shape=True),
        save_config=SaveConfig(save_interval=1),
    )
    hook = Hook(
        out_dir,
        layout="packed",
        include_collections=["everything", "reduced"],
        include_regex=["^text"],
        save_config=SaveConfig(save_interval=1),
    )
    for collection in (everything, reduced):
        hook.add_collection(collection)
    rng = np.random.default_rng(5)
    with hook:
        for step in range(6):
            hook.set_mode(modes.EVAL if step % 3 == 2 else modes.TRAIN)
            hook.step()
            hook.save_tensor("w", rng.standard_normal((4, 5)).astype(np.float32))
            hook.save_tensor("w/one", np.array([step], np.float64))
            hook.save_tensor("bf", rng.standard_normal((3, 2)).astype(ml_dtypes.bfloat16))
            hook.save_tensor("f8", np.arange(5).astype(ml_dtypes.float8_e4m3fn))
            hook.save_tensor("only", rng.standard_normal(9).astype(np.float32))
            hook.save_tensor("text", np.array(["a", "ünï"]))
            hook.save_scalar("lr", 0.5 / (step + 1))


def test_a_recorded_run_reads_like_its_copy_in_the_original_layout(tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    record(packed)
    smdebug_program("repack", packed, tmp_path / "plain", "--layout", "original")
    before = {path: path.read_bytes() for path in (packed / "v2/seg").rglob("0*") if path.is_file()}
    report = smdebug_program("export", "--index-only", packed)
    assert report["left_out"] == 0
    assert report["in_place"] == 6 * 3  # w, only and text; the others are numbers or widened
    expected = seen(tmp_path / "plain")
    assert len(original_view.entries(expected)) == 6 * 7
    found = seen(packed)
    assert original_view.entries(found) == original_view.entries(expected)
    assert found == expected | {key: found[key] for key in ("path",) if key in found}
    # Nothing was copied or moved.
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize("name", RUNS)
def test_golden_runs_read_the_same_after_both_ways(tmp_path: Path, name: str) -> None:
    packed = tmp_path / "packed"
    smdebug_program("repack", GOLDEN / name, packed, "--layout", "packed")
    smdebug_program("export", "--index-only", packed)
    if name == "running":
        # The released package waits for the rest of a run that has not ended.
        (packed / "training_job_end.ts").touch()
        golden = tmp_path / "ended"
        smdebug_program("repack", GOLDEN / name, golden, "--layout", "original")
        (golden / "training_job_end.ts").touch()
    else:
        golden = GOLDEN / name
    expected, found = seen(golden), seen(packed)
    wanted, entries = original_view.entries(expected), original_view.entries(found)
    # Quantized types, which it cannot read, are copied as the integers that they are.
    readable = {key for key in wanted if not key[0].startswith("dtype/q")}
    assert name == "types" or readable == wanted.keys()
    assert {key: entries.get(key) for key in readable} == {key: wanted[key] for key in readable}
    for key in ("steps", "workers", "collections", "tensor_names", "ended"):
        assert found.get(key) == expected.get(key), key


def test_the_run_stays_a_packed_one(tmp_path: Path) -> None:
    record(tmp_path / "run")
    smdebug_program("export", "--index-only", tmp_path / "run")
    trial = smdebug.create_trial(str(tmp_path / "run"))
    assert trial.steps() == list(range(6))
    assert trial.tensor("w").value(0).shape == (4, 5)
    assert smdebug_program("info", tmp_path / "run")["steps"]


def test_a_run_that_has_grown_is_exported_again(tmp_path: Path) -> None:
    run = tmp_path / "run"
    everything = SaveConfig(save_interval=1)
    with Hook(run, layout="packed", save_all=True, save_config=everything) as hook:
        for step in range(2):
            hook.step()
            hook.save_tensor("w", np.full((2, 2), step, np.float32))
    smdebug_program("export", "--index-only", run)
    assert seen(run)["steps"]["GLOBAL"] == [0, 1]
    (run / "training_job_end.ts").unlink()
    # Another life, which records other tensors at a step that was there.
    with Hook(run, layout="packed", save_all=True, save_config=everything) as hook:
        for _ in range(3):
            hook.step()
            hook.save_tensor("v", np.full((2, 2), 7, np.float32))
    report = smdebug_program("export", "--index-only", run)
    assert report["steps"] == 3
    found = original_view.entries(seen(run))
    assert sorted({(name, step) for name, _, step, _ in found}) == [("v", 0), ("v", 1), ("v", 2)]
