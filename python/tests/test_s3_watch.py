"""`smdebug watch` and `diagnose --save` on runs in object stores."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import smdebug
from recorded import TIMEOUT_SECS
from smdebug import _core

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("SMDEBUG_PROGRAM", ROOT / "build/dev/smdebug"))


def make_hook(uri: str, layout: str) -> smdebug.Hook:
    return smdebug.Hook(uri, include_regex=".*", save_config={"save_interval": 1}, layout=layout)


def records(uri: str, name: str) -> list[dict]:
    storage = _core.Storage.open(uri)
    [path] = [path for path, _ in storage.list("findings") if name in path]
    return [json.loads(line) for line in bytes(storage.read(path)).decode().splitlines()]


@pytest.mark.parametrize("layout", ["original", "packed"])
def test_a_run_in_a_bucket_is_watched_to_its_end(s3, layout):
    uri = f"s3://{s3}/runs/{layout}"
    watch = subprocess.Popen(
        [PROGRAM, "watch", uri, "--rules", "ExplodingTensor", "--json", "--on-fire", "continue"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    hook = make_hook(uri, layout)
    for number in range(4):
        with hook.step():
            hook.save_tensor("x", np.array([1.0, np.nan if number == 2 else 1.0]))
    hook.close()
    out, err = watch.communicate(timeout=TIMEOUT_SECS)
    assert watch.returncode == 1, err
    hit, diagnosis = map(json.loads, out.splitlines())
    assert (hit["kind"], hit["step"]) == ("hit", 2)
    assert diagnosis["steps"] == 4
    assert [one["kind"] for one in records(uri, "watch_")] == ["begin", "hit", "finding", "end"]
    done = subprocess.run(
        [PROGRAM, "diagnose", uri, "--rules", "ExplodingTensor", "--save"],
        capture_output=True,
        timeout=TIMEOUT_SECS,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert [one["kind"] for one in records(uri, "diagnose")] == ["begin", "finding", "end"]
