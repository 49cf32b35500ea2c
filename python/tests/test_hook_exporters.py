"""Hooks with exporters: each saved step reaches them, and nothing of theirs reaches training."""

from __future__ import annotations

import copy
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Messages
from smdebug import Hook, ReductionConfig, SaveConfig, modes
from smdebug.exceptions import SMDebugTypeError
from smdebug.exporters import Exporter, StepNumbers


class Collecting(Exporter):
    """Keeps what it is given; fails at a step if it is told to."""

    def __init__(self, fails_at: int | None = None, **choice: Any) -> None:
        super().__init__(**choice)
        self.fails_at = fails_at
        self.steps: list[StepNumbers] = []
        self.threads: set[str] = set()
        self.closed = 0

    def export(self, step: StepNumbers) -> None:
        if step.step == self.fails_at:
            raise OSError("the network is down")
        self.steps.append(step)
        self.threads.add(threading.current_thread().name)

    def close(self) -> None:
        self.closed += 1


def record(out_dir: Path, *exporters: Exporter, steps: int = 4, **options: Any) -> None:
    with Hook(
        out_dir=str(out_dir),
        save_config=SaveConfig(save_interval=2),
        include_collections=["weights", "losses"],
        reduction_config=ReductionConfig(reductions=["mean", "max"]),
        exporters=exporters,
        **options,
    ) as hook:
        hook.set_mode(modes.TRAIN)
        for step in range(steps):
            hook.begin_step()
            hook.save("fc.weight", np.array([step, 2 * step], dtype=np.float32))
            hook.save("loss_output", np.array([step + 0.5]))
            hook.save_scalar("lr", 0.25)


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_each_saved_step_reaches_every_exporter(out_dir: Path, layout: str) -> None:
    one, other = Collecting(reductions=["mean"]), Collecting(reductions=["max"])
    record(out_dir, one, other, layout=layout)
    assert [(s.step, s.mode, s.mode_step, s.worker) for s in one.steps] == [
        (step, modes.TRAIN, step, "worker_0") for step in range(4)
    ]
    assert one.steps[2].numbers == {"scalar/lr": 0.25, "loss_output": 2.5, "fc.weight/mean": 3.0}
    assert one.steps[1].numbers == {"scalar/lr": 0.25}, "a step that saves scalars only"
    assert other.steps[2].numbers["fc.weight/max"] == 4.0
    assert "fc.weight/mean" not in other.steps[2].numbers
    assert all(s.wall_secs > 1.7e9 for s in one.steps)
    assert one.threads == {"smdebug-exporters"}
    assert one.closed == other.closed == 1


def test_one_that_fails_is_left_alone(out_dir: Path, messages: Messages) -> None:
    broken, well = Collecting(fails_at=1), Collecting()
    record(out_dir, broken, well)
    assert [s.step for s in broken.steps] == [0]
    assert [s.step for s in well.steps] == [0, 1, 2, 3]
    assert well.closed == 1
    assert [text for _, text in messages.lines if "Collecting failed" in text] == [
        "Collecting failed and is not used any more; the run itself is not harmed. "
        "OSError: the network is down"
    ]


def test_patterns_choose_tensors_but_not_scalars(out_dir: Path) -> None:
    chosen = Collecting(reductions=["mean"], include_regex="nothing")
    record(out_dir, chosen)
    assert set(chosen.steps[2].numbers) == {"scalar/lr", "loss_output"}


def test_what_is_no_exporter_is_refused(out_dir: Path) -> None:
    with pytest.raises(
        SMDebugTypeError, match=r"must be instances of smdebug\.exporters\.Exporter"
    ):
        Hook(str(out_dir), exporters=["mlflow"])  # type: ignore[list-item]


def test_a_hook_that_cannot_be_made_leaves_no_thread(out_dir: Path) -> None:
    before = threading.active_count()
    with pytest.raises(Exception, match="include_workers"):
        Hook(str(out_dir), include_workers="some", exporters=[Collecting()])
    for thread in threading.enumerate():
        if thread.name == "smdebug-exporters":
            thread.join(60)
    assert threading.active_count() == before


def test_copies_and_dry_runs_export_nothing(out_dir: Path) -> None:
    exporter = Collecting()
    with Hook(str(out_dir), exporters=[exporter], dry_run=True) as hook:
        copied = copy.deepcopy(hook)
        copied.begin_step()
        copied.save_scalar("x", 1)
        copied.close()
        hook.begin_step()
        hook.save_scalar("x", 1)
    assert exporter.steps == []
    assert exporter.closed == 1
