"""Reading runs from S3: what holds for each layout on disk."""

from __future__ import annotations

import threading

import pytest
import recorded
from s3_runs import STEPS, TENSORS, record, requests_of
from smdebug.exceptions import NoMoreData
from smdebug.trials import Trial, create_trial


@pytest.fixture
def uri(s3: str) -> str:
    record(f"s3://{s3}/runs/one")
    return f"s3://{s3}/runs/one"


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


def test_a_reader_follows_a_writer(s3: str) -> None:
    opened: list[Trial] = []
    reader = threading.Thread(target=lambda: opened.append(create_trial(f"s3://{s3}/live")))
    reader.start()
    record(f"s3://{s3}/live")
    reader.join(recorded.TIMEOUT_SECS)
    opened[0].wait_for_steps([STEPS - 1])
    assert opened[0].tensor("large").value(STEPS - 1)[0] == STEPS - 1
    with pytest.raises(NoMoreData):
        opened[0].wait_for_steps([STEPS])
