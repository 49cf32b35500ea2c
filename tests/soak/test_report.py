"""What readers, visitors and files tell is judged as it should be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import report
import scene
import smdebug
from conductor import Outage
from ledger import Ledger
from recorder import save_step
from stage import Recording


class Places:
    """As much of a stage as the checks of recorded runs need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment: dict[str, str] = {}

    def ledger(self, recording: Recording) -> Path:
        return self.folder / f"{recording.name}.jsonl"


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    return Recording("it", 7, str(tmp_path / "run"))


def record(recording: Recording, places: Places) -> Ledger:
    """Five steps, of which the first is missing in the ledger."""
    ledger = Ledger(places.ledger(recording))
    with smdebug.Hook(
        recording.uri,
        save_config=smdebug.SaveConfig(save_interval=1),
        include_regex=["^(mark|layers|gradient|outputs|big)"],
        include_collections=["reduced"],
    ) as hook:
        hook.get_collection("reduced").include("^reduced/")
        hook.get_collection("reduced").reduction_config = smdebug.ReductionConfig(["min", "max"])
        for step in range(5):
            checksum = save_step(hook, recording.number, ledger.life, step)
            if step > 0:
                ledger.report(step, checksum)
    return ledger


def test_a_run_that_holds_what_was_reported_is_well(places: Places, recording: Recording) -> None:
    record(recording, places).close()
    assert report.lost_steps(places, recording) == (4, [])
    assert report.damage(places, recording) == []


def test_a_step_that_is_gone_is_told(places: Places, recording: Recording) -> None:
    record(recording, places).close()
    [index] = Path(recording.uri).glob("index/*/000000000003_worker_0.json")
    index.unlink()
    count, [problem] = report.lost_steps(places, recording)
    assert count == 4
    assert problem.startswith("step 3 was reported, and cannot be read")


def test_a_changed_value_is_told(places: Places, recording: Recording) -> None:
    record(recording, places).close()
    [events] = Path(recording.uri).glob("events/000000000002/*")
    content = bytearray(events.read_bytes())
    value = scene.raw(7, 1, 2)["layers.0/bias"].tobytes()
    content[content.index(value)] ^= 1
    events.write_bytes(content)
    _, [problem] = report.lost_steps(places, recording)
    assert problem.startswith("step 2 was reported")
    assert report.damage(places, recording) != []


def test_a_run_that_was_not_ended_is_told(places: Places, recording: Recording) -> None:
    record(recording, places)
    assert report.lost_steps(places, recording)[1] == ["the run was not ended"]


def test_a_run_without_reports_is_told(places: Places, recording: Recording) -> None:
    assert report.lost_steps(places, recording) == (0, ["no step was reported"])


def test_a_checksum_depends_on_everything_that_a_step_holds() -> None:
    tensors, extremes = {"a": np.zeros(2, np.float32)}, {"r": (0.0, 1.0)}
    whole = scene.checksum(tensors, extremes, 1.0)
    assert whole == scene.checksum({"a": np.zeros(2, np.float32)}, {"r": (0.0, 1.0)}, 1.0)
    others = [
        scene.checksum({"a": np.zeros(2, np.int32)}, extremes, 1.0),
        scene.checksum({"a": np.zeros((2, 1), np.float32)}, extremes, 1.0),
        scene.checksum({"b": np.zeros(2, np.float32)}, extremes, 1.0),
        scene.checksum(tensors, {"r": (0.0, 2.0)}, 1.0),
        scene.checksum(tensors, extremes, 2.0),
    ]
    assert whole not in others


def test_only_failures_around_an_outage_are_explained() -> None:
    outages = [Outage("server", 100.0, 110.0)]
    failures = [(50.0, "early"), (96.0, "cut off"), (105.0, "refused"), (120.0, "late")]
    assert report.unexplained(failures, outages) == ["early", "late"]


def test_a_wrong_loss_of_tail_is_told(tmp_path: Path) -> None:
    output = tmp_path / "tail.out"
    lines = [
        json.dumps({"step": step, "numbers": {scene.LOSS: scene.loss(step) + (step == 2)}})
        for step in range(4)
    ]
    output.write_text("\n".join([*lines, '{"step": 4, "numb']))
    assert report.wrong_losses(output) == (4, [f"step 2: {scene.loss(2) + 1}"])


def test_complaints_of_readers_are_told(tmp_path: Path) -> None:
    output = tmp_path / "reader.out"
    output.write_text("some log\nstep 3 cannot be read: gone\nchecked 4\n")
    assert report.wrong_lines(output) == ["step 3 cannot be read: gone"]
