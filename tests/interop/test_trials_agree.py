"""Our trial and the original's give the same answers about the same run.

The same script asks both packages for names, steps, modes, workers, values, reductions, shapes,
states of steps, and names by pattern and collection.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import original_view
import pytest
import s3_server
from smdebug import Hook, ReductionConfig, SaveConfig, modes

pytestmark = pytest.mark.skipif(
    not original_view.is_available(), reason="Run tools/venv.sh original first."
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
RUNS = sorted(path.name for path in GOLDEN.iterdir() if (path / "collections").is_dir())
# Tensors that the original writes and cannot read back: a KeyError there, the value here.
KEY_ERRORS = {
    *(f"dtype/{name}" for name in ("int16", "uint16", "uint32", "uint64", "complex64")),
    *(f"dtype/{name}" for name in ("qint8", "quint8", "qint16", "quint16")),
    "layout/large",
}
# Where the original gives another type than was saved, or fails on what it wrote itself.
OTHERS = {
    "dtype/int8": "the original reads it as uint8",
    "empty": "the original cannot read an empty tensor back",
}
ORIGINAL_WRITES = """
import sys
import numpy as np
from smdebug.core.collection_manager import CollectionManager
from smdebug.core.writer import FileWriter
from smdebug.core.modes import ModeKeys
from smdebug.core.access_layer import training_has_ended
manager = CollectionManager()
manager.create_collection("mine")
manager.get("mine").add_tensor_name("w")
manager.set_num_workers(1)
manager.export(sys.argv[1], "worker_0_collections.json")
for step in range(5):
    mode = ModeKeys.EVAL if step % 2 else ModeKeys.TRAIN
    writer = FileWriter(trial_dir=sys.argv[1], step=2 * step, worker="worker_0")
    writer.write_tensor(tdata=np.arange(4, dtype=np.float32) + step, tname="w",
                        mode=mode, mode_step=step // 2)
    writer.write_tensor(tdata=np.float64(step), tname="smdebug/reductions/mean/layer/x",
                        mode=mode, mode_step=step // 2)
    writer.close()
training_has_ended(sys.argv[1])
"""


def differences(theirs: Any, ours: Any, place: str = "") -> Iterator[str]:
    """Places at which two documents differ. The words of messages may; classes may not."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted(set(theirs) | set(ours)):
            if key != "message":
                yield from differences(theirs.get(key), ours.get(key), f"{place}/{key}")
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for number, (a, b) in enumerate(zip(theirs, ours, strict=True)):
            yield from differences(a, b, f"{place}[{number}]")
    elif "/reductions[" in place and place.endswith("/shape") and (theirs, ours) == ([1], []):
        pass  # a reduction is one number here, an array of one element there
    elif theirs != ours:
        yield f"{place}: {str(theirs)[:200]} there, {str(ours)[:200]} here"


def both(run: Path | str) -> tuple[dict, dict]:
    theirs = original_view.read_run(run, timeout_secs=120)
    ours = original_view.read_run_with_ours(run, timeout_secs=120)
    assert "error" not in theirs, theirs
    assert "error" not in ours, ours
    return theirs, ours


@pytest.mark.parametrize("name", RUNS)
def test_golden_runs_are_the_same_to_both(name: str) -> None:
    theirs, ours = both(GOLDEN / name)
    chosen = {}
    if name == "types":
        for tensor in (*KEY_ERRORS, *OTHERS):
            chosen[tensor] = (theirs["tensors"].pop(tensor), ours["tensors"].pop(tensor))
        # Each of these differences is still there, or it must leave the list.
        for tensor, (there, here) in chosen.items():
            entry = there["entries"][0]["value"]
            assert (entry.get("error") == "KeyError") == (tensor in KEY_ERRORS), tensor
            assert "error" not in here["entries"][0]["value"], tensor
            assert list(differences(there, here)), tensor
    assert list(differences(theirs, ours)) == []


def record(place: Path | str) -> None:
    """A run of our hook with modes, reductions, collections and steps that are left out."""
    config = SaveConfig(save_interval=2)
    with Hook(place, save_config=config) as hook:
        hook.get_collection("reduced").reduction_config = ReductionConfig(["min", "mean"], ["max"])
        hook.get_collection("reduced").save_config = config
        for step in range(9):
            hook.set_mode(modes.EVAL if step > 5 else modes.TRAIN)
            hook.step()
            hook.save_tensor("layer/w1", np.arange(6, dtype=np.float32).reshape(2, 3) * step)
            hook.save_tensor("weight", np.arange(5) * step)
            hook.save_tensor("layer/r", np.arange(4.0) + step, "reduced")
            hook.save_scalar("loss", 1.0 / (step + 1))


def write_with_original(place: Path | str) -> None:
    subprocess.run(
        [str(original_view.PYTHON), "-c", ORIGINAL_WRITES, str(place)],
        check=True,
        capture_output=True,
        timeout=120,
    )


WRITERS = {"ours": record, "theirs": write_with_original}


@pytest.mark.parametrize("writer", WRITERS)
def test_runs_in_directories_are_the_same_to_both(writer: str, tmp_path: Path) -> None:
    WRITERS[writer](tmp_path / "run")
    theirs, ours = both(tmp_path / "run")
    assert ours["tensor_names"]
    assert list(differences(theirs, ours)) == []


@pytest.mark.parametrize("writer", WRITERS)
def test_runs_in_buckets_are_the_same_to_both(
    writer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with s3_server.running() as server:
        for name, value in s3_server.environment(server.url, tmp_path).items():
            if name != "PYTHONPATH":
                monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        uri = f"s3://{server.make_bucket('agree')}/some/run"
        WRITERS[writer](uri)
        theirs, ours = both(uri)
    assert ours["tensor_names"]
    assert list(differences(theirs, ours)) == []
