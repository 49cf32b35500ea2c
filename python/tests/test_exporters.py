"""The interface of exporters, and what they are given of a run; no tool is needed here."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import writing
from recorded import PACKAGE, TIMEOUT_SECS
from smdebug import Hook, ReductionConfig, SaveConfig, create_trial, modes
from smdebug.exceptions import (
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
)
from smdebug.exporters import Choice, Exporter, StepNumbers, create_exporter
from smdebug.exporters.batch import Batch
from smdebug.exporters.mlflow import allowed_name


class Kept(Exporter):
    """Keeps what it is given."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.steps: list[StepNumbers] = []
        self.closed = 0

    def export(self, step: StepNumbers) -> None:
        self.steps.append(step)

    def close(self) -> None:
        self.closed += 1

    def numbers(self) -> dict[tuple[int, str], dict[str, float]]:
        return {(step.step, step.worker): dict(step.numbers) for step in self.steps}


@pytest.fixture(params=["original", "packed"])
def run(request: pytest.FixtureRequest, out_dir: Path) -> Path:
    """Four steps in two modes by the hook: a loss, a vector saved whole, a matrix as reductions."""
    with Hook(
        out_dir=out_dir,
        layout=request.param,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean"], norms=["l2"]),
        include_collections=["vectors"],
    ) as hook:
        hook.get_collection("vectors").include("vector")
        hook.get_collection("vectors").reduction_config = ReductionConfig(save_raw_tensor=True)
        for number in range(4):
            hook.set_mode(modes.EVAL if number == 2 else modes.TRAIN)
            hook.step()
            hook.save_tensor("vector", np.array([1.0, -3.0], np.float32) * number)
            hook.save_tensor("matrix", np.full((2, 2), number, np.float32))
            hook.save_scalar("loss", math.nan if number == 1 else 4.0 - number)
    return out_dir


def test_scalars_are_exported_and_reductions_on_request(run):
    kept = Kept()
    carried = create_trial(run).export_to(kept)
    assert [(s.step, s.mode, s.mode_step, s.worker) for s in kept.steps] == [
        (0, modes.TRAIN, 0, "worker_0"),
        (1, modes.TRAIN, 1, "worker_0"),
        (2, modes.EVAL, 0, "worker_0"),
        (3, modes.TRAIN, 2, "worker_0"),
    ]
    assert [list(s.numbers) for s in kept.steps] == [["scalar/loss"]] * 4
    losses = [s.numbers["scalar/loss"] for s in kept.steps]
    assert losses == pytest.approx([4.0, math.nan, 2.0, 1.0], nan_ok=True)
    assert dataclasses.astuple(carried) == (4, 4, 1)

    kept = Kept(reductions=["mean", "abs_max"])
    carried = create_trial(run).export_to(kept)
    # Those of the vector are computed, the maximum of the matrix was not stored.
    assert kept.numbers()[3, "worker_0"] == {
        "vector/mean": -3.0,
        "vector/abs_max": 9.0,
        "matrix/mean": 3.0,
        "scalar/loss": 1.0,
    }
    assert dataclasses.astuple(carried) == (4, 16, 4)


def test_patterns_choose_whose_reductions_are_exported_but_not_scalars(run):
    kept = Kept(reductions="l2", include_regex=["^mat"])
    create_trial(run).export_to(kept)
    assert kept.numbers()[3, "worker_0"] == {"matrix/l2": 6.0, "scalar/loss": 1.0}


def test_a_part_of_a_run_is_exported(run):
    trial = create_trial(run)
    kept = Kept(reductions="mean")
    trial.export_to(kept, mode=modes.TRAIN, start=1, end=2, regex="vec")
    assert kept.numbers() == {(1, "worker_0"): {"vector/mean": -1.0}}
    with pytest.raises(SMDebugValueError, match="worker_0"):
        trial.export_to(Kept(), worker="worker_9")
    with pytest.raises(SMDebugTypeError, match="by an Exporter, not 'mlflow'"):
        trial.export_to("mlflow")


def test_the_time_is_that_of_the_recording(run, out_dir):
    trial = create_trial(run)
    kept = Kept()
    trial.export_to(kept)
    files = [path for path in out_dir.rglob("*") if path.is_file()]
    newest = max(path.stat().st_mtime for path in files)
    for step in kept.steps:
        assert newest - 3600 < step.wall_secs <= newest + 1
    assert trial._core.wall_secs(0, "worker_9") is None
    assert trial._core.wall_secs(99, "worker_0") is None


@pytest.mark.parametrize("layout", ["original", "packed"], indirect=True)
def test_workers_come_one_after_the_other_in_each_step(out_dir):
    for worker in ("worker_1", "worker_0"):
        for number in range(3):
            if (number, worker) != (1, "worker_0"):
                writing.step(
                    out_dir,
                    number,
                    worker,
                    loss=np.float64(number),
                    w=np.full(2, number, np.float32),
                )
    for worker in ("worker_0", "worker_1"):
        writing.collections(out_dir, worker, num_workers=2)
    writing.end(out_dir)
    kept = Kept(reductions="max", include_regex="w")
    create_trial(out_dir).export_to(kept)
    assert [(s.step, s.worker) for s in kept.steps] == [
        *((0, "worker_0"), (0, "worker_1"), (1, "worker_1")),
        *((2, "worker_0"), (2, "worker_1")),
    ]
    for step in kept.steps:
        assert step.numbers == {"loss": step.step, "w/max": step.step}
    kept = Kept()
    create_trial(out_dir).export_to(kept, worker="worker_0")
    assert list(kept.numbers()) == [(0, "worker_0"), (2, "worker_0")]


def test_steps_that_fill_many_batches_stay_whole(out_dir):
    tensors = {f"t{i}": np.float32(i) for i in range(3000)}
    for number in range(30):  # more rows than one batch of the frame holds
        writing.step(out_dir, number, **tensors)
    writing.collections(out_dir)
    writing.end(out_dir)
    kept = Kept()
    carried = create_trial(out_dir).export_to(kept)
    assert dataclasses.astuple(carried) == (30, 90_000, 3000)
    assert [(s.step, len(s.numbers)) for s in kept.steps] == [(n, 3000) for n in range(30)]
    assert kept.steps[-1].numbers["t2999"] == 2999


@pytest.mark.parametrize(
    ("mode", "worker", "prefix"),
    [
        (modes.TRAIN, "worker_0", "train/"),
        (modes.EVAL, "worker_3", "eval/worker_3/"),
        (modes.GLOBAL, "worker_0", ""),
        (modes.GLOBAL, "worker_10", "worker_10/"),
    ],
)
def test_a_prefix_keeps_modes_and_workers_apart(mode, worker, prefix):
    assert StepNumbers(0, mode, 0, 0.0, worker, {}).prefix == prefix


def test_a_choice_knows_what_a_name_stands_for():
    choice = Choice(["mean", "abs_l2", "mean"], "^fc")
    assert choice.reductions == ("mean", "abs_l2")
    assert choice.reductions_of("fc/weight") == ("mean", "abs_l2")
    assert choice.reductions_of("conv/weight") == ()
    assert choice.parts("fc/weight/abs_l2") == ("fc/weight", "abs_l2")
    assert choice.parts("fc/weight/l2") == ("fc/weight/l2", None)
    assert choice.parts("conv/weight/mean") == ("conv/weight/mean", None)
    assert choice.parts("loss") == ("loss", None)
    assert Choice("mean").parts("scalar/mean") == ("scalar/mean", None)


def test_wrong_choices_are_explained():
    with pytest.raises(SMDebugValueError, match=r"'meen' is no reduction.*Did you mean 'mean'\?"):
        Choice(["meen"])
    with pytest.raises(SMDebugValueError, match="not a valid pattern"):
        Choice((), "(")
    with pytest.raises(SMDebugTypeError):
        Choice((), [3])


def test_exporters_are_found_by_name():
    with pytest.raises(SMDebugValueError, match=r"no exporter 'wandbb'.*Did you mean 'wandb'\?"):
        create_exporter("wandbb")
    with pytest.raises(SMDebugTypeError, match=r"no setting 'projekt'.*Did you mean 'project'\?"):
        create_exporter("wandb", projekt="x")


@pytest.mark.parametrize(
    ("name", "settings", "module", "package"),
    [
        ("mlflow", {}, "mlflow", "mlflow"),
        ("wandb", {}, "wandb", "wandb"),
        ("opentelemetry", {}, "opentelemetry", "opentelemetry-sdk"),
    ],
)
def test_a_package_that_is_missing_is_named(name, settings, module, package, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(SMDebugNotImplementedError) as raised:
        create_exporter(name, **settings)
    assert str(raised.value) == (
        f"The exporter '{name}' needs the package {package}, which is not installed; "
        f"install it with: pip install {package}"
    )


def test_a_package_that_is_broken_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "wandb.py").write_text("import a_module_that_wandb_needs\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_wandb_needs"):
        create_exporter("wandb")


def test_importing_the_interface_imports_no_tool():
    code = (
        "import sys, smdebug.exporters, smdebug.cli\n"
        "import smdebug.exporters.mlflow, smdebug.exporters.wandb, smdebug.exporters.opentelemetry\n"
        "print([m for m in ('mlflow', 'wandb', 'opentelemetry', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECS,
        check=True,
    )
    assert done.stdout == "[]\n"


def test_a_block_closes_its_exporter_and_keeps_the_first_error():
    with Kept() as kept:
        assert kept.closed == 0
    assert kept.closed == 1

    class Broken(Kept):
        def close(self) -> None:
            super().close()
            raise SMDebugRuntimeError("second")

    broken = Broken()
    with pytest.raises(SMDebugRuntimeError, match="first"), broken:
        raise SMDebugRuntimeError("first")
    assert broken.closed == 1
    with pytest.raises(SMDebugRuntimeError, match="second"), broken:
        pass


def test_a_batch_is_sent_when_it_is_full_or_has_waited():
    now = 0.0
    sent: list[list[int]] = []
    batch: Batch[int] = Batch(sent.append, 3, 10, clock=lambda: now)
    batch.add([1])
    assert sent == [[1]]  # nothing was sent before: no reason to wait
    batch.add([2])
    batch.add([])
    now = 9.5
    batch.add([3])
    assert sent == [[1]]
    batch.add([4, 5])
    assert sent == [[1], [2, 3, 4]]
    now = 19.5
    batch.add([6])
    assert sent == [[1], [2, 3, 4], [5, 6]]
    batch.add([7, 8])
    batch.flush()
    batch.flush()
    assert sent[3:] == [[7, 8]]
    batch.add(range(10))
    assert sent[4:] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize("secs", [-1, math.inf, math.nan, "soon", None])
def test_a_wrong_time_to_wait_is_refused(secs):
    with pytest.raises(SMDebugValueError, match="batch_secs"):
        Batch(print, 1, secs)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("train/fc.weight/l2", "train/fc.weight/l2"),
        ("a[0](x)", "a_0__x_"),
        ("/a//b/", "_/a/_/b/_"),
        ("../a/.", "__/a/_"),
        ("..a", "__a"),
        ("x" * 251, "x" * 249),
        ("x" * 248 + "/yy", "x" * 248 + "/_"),
        ("", "_"),
    ],
)
def test_names_for_mlflow(name, allowed):
    assert allowed_name(name) == allowed
