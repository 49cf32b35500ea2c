"""What tests of arrays that are saved by hand share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from smdebug import Hook, ReductionConfig, SaveConfig

STATISTICS = ReductionConfig(
    reductions=["min", "max", "mean", "std", "sum"], abs_reductions=["mean"], norms=["l1", "l2"]
)


def hook_for(path: Path, **options) -> Hook:
    return Hook(str(path), include_regex=[".*"], save_config=SaveConfig(save_interval=1), **options)


def check_statistics(tensor, step: int, values: np.ndarray) -> None:
    """All of STATISTICS, against float64 on the host."""
    exact = values.astype(np.float64)
    magnitudes = np.abs(exact)
    scale = magnitudes.max()
    expected = {
        "min": exact.min(),
        "max": exact.max(),
        "mean": exact.mean(),
        "std": exact.std(),
        "l1": magnitudes.sum(),
        "l2": np.linalg.norm(exact),
    }
    found = {name: float(tensor.reduction_value(step, name)) for name in expected}
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-6 * scale)
    # Positive and negative elements may leave next to nothing.
    total = float(tensor.reduction_value(step, "sum"))
    assert total == pytest.approx(exact.sum(), rel=1e-6, abs=1e-6 * expected["l1"])
    mean = float(tensor.reduction_value(step, "mean", abs=True))
    assert mean == pytest.approx(magnitudes.mean(), rel=1e-6)
