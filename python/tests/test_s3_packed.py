"""Packed runs in S3: few requests to read them, and nothing that was saved is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3_runs
import s3_server as support
import smdebug
from s3_runs import STEPS, requests_of, spooled, until
from smdebug import SaveConfig, _core, modes
from smdebug.exceptions import (
    SMDebugError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.trials import create_trial

EVERY_STEP = SaveConfig(save_interval=1)
PROGRAM = support.ROOT / "build/dev/smdebug"

# Saves steps until it is told to stop; a line of input is one step.
RECORD = """
import sys
import numpy as np
import smdebug
hook = smdebug.Hook(sys.argv[1], save_config=smdebug.SaveConfig(save_interval=1), layout="packed")
print("ready", flush=True)
for line in sys.stdin:
    hook.step()
    hook.save_tensor("w", np.full(8, int(line), np.float32))
    hook.end_step()
    print(line.strip(), flush=True)
hook.close()
"""


def files_in(uri: str, folder: str = "") -> list[str]:
    return [path for path, _ in _core.Storage.open(uri).list(folder)]


record = partial(s3_runs.record, layout="packed")


@pytest.fixture
def uri(s3: str) -> str:
    record(f"s3://{s3}/runs/one")
    return f"s3://{s3}/runs/one"


class Workers:
    """Hooks of a job with several workers, side by side in this process."""

    def __init__(self, uri: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hooks = []
        monkeypatch.setenv("WORLD_SIZE", str(count))
        for rank in range(count):
            monkeypatch.setenv("RANK", str(rank))
            self.hooks.append(
                smdebug.Hook(
                    uri,
                    save_config=EVERY_STEP,
                    include_workers="all",
                    layout="packed",
                )
            )
        for name in ("RANK", "WORLD_SIZE"):
            monkeypatch.delenv(name)

    def save(self, step: int) -> None:
        for rank, hook in enumerate(self.hooks):
            hook.step()
            hook.save_tensor("w", np.full(4, 100 * rank + step, np.float32))
            hook.end_step()

    def close(self) -> None:
        for hook in self.hooks:
            hook.close()


# ---- reading


def test_a_run_in_s3_answers_like_one_in_a_directory(uri: str, tmp_path: Path) -> None:
    record(tmp_path / "local")
    there, here = create_trial(uri), create_trial(tmp_path / "local")
    assert there.tensor_names() == here.tensor_names()
    assert there.steps() == here.steps() == list(range(STEPS))
    assert there.steps(modes.EVAL) == [0]
    assert there.workers() == here.workers()
    assert there.collection("small").tensor_names == here.collection("small").tensor_names
    assert there.loaded_all_steps
    assert there.diff(here).equal
    assert spooled(tmp_path) == []
    names = files_in(uri)
    assert "training_job_end.ts" in names
    assert "collections/000000000/worker_0_collections.json" in names
    assert not [name for name in names if name.startswith(("index", "events", "v2/log", "v2/note"))]


def copied(uri: str, tmp_path: Path) -> Path:
    """The objects of a run as files."""
    storage = _core.Storage.open(uri)
    for path, _ in storage.list():
        target = tmp_path / "copy" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(storage.read(path))
    return tmp_path / "copy"


def test_a_copy_of_the_objects_is_a_run(uri: str, tmp_path: Path) -> None:
    assert create_trial(copied(uri, tmp_path)).diff(create_trial(uri)).equal


def verified(uri: str, *words: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of `smdebug verify`."""
    command = [PROGRAM, "verify", "--json", "--deep", *words, uri]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout)


def test_a_whole_run_in_s3_is_well(uri: str, tmp_path: Path) -> None:
    code, report = verified(uri)
    assert (code, report["problems"]) == (0, [])
    assert report["steps"] == STEPS and report["payloads_checked"] == report["tensors"] > 0
    # A copy of the objects has no logs, too.
    copy = copied(uri, tmp_path)
    code, report = verified(str(copy))
    assert (code, report["problems"]) == (0, [])
    assert verified(str(copy), "--repair")[1]["repairs"] == []


def test_a_segment_that_is_missing_or_was_never_committed_is_told(
    uri: str,
) -> None:
    storage = _core.Storage.open(uri)
    [*_, segment] = files_in(uri, "v2/seg")
    storage.write(f"{segment[:-8]}00000099", storage.read(segment))
    code, report = verified(uri)
    assert code == 0
    assert [(p["fault"], p["damage"]) for p in report["problems"]] == [("log_missing", False)]
    storage.remove(segment)
    code, report = verified(uri)
    assert code == 1
    assert ("segment_missing", True) in [(p["fault"], p["damage"]) for p in report["problems"]]


def test_a_changed_byte_of_a_segment_in_s3_is_found(uri: str) -> None:
    storage = _core.Storage.open(uri)
    [segment, *_] = files_in(uri, "v2/seg")
    content = bytearray(storage.read(segment))
    content[len(content) // 3] ^= 0x10
    storage.write(segment, bytes(content))
    code, report = verified(uri, "--repair")
    assert code == 1 and report["problems"] and report["repairs"] == []


def test_opening_costs_two_gets_and_a_list(uri: str) -> None:
    trial = create_trial(uri)
    counts = Counter(trial._storage.requests)
    assert counts == {"LIST": 1, "GET": 2}  # HEAD and the number after it


def test_opening_costs_the_same_however_many_writers_there_are(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0")
    uri = f"s3://{s3}/run"
    workers = Workers(uri, 12, monkeypatch)
    for step in range(4):
        workers.save(step)
    workers.close()
    assert len(files_in(uri, "v2/seg")) == 48
    trial = create_trial(uri)
    assert sum(trial._storage.requests.values()) <= 5
    assert trial.steps() == [0, 1, 2, 3]
    assert len(trial.workers()) == 12
    for rank in range(12):
        assert trial.tensor("w").value(2, worker=f"worker_{rank}")[0] == 100 * rank + 2


def test_a_look_for_news_costs_one_conditional_get(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0")
    uri = f"s3://{s3}/live"
    hook = smdebug.Hook(uri, save_config=EVERY_STEP, layout="packed")

    def save(step: int) -> None:
        hook.step()
        hook.save_tensor("w", np.full(4, step, np.float32))
        hook.end_step()
        until(lambda: len(files_in(uri, "v2/manifest")) == step + 2)  # the collections come first
        until(lambda: f"{step + 2:012}" in files_in(uri, "v2/manifest")[-1])

    save(0)
    trial = create_trial(uri)
    trial.steps()
    with requests_of(trial) as counted:
        for _ in range(5):
            assert trial.steps() == [0]
    assert counted == {"GET": 5}
    for step in (1, 2):
        save(step)
        until(lambda step=step: trial.steps() == list(range(step + 1)))
    with requests_of(trial) as counted:
        for _ in range(3):
            trial.steps()
    assert counted == {"GET": 3}
    hook.close()
    trial.steps()
    trial.steps()
    assert trial.loaded_all_steps
    with requests_of(trial) as counted:
        trial.steps()
    assert not counted


def test_a_step_arrives_although_no_other_comes(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0.3")
    uri = f"s3://{s3}/slow"
    hook = smdebug.Hook(uri, save_config=EVERY_STEP, layout="packed")
    hook.step()
    hook.save_tensor("w", np.ones(4, np.float32))
    hook.end_step()
    until(lambda: files_in(uri, "v2/seg"))
    trial = create_trial(uri)
    until(lambda: trial.steps() == [0])
    assert not trial.loaded_all_steps
    hook.close()


def test_a_wrong_interval_is_explained(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "soon")
    with pytest.raises(SMDebugValueError, match="SMDEBUG_SEGMENT_SECS is 'soon'"):
        smdebug.Hook(f"s3://{s3}/run", layout="packed")


# ---- several lives


def test_a_later_life_of_a_worker_counts(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_JOB_NAME", "x")  # writes no end marker
    uri = f"s3://{s3}/run"
    record(uri)
    record(uri, offset=1000)
    trial = create_trial(uri)
    assert trial.steps() == list(range(STEPS))
    assert len(files_in(uri, "v2/seg")) == 2
    for step in range(STEPS):
        assert trial.tensor("large").value(step)[0] == step + 1000


def test_layouts_are_not_mixed(s3: str, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINING_JOB_NAME", "x")
    packed, original = f"s3://{s3}/packed", f"s3://{s3}/original"
    for place, layout in ((packed, "packed"), (original, "original")):
        with smdebug.Hook(place, save_config=EVERY_STEP, layout=layout) as hook:
            hook.step()
            hook.save_tensor("w", np.ones(4))
    with pytest.raises(SMDebugValueError, match="layout='packed', which cannot go on"):
        smdebug.Hook(packed, layout="original")
    with pytest.raises(SMDebugValueError, match="layout='original', which cannot go on"):
        smdebug.Hook(original, layout="packed")
    storage = _core.Storage.open(original)
    for path, _ in _core.Storage.open(packed).list("v2"):
        storage.write(path, _core.Storage.open(packed).read(path))
    with pytest.raises(SMDebugError, match="which are two runs"):
        create_trial(original)


# ---- what is wrong in the store


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda head: head[: len(head) // 2], "ends after"),
        (lambda head: b"<html>what?</html>", "not written by smdebug"),
        (lambda head: head[:8] + b"\x09" + head[9:], "later release.*update smdebug"),
        (lambda head: head[:-1] + bytes([head[-1] ^ 1]), "checksum"),
    ],
)
def test_a_head_that_cannot_be_read_is_explained(
    uri: str, change: Callable[[bytes], bytes], text: str
) -> None:
    storage = _core.Storage.open(uri)
    storage.write("v2/HEAD", change(storage.read("v2/HEAD")))
    with pytest.raises(SMDebugError, match=text) as raised:
        create_trial(uri)
    assert str(raised.value).endswith("v2/HEAD")


def test_a_segment_that_expired_is_said_and_costs_no_other(
    s3: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0")
    record(f"s3://{s3}/run")
    storage = _core.Storage.open(f"s3://{s3}/run")
    segments = [path for path, _ in storage.list("v2/seg")]
    assert len(segments) == STEPS
    storage.remove(segments[2])
    trial = create_trial(f"s3://{s3}/run")
    with pytest.raises(TensorUnavailableForStep, match="has expired"):
        trial.tensor("large").value(2)
    for step in (0, 1, 3, 4, 5):
        assert trial.tensor("large").value(step)[0] == step


def test_a_commit_beyond_head_is_read(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0")
    uri = f"s3://{s3}/run"
    storage = _core.Storage.open(uri)
    heads: list[bytes] = []
    with smdebug.Hook(uri, save_config=EVERY_STEP, layout="packed") as hook:
        for step in range(4):
            hook.step()
            hook.save_tensor("w", np.full(4, step, np.float32))
            hook.end_step()
            until(lambda step=step: len(files_in(uri, "v2/seg")) > step)
            if step == 1:
                heads.append(storage.read("v2/HEAD"))
    storage.write("v2/HEAD", heads[0])  # as if its writer had died before it was replaced
    trial = create_trial(uri)
    assert trial.steps() == [0, 1, 2, 3]
    assert trial.tensor("w").value(3)[0] == 3


# ---- many writers


def test_sixteen_writers_lose_no_commit(s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_SEGMENT_SECS", "0")
    uri = f"s3://{s3}/race"
    workers = Workers(uri, 16, monkeypatch)
    step = 0
    enough = time.monotonic() + 12
    while step < 5 or time.monotonic() < enough:
        workers.save(step)
        step += 1
        # No more than the server can follow.
        until(lambda least=16 * (step - 2): len(files_in(uri, "v2/seg")) >= least)
    workers.close()
    numbers = [int(path.rsplit("/", 1)[1]) for path in files_in(uri, "v2/manifest")]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(files_in(uri, "v2/seg")) == 16 * step
    assert len(numbers) >= 16 * step + 16 + 1  # and the collections of each, and the end
    trial = create_trial(uri)
    assert trial._storage.requests["GET"] <= 4
    assert trial.steps() == list(range(step))
    for rank in range(16):
        values = [trial.tensor("w").value(i, worker=f"worker_{rank}")[0] for i in range(step)]
        assert values == [100 * rank + i for i in range(step)]


# ---- killed processes


def start_recorder(uri: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", RECORD, uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def save_steps(process: subprocess.Popen[str], steps: range) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    for step in steps:
        process.stdin.write(f"{step}\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{step}\n"


def log_bytes(folder: Path) -> int:
    """How much the logs of the segments that wait in the spool hold."""
    return sum(path.stat().st_size for path in spooled(folder) if "/v2/log/" in str(path))


def kill_with_steps(uri: str, folder: Path, steps: range) -> None:
    """A process that has saved these steps and sent none of them."""
    process = start_recorder(uri)
    for step in steps:
        before = log_bytes(folder)
        save_steps(process, range(step, step + 1))
        until(lambda before=before: log_bytes(folder) > before)
    assert files_in(uri, "v2/seg") == []
    process.kill()
    process.wait()


def test_the_next_process_sends_what_a_killed_one_saved(s3: str, tmp_path: Path) -> None:
    uri = f"s3://{s3}/run"
    kill_with_steps(uri, tmp_path, range(5))
    segment = next(path for path in spooled(tmp_path) if "/v2/seg/" in str(path))
    with segment.open("ab") as file:
        file.write(b"half a step")  # that was being written
    with smdebug.Hook(uri, save_config=EVERY_STEP, layout="packed") as hook:
        for _ in range(6):
            hook.step()
        hook.save_tensor("w", np.full(8, 5, np.float32))
    trial = create_trial(uri)
    assert trial.steps() == [0, 1, 2, 3, 4, 5]
    for step in range(6):
        assert trial.tensor("w").value(step)[0] == step
    assert spooled(tmp_path) == []
    assert len(files_in(uri, "v2/seg")) == 2


def test_the_command_sync_sends_what_a_killed_process_saved(s3: str, tmp_path: Path) -> None:
    uri = f"s3://{s3}/run"
    process = start_recorder(uri)
    save_steps(process, range(1))
    (files,) = (tmp_path / "spool" / s3).glob("*/files")
    refused = run_sync(files, uri)
    assert refused.returncode != 0
    assert "still running" in refused.stderr
    process.kill()
    process.wait()
    shutil.rmtree(files.parent)
    kill_with_steps(uri, tmp_path, range(3))
    (files,) = (tmp_path / "spool" / s3).glob("*/files")
    for _ in range(2):  # the second time nothing is left to do
        done = run_sync(files, uri)
        assert done.returncode == 0, done.stderr
        trial = create_trial(uri)
        assert trial.steps() == [0, 1, 2]
    manifests = len(files_in(uri, "v2/manifest"))
    assert run_sync(files, uri, "--remove-source").returncode == 0
    assert len(files_in(uri, "v2/manifest")) == manifests
    assert [path for path in spooled(tmp_path) if path.name != "destination"] == []


def run_sync(files: Path, uri: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(PROGRAM), "sync", *options, str(files), uri],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_packed_run_in_a_directory_is_sent_as_a_run(s3: str, tmp_path: Path) -> None:
    record(tmp_path / "local")
    uri = f"s3://{s3}/sent"
    for _ in range(2):
        assert run_sync(tmp_path / "local", uri).returncode == 0
        trial = create_trial(uri)
        assert trial.diff(create_trial(tmp_path / "local")).equal
        assert trial.loaded_all_steps
    assert len(files_in(uri, "v2/manifest")) == 3


def test_a_run_that_grew_is_sent_again(s3: str, tmp_path: Path) -> None:
    uri = f"s3://{s3}/sent"
    process = start_recorder(str(tmp_path / "local"))
    for steps in (range(2), range(2, 5)):
        save_steps(process, steps)
        until(lambda last=steps[-1]: create_trial(tmp_path / "local").steps()[-1:] == [last])
        assert run_sync(tmp_path / "local", uri).returncode == 0
        assert create_trial(uri).steps() == list(range(steps[-1] + 1))
    process.communicate()
    assert run_sync(tmp_path / "local", uri).returncode == 0
    trial = create_trial(uri)
    assert trial.diff(create_trial(tmp_path / "local")).equal
    assert trial.loaded_all_steps
