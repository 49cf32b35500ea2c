"""A tensor above 2 GiB in a packed run: recorded, read back, verified, and refused by repack."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import smdebug
from programs import ROOT, Cases
from smdebug.trials import create_trial

PROGRAM = ROOT / "build/dev/smdebug"
ROW_BYTES = 1 << 20
ROWS = 2253  # 2.2 GiB
CHUNK_ROWS = 64


def content(first: int, rows: int) -> np.ndarray:
    """Rows of the tensor; no two are the same."""
    start = np.arange(first, first + rows, dtype=np.uint64)[:, None] * np.uint64(0x9E3779B97F4A7C15)
    return (start + np.arange(ROW_BYTES // 8, dtype=np.uint64)).view(np.uint8)


def chunks() -> range:
    return range(0, ROWS, CHUNK_ROWS)


def record(run: Path) -> None:
    """One step with the tensor and a number."""
    tensor = np.empty((ROWS, ROW_BYTES), np.uint8)
    for first in chunks():
        tensor[first : first + CHUNK_ROWS] = content(first, min(CHUNK_ROWS, ROWS - first))
    os.environ["SMDEBUG_STRICT"] = "1"
    every = smdebug.SaveConfig(save_interval=1)
    with smdebug.Hook(run, layout="packed", save_all=True, save_config=every) as hook:
        hook.step()
        hook.save_tensor("large", tensor)
        hook.save_scalar("loss", 0.5)


def read_back(run: Path) -> list[str]:
    """What is wrong with the value."""
    tensor = create_trial(str(run)).tensor("large")
    value = tensor.value(0)
    if value.shape != (ROWS, ROW_BYTES) or value.dtype != np.uint8:
        return [f"it came back as {value.dtype}{value.shape}"]
    wrong = [
        first
        for first in chunks()
        if not np.array_equal(
            value[first : first + CHUNK_ROWS], content(first, min(CHUNK_ROWS, ROWS - first))
        )
    ]
    return [f"rows from {wrong[0]} on differ"] if wrong else []


def verified(run: Path) -> list[str]:
    done = subprocess.run([PROGRAM, "verify", "--json", run], capture_output=True, check=False)
    report = json.loads(done.stdout)
    # Two parts and the number.
    right = report["damage"] == 0 and report["tensors"] == report["payloads_checked"] == 3
    return [] if right else [str(report)]


def refused(run: Path, copy: Path) -> list[str]:
    done = subprocess.run(
        [PROGRAM, "repack", run, copy, "--layout", "original"],
        capture_output=True,
        text=True,
        check=False,
    )
    problems = []
    if done.returncode != 2 or "'large'" not in done.stderr or "2362441728" not in done.stderr:
        problems.append(f"exit status {done.returncode}: {done.stderr}")
    if copy.exists():
        problems.append("something was written")
    return problems


def main() -> int:
    cases = Cases()
    with tempfile.TemporaryDirectory(prefix="smd-large-") as root:
        run = Path(root) / "run"
        record(run)
        cases.record("a tensor of 2.2 GiB comes back", read_back(run))
        cases.record("verify compares its parts", verified(run))
        cases.record("repack to the original layout refuses it", refused(run, Path(root) / "copy"))
    return cases.finish()


if __name__ == "__main__":
    sys.exit(main())
