"""The budget, the flight recorder and the first bad tensor, as any training loop uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Messages
from smdebug import Hook, ReductionConfig, SaveConfig, create_trial
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

NEVER = SaveConfig(save_interval=1000)
EXTREMA = ReductionConfig(["min", "max"])
LAYOUTS = pytest.mark.parametrize("layout", ["original", "packed"])


def recorder(out_dir: Path, layout: str = "original", **options: Any) -> Hook:
    arguments = {"save_config": NEVER, "reduction_config": EXTREMA, "flight_recorder": 4}
    return Hook(str(out_dir), save_all=True, layout=layout, **(arguments | options))


def steps(hook: Hook, count: int, bad: int | None = None) -> None:
    for i in range(count):
        hook.step()
        value = float("nan") if i == bad else float(i)
        hook.save("w", np.full(3, value, np.float32))


@LAYOUTS
def test_a_nan_makes_the_last_steps_part_of_the_run(out_dir: Path, layout: str) -> None:
    hook = recorder(out_dir, layout)
    steps(hook, 12, bad=9)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 6, 7, 8, 9]
    assert trial.tensor("w").reduction_value(7, "max") == 7
    bad, dump = trial.findings()
    assert (bad["tensor"], bad["step"], bad["nan"]) == ("w", 9, 3)
    assert [past["max"] for past in bad["before"]] == [6, 7, 8]
    assert dump["steps_in_run"] == [6, 7, 8, 9] and dump["folder"] is None


@LAYOUTS
def test_steps_before_a_saved_one_are_in_a_run_of_their_own(out_dir: Path, layout: str) -> None:
    hook = recorder(out_dir, layout, save_config=SaveConfig(save_interval=10))
    steps(hook, 22, bad=20)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 10, 20]
    dump = trial.findings()[1]
    assert dump["steps_in_folder"] == [17, 18, 19]
    flight = create_trial(str(out_dir / dump["folder"]))
    assert flight.steps() == [17, 18, 19] and flight.loaded_all_steps
    assert flight.tensor("w").reduction_value(18, "min") == 18


def test_a_dump_by_hand_and_raw_values_within_their_bytes(out_dir: Path) -> None:
    hook = recorder(out_dir, flight_recorder_raw=True, flight_recorder_bytes=4096)
    with pytest.raises(SMDebugValueError, match="no flight recorder"):
        Hook(str(out_dir / "other")).dump_flight_recorder("why not")
    steps(hook, 6)
    assert 0 < hook._core.flight_recorder_size <= 4096
    hook.dump_flight_recorder("a rule fired")
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 2, 3, 4, 5]
    assert trial.tensor("w").value(4).tolist() == [4, 4, 4]
    assert trial.findings()[0]["reason"] == "a rule fired"


def test_an_exception_in_a_with_block_writes_the_recorder(out_dir: Path) -> None:
    with pytest.raises(KeyError), recorder(out_dir) as hook:
        steps(hook, 8)
        raise KeyError("planted")
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 4, 5, 6, 7]
    assert trial.findings()[0]["reason"].startswith("KeyError")


def test_a_lock_that_is_never_given_back_costs_the_recorder_alone(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smdebug.hook.LAST_WORDS_MS", 10)
    hook = recorder(out_dir)
    hook._lock = threading.Lock()
    steps(hook, 8)
    with hook._lock:  # as of a thread that is gone
        hook._last_words("unheard")
    hook._last_words("planted")
    assert not hook._lock.locked()
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 4, 5, 6, 7]
    assert [finding["reason"] for finding in trial.findings()] == ["planted"]


JOB = """
import os, signal, sys
import numpy as np
from smdebug import Hook, ReductionConfig, SaveConfig

hook = Hook(sys.argv[1], save_all=True, layout=sys.argv[2], flight_recorder=4,
            save_config=SaveConfig(save_interval=1000), reduction_config=ReductionConfig(["max"]))
for i in range(8):
    hook.step()
    hook.save("w", np.full(3, i, np.float32))
"""


def run_job(out_dir: Path, layout: str, end: str, before: str = "") -> Any:
    script = before + JOB + end
    return subprocess.run(
        [sys.executable, "-c", script, str(out_dir), layout],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )


@LAYOUTS
def test_an_exception_that_ends_the_process_writes_the_recorder(out_dir: Path, layout: str) -> None:
    done = run_job(out_dir, layout, "raise ZeroDivisionError('planted')")
    assert done.returncode == 1 and "ZeroDivisionError: planted" in done.stderr
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 4, 5, 6, 7] and trial.loaded_all_steps
    assert trial.findings()[0]["reason"] == "ZeroDivisionError: planted"


def test_a_program_with_an_excepthook_of_its_own_is_served_at_exit(out_dir: Path) -> None:
    end = "sys.excepthook = lambda *a: print('mine')\nraise ZeroDivisionError('planted')"
    done = run_job(out_dir, "original", end)
    assert done.stdout.startswith("mine\n")
    assert create_trial(str(out_dir)).steps() == [0, 4, 5, 6, 7]


@LAYOUTS
def test_sigterm_writes_the_recorder_and_ends_the_process_as_before(
    out_dir: Path, layout: str
) -> None:
    done = run_job(out_dir, layout, "os.kill(os.getpid(), signal.SIGTERM)")
    assert done.returncode == -signal.SIGTERM
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 4, 5, 6, 7]
    assert trial.findings()[0]["reason"] == "SIGTERM"


def test_the_programs_own_handler_of_sigterm_is_called_afterwards(out_dir: Path) -> None:
    before = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *a: sys.exit(7))\n"
    done = run_job(out_dir, "original", "os.kill(os.getpid(), signal.SIGTERM)", before)
    assert done.returncode == 7
    assert create_trial(str(out_dir)).steps() == [0, 4, 5, 6, 7]


@LAYOUTS
@pytest.mark.parametrize("interval", [1, 1000])
def test_a_step_goes_on_after_a_handler_of_sigterm_that_returns(
    out_dir: Path, layout: str, interval: int
) -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with Hook(
            str(out_dir),
            layout=layout,
            save_all=True,
            save_config=SaveConfig(save_interval=interval),
            reduction_config=ReductionConfig(["max"]),
            flight_recorder=4,
        ) as hook:
            for i in range(3):
                with hook.step():
                    if i == 2:
                        os.kill(os.getpid(), signal.SIGTERM)
                    for name in ("v", "w"):
                        hook.save(name, np.full(3, i, np.float32))
                    if interval == 1:
                        hook.save_scalar("loss", i)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert told == [signal.SIGTERM]
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0, 1, 2]
    for step in trial.steps():
        assert [trial.tensor(name).reduction_value(step, "max") for name in "vw"] == [step] * 2
    if interval == 1:
        assert trial.tensor("scalar/loss").values() == {0: 0, 1: 1, 2: 2}


def test_a_handler_of_sigterm_that_ends_at_once_has_the_steps_before(out_dir: Path) -> None:
    before = "import os, signal\nsignal.signal(signal.SIGTERM, lambda *a: os._exit(7))\n"
    done = run_job(out_dir, "original", "os.kill(os.getpid(), signal.SIGTERM)", before)
    assert done.returncode == 7
    assert create_trial(str(out_dir)).steps() == [0, 4, 5, 6]


def test_a_forked_child_writes_nothing(out_dir: Path) -> None:
    end = """
child = os.fork()
if child == 0:
    os.kill(os.getpid(), signal.SIGTERM)
_, status = os.waitpid(child, 0)
assert os.WTERMSIG(status) == signal.SIGTERM
hook.close()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and sys.excepthook is sys.__excepthook__
"""
    done = run_job(out_dir, "original", end)
    assert done.returncode == 0, done.stderr
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0] and trial.findings() == []


def test_a_forked_child_that_fails_in_a_with_block_waits_for_no_lock(out_dir: Path) -> None:
    end = """
class Taken:
    def acquire(self, timeout):
        raise AssertionError("asked for")
hook._lock = Taken()
child = os.fork()
if child == 0:
    try:
        with hook:
            raise KeyError("planted")
    except KeyError:
        os._exit(3)
    finally:
        os._exit(4)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 3
hook._lock = None
hook.close()
"""
    done = run_job(out_dir, "original", end)
    assert done.returncode == 0, done.stderr
    assert create_trial(str(out_dir)).findings() == []


@LAYOUTS
def test_sigkill_loses_what_is_in_memory_and_harms_nothing_else(out_dir: Path, layout: str) -> None:
    done = run_job(out_dir, layout, "hook._core.wait_until_written(5000)\nos.kill(os.getpid(), 9)")
    assert done.returncode == -signal.SIGKILL
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0] and trial.findings() == []


def test_a_hook_without_recorder_installs_nothing(out_dir: Path) -> None:
    before = (sys.excepthook, signal.getsignal(signal.SIGTERM))
    hook = Hook(str(out_dir), save_all=True)
    assert (sys.excepthook, signal.getsignal(signal.SIGTERM)) == before
    hook.close()


# ---- the budget


def test_the_bill_is_there_with_and_without_a_budget(out_dir: Path, messages: Messages) -> None:
    hook = Hook(str(out_dir), save_all=True, save_config=SaveConfig(save_interval=2))
    steps(hook, 5)
    hook.close()
    bill = hook.bill()
    assert (bill["steps"], bill["saved_steps"], bill["tensors"], bill["bytes"]) == (5, 3, 3, 36)
    assert 0 < bill["cost_secs"] <= bill["training_secs"]
    assert bill["share"] == bill["cost_secs"] / bill["training_secs"]


def test_steps_that_cost_more_than_the_budget_are_saved_less_often(out_dir: Path) -> None:
    hook = Hook(
        str(out_dir),
        save_all=True,
        save_config=SaveConfig(save_interval=1),
        max_overhead=1e-6,
        max_interval=16,
    )
    pinned = hook.get_collection("pinned")
    pinned.include("^mine$")
    pinned.save_config = SaveConfig(save_interval=5)
    for _ in range(100):
        hook.step()
        hook.save("w", np.ones(3))
        hook.save("mine", np.ones(3))
    hook.close()
    trial = create_trial(str(out_dir))
    assert hook.bill()["stride"] == 16
    assert {16, 32, 48, 64, 80, 96} <= set(trial.tensor("w").steps())
    assert len(trial.tensor("w").steps()) < 20
    assert set(range(0, 100, 5)) <= set(trial.tensor("mine").steps())


def test_everything_can_be_said_in_json(out_dir: Path, tmp_path: Path) -> None:
    config = tmp_path / "hook.json"
    parameters = {
        "save_all": "true",
        "max_overhead": "0.5",
        "max_interval": "8",
        "flight_recorder": "3",
        "flight_recorder_raw": "true",
        "flight_recorder_bytes": "100000",
        "first_bad_tensor": "true",
    }
    config.write_text(json.dumps({"LocalPath": str(out_dir), "HookParameters": parameters}))
    hook = Hook.create_from_json_file(str(config))
    steps(hook, 3)
    assert hook._core.has_flight_recorder
    hook.close()
    assert create_trial(str(out_dir)).steps()[0] == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"max_overhead": 2.0}, SMDebugValueError, "max_overhead is 2"),
        ({"max_overhead": "much"}, SMDebugTypeError, "max_overhead must be a number"),
        ({"max_interval": 0}, SMDebugValueError, "max_interval is 0"),
        ({"flight_recorder": -1}, SMDebugValueError, "flight_recorder is -1"),
        ({"flight_recorder_bytes": 0}, SMDebugValueError, "flight_recorder_bytes is 0"),
    ],
)
def test_wrong_limits_are_refused(
    out_dir: Path, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Hook(str(out_dir), **options)
    assert not os.path.exists(out_dir)


def test_the_first_bad_tensor_is_looked_for_in_every_step_on_request(
    out_dir: Path, messages: Messages
) -> None:
    hook = Hook(str(out_dir), save_all=True, save_config=NEVER, first_bad_tensor=True)
    steps(hook, 5, bad=3)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.steps() == [0]
    (bad,) = trial.findings()
    assert (bad["tensor"], bad["step"], bad["worker"]) == ("w", 3, "worker_0")
    assert messages.containing("First non-finite value of the training: 'w' (3 NaN) at step 3")
