"""Broken and malicious runs: a clear error or a right answer, and nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
PROGRAM = ROOT / "build/dev/smdebug"
sys.path.insert(0, str(HERE))

import cases  # noqa: E402
import good_run  # noqa: E402

PROCESSES = 2
SUITE_SECS = 900


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What came out of each case."""
    folder = tmp_path_factory.mktemp("good")
    good_run.record(folder / "good")
    good_run.record(folder / "packed", "packed")
    good_run.plant_secret(folder)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "python"),
        "SMDEBUG_TRAINING_END_DELAY_REFRESH": "0",
        "SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT": "1",
    }
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                str(HERE / "prober.py"),
                str(folder / "good"),
                str(PROGRAM),
                str(first),
                str(PROCESSES),
            ],
            stdout=subprocess.PIPE,
            env=environment,
        )
        for first in range(PROCESSES)
    ]
    found = {}
    for process in processes:
        out, _ = process.communicate(timeout=SUITE_SECS)
        assert process.returncode == 0
        for line in out.splitlines():
            document = json.loads(line)
            found[document["name"]] = document
    return found


@pytest.mark.parametrize("name", list(cases.by_name()))
def test_a_broken_run_is_survived(name: str, results: dict[str, dict[str, Any]]) -> None:
    case = cases.by_name()[name]
    result = results[name]
    for probe in result["probes"]:
        assert probe["failures"] == []
        assert not probe["leaked"]
        if case.opens is not None:
            assert probe["opened"] == case.opens, probe["messages"]
        assert not probe["opened"] or probe["wrong_steps"] == [], probe["messages"]
        assert probe["opened"] or probe["messages"]
    checked = result["probes"][-1]
    assert case.tells in " ".join(checked["messages"]), checked["messages"]


@pytest.mark.parametrize("name", list(cases.by_name()))
def test_the_command_verify_ends_well(name: str, results: dict[str, dict[str, Any]]) -> None:
    verified = results[name]["verify"]
    assert "failure" not in verified, verified
    assert verified["code"] in (0, 1, 2)


def test_good_runs_are_good(results: dict[str, dict[str, Any]]) -> None:
    for name in ("nothing_is_wrong", "golden_run", "packed_nothing_is_wrong"):
        assert results[name]["verify"] == {"code": 0, "damage": 0}
    for probe in results["nothing_is_wrong"]["probes"]:
        problems = [m for m in probe["messages"] if "nobody" not in m and "99" not in m]
        assert [m for m in problems if "Corrupt" in m or "File" in m] == []
