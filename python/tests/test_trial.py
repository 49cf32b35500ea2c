"""Recorded runs: what was saved when, by whom, and what a growing run says."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded
import smdebug
import writing
from smdebug import ReductionConfig, SaveConfig, modes
from smdebug.analysis.utils import no_refresh, refresh
from smdebug.exceptions import (
    MissingCollectionFiles,
    NoMoreData,
    SMDebugError,
    SMDebugNotImplementedError,
    SMDebugRuntimeError,
    SMDebugTypeError,
    SMDebugValueError,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.tensor import StepState
from smdebug.trials import LocalTrial, Trial, create_trial


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run of two modes with values, reductions and scalars."""
    out_dir = tmp_path / "run"
    hook = smdebug.Hook(
        out_dir,
        save_config=SaveConfig(save_interval=1),
        reduction_config=ReductionConfig(reductions=["mean"], save_raw_tensor=True),
        include_collections=["mine", "small"],
    )
    hook.get_collection("mine").include("^layer")
    hook.get_collection("small").include("bias$")
    for number in range(6):
        hook.set_mode(modes.EVAL if number == 3 else modes.TRAIN)
        with hook.step():
            hook.save_tensor("layer/weight", np.full((2, 3), number, np.float32))
            hook.save_tensor("layer/bias", np.arange(3) + number)
            hook.save_scalar("loss", 1.0 / (number + 1))
    hook.close()
    return out_dir


def warnings_of(caplog: pytest.LogCaptureFixture, action: Any) -> list[str]:
    """What the package's logger said meanwhile."""
    logger = logging.getLogger("smdebug")
    logger.addHandler(caplog.handler)
    try:
        action()
    finally:
        logger.removeHandler(caplog.handler)
    return [record.getMessage() for record in caplog.records]


# --- opening


def test_the_path_decides_the_class_and_the_name(run: Path) -> None:
    trial = create_trial(f" {run}/ ")
    assert isinstance(trial, LocalTrial)
    assert isinstance(trial, Trial)
    assert trial.name == "run"
    assert trial.path == f"{run}/"
    assert create_trial(str(run), "other").name == "other"


def test_out_dir_is_another_name_of_path(run: Path) -> None:
    assert smdebug.create_trial(out_dir=run).tensor_names() == create_trial(run).tensors()


def test_home_is_expanded(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(run.parent))
    assert create_trial("~/run").steps() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "out_dir": "b"}, {"path": "  "}])
def test_a_missing_or_doubled_path_is_said(arguments: dict[str, str]) -> None:
    with pytest.raises(SMDebugValueError, match="path"):
        create_trial(**arguments)


def test_profiler_runs_are_refused(run: Path) -> None:
    with pytest.raises(SMDebugNotImplementedError, match="Profiler"):
        create_trial(run, profiler=True)


def test_trials_are_equal_by_name_and_path(run: Path) -> None:
    assert create_trial(run) == create_trial(run)
    assert hash(create_trial(run)) == hash(create_trial(run))
    assert create_trial(run) != create_trial(run, "other")


def test_trials_take_attributes(run: Path) -> None:
    trial = create_trial(run)
    trial.note = "mine"  # type: ignore[attr-defined]
    assert trial.note == "mine"  # type: ignore[attr-defined]


def test_opening_waits_for_the_collections_of_all_workers(tmp_path: Path) -> None:
    writing.collections(tmp_path, "worker_0", 2)
    opened: list[Trial] = []
    thread = threading.Thread(target=lambda: opened.append(create_trial(tmp_path)))
    thread.start()
    thread.join(0.2)
    assert not opened
    writing.collections(tmp_path, "worker_1", 2)
    thread.join(recorded.TIMEOUT_SECS)
    assert opened[0].workers() == ["worker_0", "worker_1"]
    assert opened[0].num_workers == 2


def test_opening_waits_for_a_directory_that_does_not_exist_yet(tmp_path: Path) -> None:
    opened: list[Trial] = []
    thread = threading.Thread(target=lambda: opened.append(create_trial(tmp_path / "later")))
    thread.start()
    thread.join(0.2)
    assert not opened
    writing.step(tmp_path / "later", 0)
    writing.collections(tmp_path / "later")
    thread.join(recorded.TIMEOUT_SECS)
    assert opened[0].steps() == [0]


def test_waiting_can_be_interrupted(tmp_path: Path) -> None:
    code = """
import signal, sys, threading
from smdebug.trials import create_trial
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    create_trial(sys.argv[1])
except KeyboardInterrupt:
    print("interrupted")
"""
    assert recorded.run(code, tmp_path / "never").strip() == "interrupted"


def test_a_job_that_ended_without_collections_is_said(tmp_path: Path) -> None:
    writing.collections(tmp_path, "worker_0", 3)
    writing.end(tmp_path)
    with pytest.raises(MissingCollectionFiles, match=r"1 workers; 3 were expected"):
        create_trial(tmp_path)


def test_many_workers_open(tmp_path: Path) -> None:
    for i in range(1000):
        writing.collections(tmp_path, f"worker_{i}", 1000)
    assert len(create_trial(tmp_path).workers()) == 1000


@pytest.mark.parametrize(
    "bad", [(1,), (1, 2, 3), (3, 3), (5, 2), (-1, 3), ("a", None), "ab", (1.5, 3), (True, 3)]
)
def test_range_steps_must_make_sense(run: Path, bad: Any) -> None:
    with pytest.raises(SMDebugValueError, match="range_steps"):
        create_trial(run, range_steps=bad)


def test_range_steps_limit_what_is_seen(run: Path) -> None:
    assert create_trial(run, range_steps=(1, 4)).steps() == [1, 2, 3]
    assert create_trial(run, range_steps=(None, 2)).steps() == [0, 1]
    trial = create_trial(run, range_steps=[np.int64(4), None])
    assert trial.steps() == [4, 5]
    assert trial.has_passed_step(1) is StepState.UNAVAILABLE
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([1])


# --- names


def test_names_by_mode_step_pattern_and_collection(run: Path) -> None:
    trial = create_trial(run)
    assert trial.tensor_names() == ["layer/bias", "layer/weight", "scalar/loss"]
    assert trial.tensor_names(regex="weight|loss") == ["layer/weight", "scalar/loss"]
    assert trial.tensor_names(regex=["^layer", ["loss$"]]) == trial.tensor_names()
    assert trial.tensor_names(regex="(?<!r)/bias") == []
    assert trial.tensor_names(collection="small") == ["layer/bias"]
    assert trial.tensor_names(collection=trial.collection("mine")) == ["layer/bias", "layer/weight"]
    assert trial.tensor_names(step=2) == trial.tensor_names()
    assert trial.tensor_names(step=2, mode=modes.TRAIN, regex="bias") == ["layer/bias"]
    assert trial.tensor_names(mode=modes.PREDICT) == []
    assert trial.tensor_names(step=77) == []
    assert trial.tensor_names(step=0, mode=modes.PREDICT) == []
    assert trial.tensors(True, regex="bias") == ["layer/bias"]


def test_pattern_and_collection_exclude_each_other(run: Path) -> None:
    with pytest.raises(ValueError, match="not both"):
        create_trial(run).tensor_names(regex="a", collection="b")


def test_no_match_is_a_warning(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    trial = create_trial(run)
    said = warnings_of(caplog, lambda: trial.tensor_names(regex="nothing_like_this"))
    assert any("nothing_like_this" in text for text in said)
    said = warnings_of(caplog, lambda: trial.tensor_names(collection="smal"))
    assert any("Did you mean 'small'?" in text for text in said)


def test_wrong_arguments_are_named(run: Path) -> None:
    trial = create_trial(run)
    with pytest.raises(SMDebugValueError, match="'train'"):
        trial.steps(mode="train")  # type: ignore[arg-type]
    with pytest.raises(SMDebugTypeError, match="'0'"):
        trial.tensor("layer/bias").value("0")  # type: ignore[arg-type]
    with pytest.raises(SMDebugValueError, match=r"\["):
        trial.tensor_names(regex="[")
    with pytest.raises(SMDebugTypeError, match="42"):
        trial.has_tensor(42)  # type: ignore[arg-type]
    with pytest.raises(SMDebugTypeError, match="collection"):
        trial.tensor_names(collection=42)  # type: ignore[arg-type]


def test_an_unknown_tensor_is_named_with_a_close_one(run: Path) -> None:
    trial = create_trial(run)
    assert not trial.has_tensor("layer/wieght")
    with pytest.raises(TensorUnavailable, match="Did you mean 'layer/weight'") as raised:
        trial.tensor("layer/wieght")
    assert raised.value.tname == "layer/wieght"
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)


# --- steps and modes


def test_steps_and_modes(run: Path) -> None:
    trial = create_trial(run)
    assert trial.steps() == [0, 1, 2, 3, 4, 5]
    assert trial.steps(mode=modes.TRAIN) == [0, 1, 2, 3, 4]
    assert trial.steps(modes.EVAL) == [0]
    assert trial.steps(modes.PREDICT) == []
    assert trial.modes() == [modes.TRAIN, modes.EVAL]
    assert [trial.mode(s) for s in (2, 3, 9)] == [modes.TRAIN, modes.EVAL, None]
    assert [trial.mode_step(s) for s in (4, 3, 9)] == [3, 0, None]
    assert trial.global_step(modes.TRAIN, 3) == 4
    assert trial.global_step(modes.EVAL, 1) is None
    assert trial.global_step(modes.GLOBAL, 99) == 99
    assert trial.last_complete_step == 5
    assert trial.last_index_token == f"{run}/index/000000000/000000000005_worker_0.json"


def test_collections_are_those_of_the_run(run: Path) -> None:
    trial = create_trial(run)
    assert {"mine", "small"} <= set(trial.collections())
    assert trial.collection("mine").include_regex == ["^layer"]
    assert trial.collection("small").tensor_names == {"layer/bias"}
    assert trial.collection("new").tensor_names == set()
    trial.collection("small").add_tensor_name("layer/weight")
    assert trial.tensor_names(collection="small") == ["layer/bias", "layer/weight"]
    assert trial.workers() == ["worker_0"]


def test_collections_of_all_workers_are_joined(tmp_path: Path) -> None:
    writing.collections(tmp_path, "worker_0", 2, mine=["a"])
    writing.collections(tmp_path, "worker_1", 2, mine=["b"], other=["c"])
    trial = create_trial(tmp_path)
    assert trial.collection("mine").tensor_names == {"a", "b"}
    assert trial.collection("other").tensor_names == {"c"}


def test_names_that_join_a_collection_later_are_seen(tmp_path: Path) -> None:
    writing.collections(tmp_path, mine=["a"])
    writing.step(tmp_path, 0, a=1.0, b=2.0)
    trial = create_trial(tmp_path)
    assert trial.tensor_names(collection="mine") == ["a"]
    writing.collections(tmp_path, mine=["a", "b"])
    assert trial.tensor_names(collection="mine") == ["a", "b"]


# --- growing runs


def test_each_question_sees_what_is_new(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    trial = create_trial(tmp_path)
    assert trial.steps() == []
    assert trial.last_index_token is None
    for number in range(0, 3000, 500):
        writing.step(tmp_path, number)
        assert trial.steps()[-1] == number
        assert trial.tensor("w").value(number) == number
    assert not trial.loaded_all_steps
    writing.end(tmp_path)
    assert not trial.loaded_all_steps
    trial.steps()
    assert trial.loaded_all_steps


def test_no_refresh_freezes_a_trial_and_refresh_thaws_it(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    trial = create_trial(tmp_path)
    with no_refresh(trial) as same:
        assert same is trial
        writing.step(tmp_path, 1)
        assert trial.steps() == [0]
        with refresh([trial]):
            assert trial.steps() == [0, 1]
        writing.step(tmp_path, 2)
        assert trial.steps() == [0, 1]
    assert trial.steps() == [0, 1, 2]


def test_the_refresh_flag_comes_back_after_an_exception(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    trial = create_trial(tmp_path)
    with pytest.raises(KeyError), no_refresh(trial):
        raise KeyError
    assert trial.dynamic_refresh
    trial.dynamic_refresh = False
    with pytest.raises(KeyError), refresh(trial):
        raise KeyError
    assert not trial.dynamic_refresh


STATES = [
    # workers, what arrived, ended, asked step → state
    (1, [(0, 0), (10, 0)], False, {0: 1, 5: 0, 10: 1, 11: 2}),
    (1, [(0, 0), (10, 0)], True, {0: 1, 5: 0, 10: 1, 11: 0}),
    (2, [(0, 0), (0, 1), (5, 0)], False, {0: 1, 3: 2, 5: 2, 6: 2}),
    (2, [(0, 0), (0, 1), (5, 0)], True, {0: 1, 3: 0, 5: 1, 6: 0}),
    (2, [(0, 0), (5, 0), (5, 1)], False, {0: 1, 3: 0, 5: 1, 6: 2}),
    (3, [(0, 0), (1, 1), (2, 2)], False, {0: 2, 1: 2, 2: 2, 3: 2}),
    (3, [(0, 0), (1, 1), (2, 2)], True, {0: 1, 1: 1, 2: 1, 3: 0}),
]


@pytest.mark.parametrize(("workers", "arrived", "ended", "states"), STATES)
def test_step_states(
    tmp_path: Path,
    workers: int,
    arrived: list[tuple[int, int]],
    ended: bool,
    states: dict[int, int],
) -> None:
    for i in range(workers):
        writing.collections(tmp_path, f"worker_{i}", workers)
    for step, worker in arrived:
        writing.step(tmp_path, step, f"worker_{worker}", mode_step=step // 5)
    if ended:
        writing.end(tmp_path)
    trial = create_trial(tmp_path)
    assert {step: trial.has_passed_step(step).value for step in states} == states
    trial.wait_for_steps([s for s, state in states.items() if state == 1])


def test_states_of_modes_use_their_own_numbers(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    for step in range(4):
        mode = modes.EVAL if step % 2 else modes.TRAIN
        writing.step(tmp_path, step, mode=mode, mode_step=10 * (step // 2))
    trial = create_trial(tmp_path)
    assert trial.has_passed_step(10, modes.EVAL) is StepState.AVAILABLE
    assert trial.has_passed_step(3, modes.EVAL) is StepState.UNAVAILABLE
    assert trial.has_passed_step(11, modes.EVAL) is StepState.NOT_YET_AVAILABLE
    writing.end(tmp_path)
    assert trial.has_passed_step(11, modes.EVAL) is StepState.UNAVAILABLE
    assert trial.has_passed_step(0, modes.PREDICT) is StepState.UNAVAILABLE


def test_waiting_returns_when_the_step_arrives(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    trial = create_trial(tmp_path)
    thread = threading.Thread(target=trial.wait_for_steps, args=([0, 1],))
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    writing.step(tmp_path, 1)
    thread.join(recorded.TIMEOUT_SECS)
    assert not thread.is_alive()
    assert trial.dynamic_refresh


def test_waiting_refreshes_even_for_a_known_step(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    trial = create_trial(tmp_path)
    writing.step(tmp_path, 1)
    with no_refresh(trial):
        trial.wait_for_steps([0])
        assert trial.steps() == [0, 1]


def test_waiting_for_what_will_not_come(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    writing.step(tmp_path, 10)
    trial = create_trial(tmp_path)
    with pytest.raises(StepUnavailable) as skipped:
        trial.wait_for_steps([0, 5])
    assert (skipped.value.step, skipped.value.mode) == (5, modes.GLOBAL)
    writing.end(tmp_path)
    with pytest.raises(StepUnavailable):
        trial.wait_for_steps([5])
    with pytest.raises(NoMoreData) as over:
        trial.wait_for_steps([11])
    assert (over.value.step, over.value.mode, over.value.last_step) == (11, modes.GLOBAL, 10)
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([0], modes.PREDICT)


def test_the_end_is_waited_for_as_long_as_files_may_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SMDEBUG_TRAINING_END_DELAY_REFRESH")
    monkeypatch.setenv("TRAINING_END_DELAY_REFRESH", "0.5")  # the other spelling
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    trial = create_trial(tmp_path)
    writing.end(tmp_path)
    late = threading.Timer(0.1, writing.step, [tmp_path, 1])
    late.start()
    assert trial.steps() == [0, 1]
    assert trial.loaded_all_steps
    late.join()


def test_an_old_end_needs_no_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "3600")
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    writing.end(tmp_path)
    os.utime(tmp_path / "training_job_end.ts", (time.time() - 7200,) * 2)
    trial = create_trial(tmp_path)
    assert trial.steps() == [0]
    assert trial.loaded_all_steps


def test_the_window_of_waiting_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "10")
    for i in range(3):
        writing.collections(tmp_path, f"worker_{i}", 3)
    for step in range(20):
        writing.step(tmp_path, step, "worker_0")
    trial = create_trial(tmp_path)
    assert trial.last_complete_step == 4
    assert trial.steps() == list(range(10))
    assert trial.last_complete_step == 9
    assert trial.steps() == list(range(10))
    assert trial.steps(show_incomplete_steps=True) == list(range(20))
    assert trial.last_index_token == f"{tmp_path}/index/000000000/000000000009_worker_2.json"


def test_late_files_of_passed_steps_are_read(tmp_path: Path) -> None:
    for i in range(2):
        writing.collections(tmp_path, f"worker_{i}", 2)
    writing.step(tmp_path, 0, "worker_0", w=1.0)
    for i in range(2):
        writing.step(tmp_path, 1, f"worker_{i}")
    trial = create_trial(tmp_path)
    assert trial.steps() == [0, 1]
    writing.step(tmp_path, 0, "worker_1", w=2.0)
    assert trial.steps() == [0, 1]
    assert trial.tensor("w").workers(0) == ["worker_0", "worker_1"]
    assert trial.tensor("w").value(0, worker="worker_1") == 2


def test_workers_named_after_devices(tmp_path: Path) -> None:
    device = "/job:worker/replica:0/task:1/device:GPU:0"
    writing.collections(tmp_path, device)
    writing.step(tmp_path, 0, device, w=3.0)
    trial = create_trial(tmp_path)
    assert trial.workers() == [device]
    assert trial.tensor("w").workers(0) == [device]
    name = "000000000000__job-worker_replica-0_task-1_device-GPU-0.json"
    assert trial.last_index_token == f"{tmp_path}/index/000000000/{name}"
    assert trial.tensor("w").value(0, worker=device) == 3


def test_two_underscores_in_a_directory_change_no_worker(tmp_path: Path) -> None:
    out_dir = tmp_path / "my__run"
    writing.collections(out_dir)
    writing.step(out_dir, 0)
    assert create_trial(out_dir).tensor("w").workers(0) == ["worker_0"]


@pytest.mark.original_layout
def test_foreign_files_are_ignored(run: Path) -> None:
    (run / "framework").mkdir()
    (run / "framework" / "profile.json").write_text("{")
    (run / "index" / "000000000" / "x.json.tmp").write_text("{")
    (run / "notes.txt").write_text("mine")
    assert create_trial(run).steps() == [0, 1, 2, 3, 4, 5]


@pytest.mark.original_layout
def test_a_damaged_index_costs_one_step(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = run / "index/000000000/000000000002_worker_0.json"
    path.write_text(path.read_text()[:50])
    opened: list[Trial] = []
    said = warnings_of(caplog, lambda: opened.append(create_trial(run)))
    assert opened[0].steps() == [0, 1, 3, 4, 5]
    assert any(str(path.relative_to(run)) in text for text in said)


@pytest.mark.original_layout
def test_checked_payloads(run: Path) -> None:
    path = next(run.glob("events/000000000001/*"))
    data = bytearray(path.read_bytes())
    at = data.index(np.full(6, 1, np.float32).tobytes())
    data[at] ^= 4
    path.write_bytes(data)
    assert create_trial(run).tensor("layer/weight").value(1)[0, 0] != 1
    trial = create_trial(run, check=True)
    with pytest.raises(SMDebugRuntimeError, match=r"checksum.*000000000001_worker_0.tfevents"):
        trial.tensor("layer/weight").value(1)
    assert trial.tensor("layer/weight").value(2)[0, 0] == 2


@pytest.mark.original_layout
def test_a_missing_event_file_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    events = next(tmp_path.glob("events/*/*"))
    hidden = tmp_path / "hidden"
    events.rename(hidden)
    trial = create_trial(tmp_path)
    monkeypatch.setattr("smdebug.tensor._MISSING_FILE_WAIT_SECS", 0.01)
    threading.Timer(0.2, hidden.rename, [events]).start()
    assert trial.tensor("w").value(0) == 0


@pytest.mark.original_layout
def test_a_lost_event_file_is_not_waited_for(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    for step in range(2):
        writing.step(tmp_path, step)
    next(tmp_path.glob("events/000000000000/*")).unlink()
    with pytest.raises(TensorUnavailableForStep):
        create_trial(tmp_path).tensor("w").value(0)


@pytest.mark.original_layout
def test_giving_up_on_a_missing_event_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", "3")
    monkeypatch.setattr("smdebug.tensor._MISSING_FILE_WAIT_SECS", 0.01)
    writing.collections(tmp_path)
    writing.step(tmp_path, 0)
    next(tmp_path.glob("events/*/*")).unlink()
    with pytest.raises(TensorUnavailableForStep):
        create_trial(tmp_path).tensor("w").value(0)


def test_a_reader_follows_a_hook_step_by_step(tmp_path: Path) -> None:
    code = """
import sys
import numpy as np
import smdebug
hook = smdebug.Hook(sys.argv[1], save_all=True, save_config=smdebug.SaveConfig(save_interval=1))
for number in range(200):
    with hook.step():
        hook.save_tensor("w", np.full(1000, number, np.float32))
hook.close()
"""
    writer = recorded.start(code, tmp_path / "run")
    trial = create_trial(tmp_path / "run")
    for number in range(200):
        trial.wait_for_steps([number])
        assert (trial.tensor("w").value(number) == number).all()
    with pytest.raises(NoMoreData):
        trial.wait_for_steps([200])
    assert writer.wait(recorded.TIMEOUT_SECS) == 0


# --- what a model was given and gave


def test_inputs_labels_predictions(tmp_path: Path) -> None:
    names = [f"inputs_{i}" for i in (0, 2, 10)]
    writing.collections(tmp_path, inputs=names)
    values = {name: np.float32(i) for i, name in enumerate(names)}
    for step, mode in enumerate((modes.TRAIN, modes.EVAL)):
        writing.step(
            tmp_path, step, mode=mode, mode_step=0, labels_0=float(step), predictions=9.0, **values
        )
    trial = create_trial(tmp_path)
    assert trial.inputs(0, modes.TRAIN) == [0, 1, 2]
    assert trial.labels(0, modes.EVAL) == [1.0]
    assert trial.predictions(0) == [9.0]
    assert trial.labels(0, modes.PREDICT) == []


# --- what people see


def test_printing_says_what_is_there(run: Path) -> None:
    trial = create_trial(run)
    text = str(trial)
    assert "3 tensors, 6 steps 0…5 (TRAIN 5, EVAL 1), 1 worker, ended" in text
    assert "scalar/loss" in text
    assert str(run) in text
    assert repr(trial) == f"LocalTrial(name='run', path={str(run)!r})"
    tensor = trial.tensor("layer/weight")
    assert "6 steps 0…5, shape (2, 3)" in str(tensor)
    assert "mean 5" in str(tensor)
    assert repr(tensor) == "Tensor(name='layer/weight', trial='run')"


def test_notebooks_get_a_picture_per_tensor(run: Path) -> None:
    import xml.etree.ElementTree as ET

    trial = create_trial(run)
    html = ET.fromstring(trial._repr_html_().replace("<br>", "<br/>"))
    assert len(list(html.iter("svg"))) == 3
    assert "<path" in trial.tensor("scalar/loss")._repr_html_()


def test_names_are_escaped_in_notebooks(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    writing.step(tmp_path, 0, **{"<script>alert(1)</script>": 1.0})
    assert "<script>" not in create_trial(tmp_path)._repr_html_()


def test_an_empty_run_can_be_printed(tmp_path: Path) -> None:
    writing.collections(tmp_path)
    trial = create_trial(tmp_path)
    assert "0 tensors, no steps, 1 worker, running" in str(trial)
    assert trial._repr_html_()


def test_every_error_is_an_smdebug_error() -> None:
    for error in (StepNotYetAvailable(1, modes.TRAIN), NoMoreData(1, modes.TRAIN, 0)):
        assert isinstance(error, SMDebugError)
