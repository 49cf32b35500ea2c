"""Callbacks stay in place between saved steps, as long as they see what fresh ones would see."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from smdebug import _core, modes
from smdebug.pytorch import Hook, SaveConfig, create_trial
from smdebug.pytorch.capture import Capture
from smdebug.selection import REST
from torch import nn
from torch_training import EVERY_STEP, Small, batches, callbacks_of, saved


def placed(model: nn.Module) -> list[int]:
    """The ids of all callbacks on modules and parameters."""
    found = [key for module in model.modules() for key in module._forward_hooks]
    for parameter in model.parameters():
        found += list(parameter._backward_hooks or {})
    return found


def run(model: nn.Module) -> None:
    for x, y in batches(1):
        nn.functional.cross_entropy(model(x), y).backward()


def recording(out_dir: Path, **arguments: Any) -> tuple[Hook, Small]:
    hook = Hook(out_dir, **({"save_all": True, "save_config": EVERY_STEP} | arguments))
    model = Small()
    hook.register_module(model)
    run(model)
    return hook, model


def test_the_same_callbacks_serve_all_saved_steps(out_dir: Path) -> None:
    hook, model = recording(out_dir)
    first = placed(model)
    assert len(first) == 3 + 4
    for _ in range(3):
        run(model)
        assert placed(model) == first
    hook.close()
    assert callbacks_of(model) == 0
    trial = create_trial(str(out_dir))
    for name in trial.tensor_names():
        assert trial.tensor(name).steps() == [0, 1, 2, 3], name


def test_they_are_off_in_a_step_that_saves_nothing_and_after_one_that_was_ended(
    out_dir: Path,
) -> None:
    config = SaveConfig(save_interval=2)
    hook, model = recording(out_dir, save_config=config)
    run(model)
    assert placed(model) == []
    run(model)
    assert len(placed(model)) == 3 + 4
    hook.end_step()
    assert placed(model) == []
    hook.close()


def test_a_callback_that_changes_the_output_runs_before_ours(out_dir: Path) -> None:
    hook, model = recording(out_dir)
    model.a.register_forward_hook(lambda _m, _i, output: output * 0 + 5)
    run(model)
    hook.close()
    trial = create_trial(str(out_dir))
    assert (saved(trial, "a_output_0", 0) != 5).any()
    assert (saved(trial, "a_output_0", 1) == 5).all()


def test_a_callback_that_changes_a_gradient_runs_before_ours(out_dir: Path) -> None:
    hook, model = recording(out_dir)
    model.a.weight.register_hook(lambda gradient: gradient * 0 + 5)
    run(model)
    hook.close()
    trial = create_trial(str(out_dir))
    assert (saved(trial, "gradient/Small_a.weight", 0) != 5).any()
    assert (saved(trial, "gradient/Small_a.weight", 1) == 5).all()


def test_what_the_program_takes_off_is_back_at_the_next_saved_step(out_dir: Path) -> None:
    hook, model = recording(out_dir)
    model.a._forward_hooks.clear()
    model.b.weight._backward_hooks.clear()
    run(model)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor("a_output_0").steps() == [0, 1]
    assert trial.tensor("gradient/Small_b.weight").steps() == [0, 1]


def test_parts_and_collections_that_change_are_seen_at_the_next_step(out_dir: Path) -> None:
    hook, model = recording(out_dir, save_all=False, include_regex="^(a|c)_output")
    assert len(placed(model)) == 1
    model.c = nn.Identity()
    run(model)
    assert len(placed(model)) == 2
    hook.get_collection("default").include("^b_output")
    run(model)
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor("b_output_0").steps() == [2]
    assert trial.tensor("a_output_0").steps() == [0, 1, 2]


# ---- steps that save nothing of a model


def losses(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Hook, Small, list[int], Any]:
    """Records losses alone; the steps at which models were looked at, and a step of training."""
    hook = Hook(out_dir, save_config=EVERY_STEP)
    looked: list[int] = []
    begin = Capture.begin
    monkeypatch.setattr(
        Capture, "begin", lambda self, early: (looked.append(hook.step), begin(self, early))
    )
    model, loss = Small(), nn.CrossEntropyLoss()
    hook.register_module(model)
    hook.register_loss(loss)

    def step(calls: int = 1) -> None:
        for x, y in batches(1):
            output = model(x)
            for _ in range(calls):
                loss(output, y)

    return hook, model, looked, step


def test_models_are_looked_at_now_and_then_if_nothing_of_them_is_saved(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _, looked, step = losses(out_dir, monkeypatch)
    for number in range(3 * REST):
        step(calls=2 if number % 2 else 1)
    hook.close()
    assert 2 < len(looked) < 6
    trial = create_trial(str(out_dir))
    assert trial.tensor("CrossEntropyLoss_output_0").steps() == list(range(3 * REST))
    assert trial.tensor("CrossEntropyLoss_output_1").steps() == list(range(1, 3 * REST, 2))


def test_a_wish_or_a_model_ends_the_rest(out_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hook, model, looked, step = losses(out_dir, monkeypatch)
    for _ in range(4):
        step()
    assert 3 not in looked
    hook.register_module(Small())
    step()
    assert looked[-1] == 4
    step()
    assert looked[-1] == 4
    hook.get_collection("losses").include("^a_output")
    step()
    assert looked[-1] == 6 and len(placed(model)) == 1
    step()
    hook.close()
    assert create_trial(str(out_dir)).tensor("a_output_0").steps() == [6, 7]


def test_another_mode_that_saves_the_same_does_not_end_the_rest(
    out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook, _, looked, step = losses(out_dir, monkeypatch)
    for _ in range(3):
        step()
    hook.set_mode(modes.EVAL)
    step()
    assert looked[-1] < 3
    hook.close()
    trial = create_trial(str(out_dir))
    assert trial.tensor("CrossEntropyLoss_output_0").steps(mode=modes.EVAL) == [0]


def test_callbacks_refuse_arguments_that_nobody_passes(out_dir: Path) -> None:
    hook, model = recording(out_dir)
    (callback,) = model.a._forward_hooks.values()
    with pytest.raises(TypeError, match="4 arguments were expected, not 1"):
        callback(model.a)
    with pytest.raises(TypeError, match="A DirectPath was expected"):
        _core.GradientCallback(1, "name", print)
    hook.close()


# ---- the lock


def test_the_owner_of_the_lock_may_take_it_again_and_others_wait() -> None:
    lock = _core.HookLock()
    order: list[str] = []

    def other() -> None:
        assert not lock.acquire(timeout=0)
        assert not lock.acquire(timeout=0.01)
        order.append("refused")
        with lock:
            order.append("other")

    with lock, lock:
        thread = threading.Thread(target=other)
        thread.start()
        while not order:
            time.sleep(0.001)  # the other one waits without the interpreter's lock
        order.append("owner")
    thread.join()
    assert order == ["refused", "owner", "other"]
    assert lock.acquire()
    lock.release()


def test_a_signal_interrupts_the_wait_for_the_lock() -> None:

    lock = _core.HookLock()
    taken, done = threading.Event(), threading.Event()

    def holder() -> None:
        with lock:
            taken.set()
            done.wait(30)

    thread = threading.Thread(target=holder)
    thread.start()
    taken.wait(30)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(KeyboardInterrupt):
            lock.acquire()
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()
