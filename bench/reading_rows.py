"""The rows of the table about reading runs: opening, values, series, following."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from smdebug import _core, modes
from smdebug.collection import CollectionManager
from smdebug.trials import create_trial

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
OUR_PYTHON = Path(sys.executable)
OUR_PACKAGE = str(ROOT / "python")

# (what, ours, theirs, ratio, aim)
Line = tuple[str, str, str, str, str]


def write_reductions(out_dir: Path, workers: int, steps: int, tensors: int) -> None:
    """A finished run that holds one reduction of each tensor."""
    names = [f"smdebug/reductions/min/layer{i}/weight" for i in range(tensors)]
    for w in range(workers):
        for step in range(steps):
            file = _core.StepFile(str(out_dir), step, f"worker_{w}")
            value = np.float32(step)
            for name in names:
                file.tensor(name, value, modes.TRAIN, step, 0.0)
            file.close()
        manager = CollectionManager(create_default=True)
        manager.num_workers = workers
        manager.export(str(out_dir), f"worker_{w}_collections.json")
    (out_dir / _core.END_MARKER).touch()


def write_values(out_dir: Path, steps: int, tensors: int) -> None:
    """A finished run of small tensors as they are."""
    value = np.linspace(-1, 1, 100, dtype=np.float32)
    for step in range(steps):
        file = _core.StepFile(str(out_dir), step, "worker_0")
        for i in range(tensors):
            file.tensor(f"layer{i}/weight", value, modes.TRAIN, step, 0.0)
        file.close()
    CollectionManager(create_default=True).export(str(out_dir), "worker_0_collections.json")
    (out_dir / _core.END_MARKER).touch()


def write_tensor(out_dir: Path, array: np.ndarray) -> None:
    """A finished run of one tensor, and its bytes in a file of their own beside it."""
    file = _core.StepFile(str(out_dir), 0, "worker_0")
    file.tensor("weight", array, modes.TRAIN, 0, 0.0)
    file.close()
    CollectionManager(create_default=True).export(str(out_dir), "worker_0_collections.json")
    (out_dir / _core.END_MARKER).touch()
    array.tofile(out_dir / "plain.bin")


def read(python: Path, scenario: str, run: Path, package: str) -> dict:
    """What bench/reading.py measures in one of the environments."""
    done = subprocess.run(
        [str(python), str(ROOT / "bench/reading.py"), scenario, str(run)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": package},
    )
    return json.loads(done.stdout)


def ours_and_theirs(scenario: str, run: Path) -> tuple[dict, dict]:
    """The best of three of ours, one of theirs."""
    ours = [read(OUR_PYTHON, scenario, run, OUR_PACKAGE) for _ in range(3)]
    theirs = read(ROOT / ".venvs/original/bin/python", scenario, run, "")
    return min(ours, key=lambda found: found["secs"]), theirs


def latency(out_dir: Path, steps: int) -> float:
    """Median seconds from a writer's commit of a step to its being seen by a waiting reader."""
    CollectionManager(create_default=True).export(str(out_dir), "worker_0_collections.json")
    trial = create_trial(str(out_dir))
    committed: list[float] = []
    ready = threading.Semaphore(0)

    def write() -> None:
        for step in range(steps):
            ready.acquire()
            time.sleep(0.005)  # so that the reader waits already
            file = _core.StepFile(str(out_dir), step, "worker_0")
            file.tensor("w", np.float32(step), modes.TRAIN, step, 0.0)
            file.close()
            committed.append(time.perf_counter())

    writer = threading.Thread(target=write)
    writer.start()
    seen = []
    for step in range(steps):
        ready.release()
        trial.wait_for_steps([step])
        seen.append(time.perf_counter())
    writer.join()
    return statistics.median(b - a for a, b in zip(committed, seen, strict=True))


def listing_secs(run: Path) -> float:
    """Median seconds of `smdebug ls`, from start to end of the process."""
    command = [str(ROOT / "build/dev/smdebug"), "ls", str(run)]
    found = []
    for _ in range(30):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def idle_share(out_dir: Path, secs: float) -> float:
    """Part of a core that a follower of a silent run uses."""
    trial = create_trial(str(out_dir))

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    before, start = used(), time.perf_counter()
    while time.perf_counter() - start < secs:
        trial._core.wait(1.0)
        trial.refresh_data()
    return (used() - before) / (time.perf_counter() - start)


def lines(base: Path, quick: bool, text: Callable[[float], str]) -> list[Line]:
    """All rows; `text` shows seconds."""
    rows: list[Line] = []

    workers, steps, tensors = (8, 20, 500) if quick else (64, 50, 500)
    write_reductions(base / "wide", workers, steps, tensors)
    ours, theirs = ours_and_theirs("open", base / "wide")
    entries = f"{workers * steps * tensors:,} index entries"
    rows.append(
        (
            f"open {entries}",
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.0f}×",
            "≥ 20×, ≤ 1 s",
        )
    )
    rows.append(
        (
            f"open {entries}, memory",
            f"{ours['memory_mb']:.0f} MB",
            f"{theirs['memory_mb']:.0f} MB",
            f"{theirs['memory_mb'] / max(ours['memory_mb'], 0.1):.0f}×",
            "≤ 100 MB",
        )
    )

    write_reductions(base / "long", 1, 40 if quick else 200, 1000)
    ours, theirs = ours_and_theirs("first_value", base / "long")
    assert ours["value"] == theirs["value"]
    rows.append(
        (
            f"open to first value, {'40' if quick else '200'} k entries",
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.0f}×",
            "≥ 20×",
        )
    )

    write_reductions(base / "series", 1, 200, 40 if quick else 200)
    ours, theirs = ours_and_theirs("series", base / "series")
    assert (ours["values"], ours["total"]) == (theirs["values"], theirs["total"])
    rows.append(
        (
            f"a reduction over time, {40 if quick else 200} tensors × 200 steps",
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.0f}×",
            "≥ 100×",
        )
    )

    write_values(base / "values", 200, 40 if quick else 200)
    ours, theirs = ours_and_theirs("rule", base / "values")
    assert ours["values"] == theirs["values"]
    rows.append(
        (
            f"a rule in Python, {40 if quick else 200} tensors × 200 steps",
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.0f}×",
            "≥ 20×",
        )
    )

    size = 64 * MIB if quick else 256 * MIB
    write_tensor(base / "raw", np.random.default_rng(0).random(size // 4, dtype=np.float32))
    ours, theirs = ours_and_theirs("raw", base / "raw")
    label = f"read one {size // MIB} MiB tensor"
    rows.append(
        (
            label,
            text(ours["secs"]),
            text(theirs["secs"]),
            f"{theirs['secs'] / ours['secs']:.1f}×",
            "",
        )
    )
    rows.append(
        (
            f"{label}, beside numpy.fromfile",
            text(ours["secs"]),
            text(ours["fromfile_secs"]) + " (NumPy)",
            f"{ours['secs'] / ours['fromfile_secs']:.2f} of it",
            "≤ 1.3",
        )
    )

    (base / "live").mkdir()
    rows.append(
        (
            "a new step seen by a waiting reader, median",
            text(latency(base / "live", 50 if quick else 300)),
            "polls every 2 s",
            "",
            "≤ 10 ms",
        )
    )
    rows.append(
        (
            "a follower of a silent run",
            f"{100 * idle_share(base / 'live', 2 if quick else 5):.2f} % of a core",
            "",
            "",
            "< 1 %",
        )
    )
    rows.append(
        (
            "smdebug ls on a small run, median",
            text(listing_secs(base / "live")),
            "",
            "",
            "< 30 ms",
        )
    )
    return rows
