"""Reading runs from S3: the same answers as from a directory, for few requests."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import recorded
import smdebug
import writing
from smdebug import ReductionConfig, SaveConfig, _core, modes
from smdebug.analysis.utils import no_refresh
from smdebug.exceptions import NoMoreData, SMDebugError, TensorUnavailableForStep
from smdebug.trials import S3Trial, Trial, create_trial


@contextmanager
def requests_of(trial: Trial) -> Iterator[Counter[str]]:
    """Counts what is sent meanwhile."""
    before = Counter(trial._storage.requests)
    counted: Counter[str] = Counter()
    yield counted
    counted.update(Counter(trial._storage.requests) - before)


STEPS, TENSORS = 6, 20


def record(out_dir: object) -> None:
    """Reductions of many tensors and one large value at each step."""
    hook = smdebug.Hook(
        out_dir,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean", "max"]),
        include_collections=["small", "large"],
    )
    hook.get_collection("small").include("^layer")
    hook.get_collection("large").include("^large$")
    hook.get_collection("large").reduction_config = ReductionConfig(save_raw_tensor=True)
    for number in range(STEPS):
        hook.set_mode(modes.EVAL if number == 3 else modes.TRAIN)
        with hook.step():
            for i in range(TENSORS):
                hook.save_tensor(f"layer{i}", np.full(4, number + i, np.float32))
            hook.save_tensor("large", np.full(100_000, number, np.float32))
            hook.save_scalar("loss", 1.0 / (number + 1))
    hook.close()


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


def test_a_value_costs_one_get_and_no_list(uri: str) -> None:
    trial = create_trial(uri)
    tensor = trial.tensor("large")
    with requests_of(trial) as counted:
        assert tensor.value(2)[0] == 2
    assert counted == {"GET": 1}


def test_all_reductions_of_a_step_cost_one_get(uri: str) -> None:
    trial = create_trial(uri)
    tensors = [trial.tensor(f"layer{i}") for i in range(TENSORS)]
    with requests_of(trial) as counted:
        for i, tensor in enumerate(tensors):
            assert tensor.reduction_value(4, "mean") == 4 + i
            assert tensor.reduction_values(4)[("max", False)] == 4 + i
    assert counted == {"GET": 1}


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


def test_a_reader_follows_a_writer(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Trial] = []
    reader = threading.Thread(target=lambda: opened.append(create_trial(f"s3://{s3}/live")))
    reader.start()
    record(f"s3://{s3}/live")
    reader.join(recorded.TIMEOUT_SECS)
    opened[0].wait_for_steps([STEPS - 1])
    assert opened[0].tensor("large").value(STEPS - 1)[0] == STEPS - 1
    with pytest.raises(NoMoreData):
        opened[0].wait_for_steps([STEPS])


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
