"""Reading runs from S3: the same answers as from a directory, for few requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import writing
from s3_runs import STEPS, TENSORS, record, requests_of
from smdebug import _core, modes
from smdebug.analysis.utils import no_refresh
from smdebug.exceptions import SMDebugError, TensorUnavailableForStep
from smdebug.trials import S3Trial, create_trial


@pytest.fixture
def uri(s3: str) -> str:
    record(f"s3://{s3}/runs/one")
    return f"s3://{s3}/runs/one"


def test_a_run_in_s3_answers_like_one_in_a_directory(uri: str, tmp_path: Path) -> None:
    record(tmp_path / "local")
    there, here = create_trial(uri), create_trial(tmp_path / "local")
    assert isinstance(there, S3Trial)
    assert there.name == "one"
    assert there.tensor_names() == here.tensor_names()
    assert there.steps() == here.steps()
    assert there.steps(modes.EVAL) == [0]
    assert there.workers() == here.workers()
    assert there.collection("small").tensor_names == here.collection("small").tensor_names
    assert there.loaded_all_steps
    assert there.diff(here).equal
    assert there.last_index_token == "runs/one/index/000000000/000000000005_worker_0.json"
    assert there.frame().to_arrow() == here.frame().to_arrow()


def test_opening_costs_two_lists_and_a_get_per_file(uri: str) -> None:
    trial = create_trial(uri)
    counts = Counter(trial._storage.requests)
    # One GET asks whether the run is a packed one.
    assert counts == {"LIST": 2, "GET": STEPS + 2}


def test_series_cost_one_get_per_step_however_many_there_are(uri: str) -> None:
    trial = create_trial(uri)
    trial.steps()
    with requests_of(trial) as counted, no_refresh(trial):
        for i in range(TENSORS):
            assert len(trial.tensor(f"layer{i}").series("mean")[0]) == STEPS
    assert counted == {"GET": STEPS}


def test_a_frame_costs_few_gets(uri: str) -> None:
    trial = create_trial(uri)
    trial.steps()
    with requests_of(trial) as counted:
        table = trial.frame(reductions=["mean", "max"]).to_arrow()
    assert table.num_rows >= STEPS * TENSORS
    # The small records of a step lie on both sides of the large one.
    assert counted["GET"] <= 3 * STEPS
    assert counted["LIST"] == 0


def test_a_look_for_news_costs_one_list(s3: str, tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    remote = _core.Storage.open(f"s3://{s3}/live")
    _core.sync_to(str(tmp_path), remote)
    trial = create_trial(f"s3://{s3}/live")
    with requests_of(trial) as counted:
        for _ in range(5):
            assert trial.steps() == [0]
    assert counted == {"LIST": 5}
    writing.step(tmp_path, 1)
    _core.sync_to(str(tmp_path), remote)
    with requests_of(trial) as counted:
        assert trial.steps() == [0, 1]
    assert counted == {"LIST": 1, "GET": 1}
    writing.end(tmp_path)
    _core.sync_to(str(tmp_path), remote)
    trial.steps()
    trial.steps()
    assert trial.loaded_all_steps
    with requests_of(trial) as counted:
        trial.steps()
    assert not counted


def test_a_missing_bucket_is_said(s3: str) -> None:
    with pytest.raises(SMDebugError, match="no-such-bucket-here"):
        create_trial("s3://no-such-bucket-here/run")


def test_a_lost_event_object_is_said(uri: str) -> None:
    trial = create_trial(uri)
    storage = _core.Storage.open(uri)
    storage.remove("events/000000000001/000000000001_worker_0.tfevents")
    with pytest.raises(TensorUnavailableForStep):
        trial.tensor("large").value(1)


def test_the_root_of_a_bucket_may_be_a_run(s3: str) -> None:
    record(f"s3://{s3}")
    assert create_trial(f"s3://{s3}").steps() == list(range(STEPS))
