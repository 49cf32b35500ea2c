"""The released package reads its own golden runs the way expected.json says, flaws included."""

from __future__ import annotations

import json
from pathlib import Path

import original_view
import pytest

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
RUNS = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["runs"]

# Types it writes and cannot read back, or reads as another type.
FLAWS = {
    "types": {
        "dtype/int8": "uint8",
        "dtype/int16": "KeyError",
        "dtype/uint16": "KeyError",
        "dtype/uint32": "KeyError",
        "dtype/uint64": "KeyError",
        "dtype/complex64": "KeyError",
        "dtype/qint8": "KeyError",
        "dtype/quint8": "KeyError",
        "dtype/qint16": "KeyError",
        "dtype/quint16": "KeyError",
        "dtype/qint32": "int32",
        "layout/large": "KeyError",
        "empty": "SMDebugValueError",
    }
}
needs_original = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)


@needs_original
@pytest.mark.parametrize("name", sorted(RUNS))
def test_original_sees_what_is_expected(name: str) -> None:
    document = original_view.read_run(GOLDEN / name)
    assert original_view.differences(RUNS[name], document) == FLAWS.get(name, {})
    assert document["known_steps"] == RUNS[name]["steps"]
    assert document["ended"] == RUNS[name]["ended"]


@needs_original
def test_missing_collections_of_a_finished_run_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "training_job_end.ts").touch()
    assert original_view.read_run(tmp_path)["error"] == "MissingCollectionFiles"


@needs_original
def test_reader_gives_up_on_a_run_that_never_starts(tmp_path: Path) -> None:
    assert original_view.read_run(tmp_path, timeout_secs=3)["error"] == "Timeout"
