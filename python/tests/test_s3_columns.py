"""Matrices and Parquet tables of runs in object stores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from smdebug import Hook, ReductionConfig
from smdebug.exceptions import SMDebugValueError
from smdebug.trials import create_trial

STEPS = 4


@pytest.fixture(params=["original", "packed"])
def place(request: pytest.FixtureRequest, s3: str) -> str:
    """A finished run of one weight."""
    place = f"s3://{s3}/run"
    with Hook(
        place,
        save_all=True,
        save_config={"save_interval": 1},
        reduction_config=ReductionConfig(reductions=["mean"]),
        layout=request.param,
    ) as hook:
        for step in range(STEPS):
            hook.step()
            hook.save("w", np.full(3, step, np.float32))
    return place


def test_matrices_are_read(place: str) -> None:
    matrix = create_trial(place).matrix("mean")
    assert matrix.values.tolist() == [[0, 1, 2, 3]]


def test_tables_are_made_of_them_but_not_in_them(place: str, tmp_path: Path) -> None:
    trial = create_trial(place)
    trial.compact(tmp_path / "tables")
    assert pq.read_table(tmp_path / "tables/steps.parquet").num_rows == STEPS
    assert pq.read_table(tmp_path / "tables/statistics.parquet")["mean"].to_pylist() == [0, 1, 2, 3]
    with pytest.raises(SMDebugValueError, match="local directory"):
        trial.compact(place)
