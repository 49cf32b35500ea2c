"""Rules inside of the training process: what a hook with rules saves, finds and does."""

from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import recorded
from conftest import Messages
from smdebug import Hook, SaveConfig, _core, modes, run_control, run_requests
from smdebug.exceptions import (
    InsufficientInformationForRuleInvocation,
    SMDebugError,
    SMDebugTypeError,
    SMDebugValueError,
    TrainingStopRequested,
)
from smdebug.rules import VanishingGradient, diagnose, rule_configs
from smdebug.rules.action import Action, Checkpoint, File, SaveNow, StopTraining
from smdebug.trials import create_trial

NEVER = SaveConfig(save_steps=[10**9], start_step=10**9)
EVERY = SaveConfig(save_interval=1)


def train(hook, steps=8, vanish_at=3, pause=None):
    """Gradients vanish at some step, and the loss stands still."""
    hook.set_mode(modes.TRAIN)
    for number in range(steps):
        hook.begin_step()
        scale = 1e-9 if number >= vanish_at else 1
        hook.save_tensor("gradient/a", np.full((2, 3), scale, np.float32), "gradients")
        hook.save_tensor("gradient/b", np.ones(4, np.float32), "gradients")
        hook.save("weight", np.ones(5, np.float32))
        hook.save_scalar("accuracy", 0.5)
        if pause is not None:
            hook.end_step()
            pause(number)


def findings(out_dir: Path) -> list[dict]:
    lines = []
    for path in sorted(Path(out_dir, "findings").glob("*.jsonl")):
        lines += [json.loads(line) for line in path.read_text().splitlines()]
    return lines


def texts(messages: Messages) -> list[str]:
    return [text for _, text in messages.lines]


# --- what is saved and found


def test_hits_are_those_of_a_diagnosis_of_the_finished_run(out_dir):
    rules = ["VanishingGradient", {"rule": "ExplodingTensor", "tensor_regex": ".*"}]
    with Hook(out_dir, save_config=EVERY, rules=rules) as hook:
        train(hook)
    found = findings(out_dir)
    assert [(hit["rule"], hit["step"]) for hit in found] == [
        ("VanishingGradient", step) for step in range(3, 8)
    ]
    assert set(found[0]) >= {"mode", "mode_step", "time", "parameters", "message", "violations"}
    later = diagnose(out_dir, rules)
    (finding,) = later["findings"]
    assert (finding["first"]["step"], finding["hits"]) == (3, 5)
    first, evidence = found[0], finding["evidence"]
    for name in ("message", "violations", "parameters", "mode", "mode_step"):
        assert first[name] == evidence[name], name
    assert later["no_issues_found"] == ["ExplodingTensor"]


def every_rule() -> list[dict]:
    """All rules that need no other run and nothing but patterns to look at."""
    found = []
    for row in _core.rule_table():
        selects = any(parameter["name"] == "tensor_regex" for parameter in row["parameters"])
        parameters = {"tensor_regex": "layer|loss"} if selects else {}
        try:
            _core.RuleEvaluator(row["name"], parameters)
        except SMDebugError:
            continue
        if row["group"] != "trees":
            found.append({"rule": row["name"], **parameters})
    return found


def train_badly(hook):
    """Two modes; weights stand still, activations die, gradients vanish, and the loss explodes."""
    generator = np.random.default_rng(7)
    for number in range(60):
        is_training = number % 4 != 3
        hook.set_mode(modes.TRAIN if is_training else modes.EVAL)
        hook.begin_step()
        activation = np.maximum(generator.normal(size=(8, 6)) - number / 4, 0).astype(np.float32)
        weight = generator.normal(size=(6, 4)) if number < 9 else np.ones((6, 4))
        hook.save_tensor("layer_relu_output_0", activation, "outputs")
        hook.save_tensor("layer.weight", weight.astype(np.float32), "weights")
        if is_training:
            gradient = generator.normal(size=(6, 4)) * 0.1**number
            hook.save_tensor("gradient/layer.weight", gradient.astype(np.float32), "gradients")
        loss = np.inf if number > 55 else 1 + number / 10
        hook.save_tensor("loss", np.float32(loss), "losses")
        hook.save_scalar("lr", 0.1)


def test_every_rule_says_inside_of_the_training_what_it_says_later(out_dir, layout):
    rules = every_rule()
    assert len(rules) >= 3
    with Hook(out_dir, save_config=EVERY, rules=rules) as hook:
        train_badly(hook)
    inside: dict[str, list[dict]] = {}
    for hit in findings(out_dir):
        inside.setdefault(hit["rule"], []).append(hit)
    later = diagnose(out_dir, rules)
    assert {finding["rule"] for finding in later["findings"]} == set(inside)
    assert len(inside) >= 3 and later["failed"] == []
    for finding in later["findings"]:
        hits = inside[finding["rule"]]
        assert finding["hits"] == len(hits)
        assert finding["violations"] == sum(hit["violation_count"] for hit in hits)
        assert finding["first"]["step"] == hits[0]["step"]
        assert finding["last"]["step"] == hits[-1]["step"]
        assert comparable(finding["evidence"], layout) == comparable(hits[0], layout)


def comparable(hit: dict, layout: str) -> dict:
    """Without times; packed runs keep only a part of the order."""
    left_out = ("order",) if layout == "packed" else ()
    violations = [
        {**one, "context": {k: v for k, v in one["context"].items() if k not in left_out}}
        for one in hit["violations"]
    ]
    names = ("rule", "step", "mode", "mode_step", "parameters", "message")
    return {**{name: hit[name] for name in names}, "violations": violations}


def test_only_what_the_rules_need_is_saved_besides(out_dir):
    rule = {"rule": "VanishingGradient", "save_interval": "2"}
    with Hook(out_dir, save_config=NEVER, rules=[rule]) as hook:
        train(hook)
    trial = create_trial(out_dir)
    assert trial.tensor_names() == ["gradient/a", "gradient/b", "scalar/accuracy"]
    for name in ("gradient/a", "gradient/b"):
        tensor = trial.tensor(name)
        assert tensor.steps() == [0, 2, 4, 6]
        assert set(tensor.reduction_values(0)) == {("mean", True)}
    assert [hit["step"] for hit in findings(out_dir)] == [4, 6]


def test_a_rule_is_judged_as_often_as_the_user_saves(out_dir):
    with Hook(out_dir, save_config=SaveConfig(save_interval=5), rules="VanishingGradient") as hook:
        train(hook)
    assert [hit["step"] for hit in findings(out_dir)] == [5]


def test_without_any_word_of_the_user_the_interval_is_that_of_the_rule(out_dir):
    with Hook(out_dir, rules=rule_configs.vanishing_gradient()) as hook:
        train(hook, steps=501, vanish_at=400)
    assert [hit["step"] for hit in findings(out_dir)] == [500]


def test_a_configuration_may_ask_for_another_interval(out_dir):
    config = rule_configs.vanishing_gradient()
    (gradients,) = config["CollectionConfigurations"]
    gradients["CollectionParameters"]["save_interval"] = "4"
    with Hook(out_dir, save_config=NEVER, rules=[config]) as hook:
        train(hook, steps=9)
    assert [hit["step"] for hit in findings(out_dir)] == [4, 8]
    assert create_trial(out_dir).tensor("gradient/a").steps() == [0, 4, 8]


def test_rules_see_what_the_user_saves_without_saving_more(out_dir, tmp_path):
    options = {"save_config": SaveConfig(save_interval=2), "include_collections": ["gradients"]}
    plain = tmp_path / "plain"
    with Hook(out_dir, **options, rules=VanishingGradient) as hook:
        train(hook)
    with Hook(plain, **options) as hook:
        train(hook)
    with_rules, without = create_trial(out_dir), create_trial(plain)
    assert with_rules.tensor_names() == without.tensor_names()
    for name in without.tensor_names():
        one, other = with_rules.tensor(name), without.tensor(name)
        assert one.steps() == other.steps()
        for step in other.steps():
            assert one.reduction_values(step).keys() == other.reduction_values(step).keys()
            assert one.value(step).tobytes() == other.value(step).tobytes()
    assert [hit["step"] for hit in findings(out_dir)] == [4, 6]


def test_two_rules_of_a_name_have_their_own_patterns(out_dir):
    rules = [
        {"rule": "ExplodingTensor", "tensor_regex": "x", "save_interval": 1},
        {"rule": "ExplodingTensor", "tensor_regex": "y", "save_interval": 1},
    ]
    with Hook(out_dir, save_config=NEVER, rules=rules) as hook:
        hook.begin_step()
        for name in ("x", "y", "z"):
            hook.save(name, np.array([1, np.nan], np.float32))
    assert [hit["violations"][0]["tensor"] for hit in findings(out_dir)] == ["x", "y"]
    assert create_trial(out_dir).tensor_names() == ["x", "y"]


def test_a_hit_is_logged_once_per_rule(out_dir, messages):
    with Hook(out_dir, save_config=EVERY, rules=["VanishingGradient"]) as hook:
        train(hook)
    said = [text for text in texts(messages) if "VanishingGradient" in text]
    assert len(said) == 1 and "fired at step 3" in said[0] and "gradient/a" in said[0]


def test_a_file_can_name_the_rules(out_dir, tmp_path):
    config = {
        "LocalPath": str(out_dir),
        "HookParameters": {"save_interval": "2"},
        "rules": [
            {"rule": "VanishingGradient", "threshold": "1e-8"},
            rule_configs.loss_not_decreasing(),
        ],
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config).replace("]}", "],}"))  # as loose as these files are
    with Hook.create_from_json_file(str(path)) as hook:
        train(hook)
    found = findings(out_dir)
    assert [hit["step"] for hit in found] == [4, 6]
    assert found[0]["parameters"]["threshold"] == 1e-8


def test_a_file_with_wrong_rules_is_refused(out_dir, tmp_path):
    path = tmp_path / "config.json"
    for rules in ("VanishingGradient", [5], ["Vanishing"]):
        path.write_text(json.dumps({"LocalPath": str(out_dir), "rules": rules}))
        with pytest.raises((SMDebugValueError, SMDebugTypeError)):
            Hook.create_from_json_file(str(path))
    assert not out_dir.exists()


@pytest.mark.parametrize(
    ("rules", "error", "text"),
    [
        (["VanishingGradiet"], SMDebugValueError, "Did you mean 'VanishingGradient'"),
        ([{"rule": "VanishingGradient", "treshold": 1}], SMDebugValueError, "threshold"),
        ([{"rule": "VanishingGradient", "save_interval": 0}], SMDebugValueError, "at least 1"),
        ([{"rule": "VanishingGradient", "actions": "{"}], ValueError, "double quotes"),
        ([{"rule": "VanishingGradient", "window_s": "-1"}], SMDebugValueError, "window_s"),
        (
            [{"rule": "LossNotDecreasing", "use_losses_collection": False}],
            InsufficientInformationForRuleInvocation,
            "LossNotDecreasing",
        ),
        (5, SMDebugTypeError, "5"),
        ([{"rule": "ExplodingTensor", "tensor_regex": "("}], SMDebugValueError, r"\("),
    ],
    ids=str,
)
def test_wrong_rules_are_refused_before_anything_is_written(out_dir, rules, error, text):
    with pytest.raises(error, match=text):
        Hook(out_dir, rules=rules)
    assert not out_dir.exists()


def test_a_hook_without_rules_leaves_no_trace_of_them(out_dir):
    with Hook(out_dir, save_config=EVERY) as hook:
        train(hook)
    assert not (out_dir / "findings").exists() and not (out_dir / run_control.FOLDER).exists()
    names = {thread.name for thread in threading.enumerate()}
    assert "smdebug-rules" not in names


def test_a_dry_run_ends(out_dir):
    with Hook(out_dir, dry_run=True, rules=["VanishingGradient"]) as hook:
        train(hook)
    assert not out_dir.exists()


def test_a_forked_child_leaves_the_watch_alone(out_dir):
    rule = {"rule": "VanishingGradient", "actions": [Told()]}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        hook.begin_step()
        child = os.fork()
        if child == 0:
            hook.begin_step()
            hook._close(at_exit=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        train(hook)
    assert [hit["step"] for hit in findings(out_dir)] == [4, 5, 6, 7, 8]


# --- actions


def once(event: threading.Event):
    """Waits for the event after the step at which it is due."""

    def pause(number):
        if number >= 3:
            assert event.wait(60)

    return pause


class Told(Action):
    """Sets an event when it was told of a hit."""

    def __init__(self, **options):
        super().__init__(**options)
        self.hits, self.event, self.thread = [], threading.Event(), None

    def perform(self, hit):
        self.thread = threading.current_thread().name
        self.hits.append(hit)
        self.event.set()
        return "Told."

    def intent(self, hit):
        return "tell"


def test_actions_run_on_a_thread_of_their_own_once_in_a_window(out_dir, tmp_path):
    told, lines = Told(), tmp_path / "hits.jsonl"
    rule = {"rule": "VanishingGradient", "actions": [told, File(str(lines))]}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        train(hook)
    assert [hit.step for hit in told.hits] == [3] and told.thread == "smdebug-rules"
    hit = told.hits[0]
    assert (hit.rule, hit.mode, hit.path, hit.run) == (
        "VanishingGradient",
        "TRAIN",
        str(out_dir),
        out_dir.name,
    )
    assert len(lines.read_text().splitlines()) == 1
    every_time = Told()
    rule = {"rule": "VanishingGradient", "actions": [every_time], "window_s": 0}
    with Hook(tmp_path / "other", save_config=EVERY, rules=[rule]) as hook:
        train(hook)
    assert [hit.step for hit in every_time.hits] == [3, 4, 5, 6, 7]


def test_an_action_that_fails_is_logged_and_harms_nothing(out_dir, messages):
    class Failing(Told):
        def perform(self, hit):
            raise OSError("no way")

    rule = {"rule": "VanishingGradient", "actions": [Failing(), told := Told()]}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        train(hook)
    assert len(told.hits) == 1 and len(findings(out_dir)) == 5
    assert any("Failing" in text and "no way" in text for text in texts(messages))


def test_training_is_stopped_only_by_an_action(out_dir, tmp_path):
    steps = []
    rule = {"rule": "VanishingGradient", "actions": [StopTraining(), told := Told()]}
    hook = Hook(out_dir, save_config=EVERY, rules=[rule])

    def pause(number):
        steps.append(number)
        if number >= 3:
            assert told.event.wait(60)
            recorded.wait_until_heard(hook, "stop")

    with pytest.raises(TrainingStopRequested, match="VanishingGradient asked at step 3"):
        train(hook, pause=pause)
    assert steps == [0, 1, 2, 3]
    hook.begin_step()  # asked once
    hook.close()
    assert run_control.records(out_dir)[0].is_running
    with Hook(tmp_path / "other", save_config=EVERY, rules=["VanishingGradient"]) as unharmed:
        train(unharmed)
    assert len(findings(tmp_path / "other")) == 5


def test_somebody_else_may_ask_to_stop(out_dir):
    rule = {"rule": "VanishingGradient", "actions": '[{"name": "log", "level": "info"}]'}
    hook = Hook(out_dir, save_config=EVERY, rules=[rule])
    hook.begin_step()
    run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
    recorded.wait_until_heard(hook, "stop")
    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        hook.begin_step()
    run_control.ask(out_dir, "save_now", collections=["weights"], steps=1)
    recorded.wait_until_heard(hook, "save_now")
    hook.begin_step()  # the request to stop is still there, but was answered
    hook.close()


def test_more_is_saved_when_an_action_asks_for_it(out_dir):
    told = Told()
    rule = {"rule": "VanishingGradient", "actions": [SaveNow("weights", 2), told]}
    hook = Hook(out_dir, save_config=NEVER, rules=[{**rule, "save_interval": 1}])
    hook.get_collection("weights").include("weight")

    def pause(number):
        if number == 3:
            assert told.event.wait(60)
            recorded.wait_until_heard(hook, "save_now")

    with hook:
        train(hook, pause=pause)
    assert create_trial(out_dir).tensor("weight").steps() == [4, 5]


def test_a_request_for_what_does_not_exist_is_logged(out_dir, messages):
    rule = {"rule": "VanishingGradient", "actions": [Told()]}
    hook = Hook(out_dir, save_config=EVERY, rules=[rule])
    hook.begin_step()
    run_control.ask(out_dir, "save_now", collections=["nonsense"], steps=2)
    recorded.wait_until_heard(hook, "save_now")
    hook.begin_step()
    hook.close()
    assert any("nonsense" in text for text in texts(messages))


# --- failures


def test_a_full_disk_harms_neither_training_nor_rules(out_dir, monkeypatch, messages):
    monkeypatch.delenv("SMDEBUG_STRICT", raising=False)
    out_dir.mkdir(parents=True)
    (out_dir / "findings").write_text("in the way")
    told = Told()
    rule = {"rule": "VanishingGradient", "actions": [told]}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        train(hook)
    assert [hit.step for hit in told.hits] == [3]
    assert any("the run itself is not harmed" in text for text in texts(messages))
    assert create_trial(out_dir).steps() == list(range(8))


def test_strict_mode_raises_what_is_wrong_with_the_run_and_not_what_rules_find(
    out_dir, monkeypatch
):
    monkeypatch.setenv("SMDEBUG_STRICT", "1")
    with Hook(out_dir, save_config=EVERY, rules=["VanishingGradient"]) as hook:
        train(hook)
    assert len(findings(out_dir)) == 5


# --- checkpoints


def test_a_checkpoint_is_written_before_the_stop_by_the_training_thread(out_dir):
    told, done = Told(), []
    rule = {"rule": "VanishingGradient", "actions": [Checkpoint(), StopTraining(), told]}
    hook = Hook(out_dir, save_config=EVERY, rules=[rule])

    @hook.on_checkpoint
    def write():
        done.append((threading.current_thread(), int(hook.step)))

    def pause(number):
        if number == 3:
            assert told.event.wait(60)
            recorded.wait_until_heard(hook, "checkpoint", "stop")

    with pytest.raises(TrainingStopRequested):
        train(hook, pause=pause)
    assert done == [(threading.current_thread(), 3)]
    hook.close()


def asked_for_a_checkpoint(out_dir, rule="Mine", step=7):
    run_control.ask(out_dir, "checkpoint", rule=rule, step=step, message="")


def hook_that_listens(out_dir):
    rule = {"rule": "VanishingGradient", "actions": [Told()]}
    hook = Hook(out_dir, save_config=EVERY, rules=[rule])
    hook.begin_step()
    return hook


def test_a_checkpoint_that_nobody_writes_is_said(out_dir, messages):
    with hook_that_listens(out_dir) as hook:
        asked_for_a_checkpoint(out_dir)
        recorded.wait_until_heard(hook, "checkpoint")
        hook.begin_step()
    assert messages.containing("hook.on_checkpoint(function)")
    with pytest.raises(SMDebugTypeError, match="without arguments"):
        hook.on_checkpoint("weights.pt")


@pytest.mark.parametrize("strict", [False, True])
def test_a_checkpoint_that_fails_reaches_the_training_in_strict_mode_only(
    out_dir, messages, monkeypatch, strict
):
    monkeypatch.setenv("SMDEBUG_STRICT", str(int(strict)))
    with hook_that_listens(out_dir) as hook:
        hook.on_checkpoint(lambda: 1 // 0)
        asked_for_a_checkpoint(out_dir)
        recorded.wait_until_heard(hook, "checkpoint")
        if strict:
            with pytest.raises(ZeroDivisionError):
                hook.begin_step()
        else:
            hook.begin_step()
            assert messages.containing("rule Mine asked for failed. ZeroDivisionError")


def test_processes_that_ask_for_the_same_thing_are_answered_once(out_dir):
    written = []
    with hook_that_listens(out_dir) as hook:
        hook.on_checkpoint(lambda: written.append(int(hook.step)))
        for step in (7, 7, 8):
            asked_for_a_checkpoint(out_dir, step=step)
            recorded.wait_until_heard(hook, "checkpoint")
            hook.begin_step()
        run_control.ask(out_dir, "stop", rule="Mine", step=8, message="")
        recorded.wait_until_heard(hook, "stop")
        with pytest.raises(TrainingStopRequested):
            hook.begin_step()
        run_control.ask(out_dir, "stop", rule="Other", step=9, message="")
        recorded.wait_until_heard(hook, "stop")
        hook.begin_step()  # the training is ending
    assert written == [0, 2]


def test_a_request_is_heard_that_does_not_show_in_the_time_of_the_folder(out_dir, monkeypatch):
    monkeypatch.setattr(run_requests, "POLL_SECS", 3600)  # the test looks, not a thread
    with hook_that_listens(out_dir) as hook:
        asked_for_a_checkpoint(out_dir)
        hook._rule_watch._requests._look()
        folder = out_dir / run_control.FOLDER
        at = folder.stat().st_mtime_ns
        run_control.ask(out_dir, "stop", rule="Mine", step=7, message="")
        os.utime(folder, ns=(at, at))  # as if both were written within one tick of the clock
        hook._rule_watch._requests._look()
        with pytest.raises(TrainingStopRequested):
            hook.begin_step()


def test_actions_that_take_long_do_not_keep_requests_waiting(out_dir):
    class Slow(Told):
        def perform(self, hit):
            super().perform(hit)
            assert go_on.wait(60)
            return "Slept."

    go_on = threading.Event()
    rule = {"rule": "VanishingGradient", "actions": [slow := Slow()]}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        train(hook)
        assert slow.event.wait(60)
        run_control.ask(out_dir, "stop", rule="Mine", step=7, message="")
        recorded.wait_until_heard(hook, "stop")
        with pytest.raises(TrainingStopRequested):
            hook.begin_step()
        go_on.set()


# --- trainings that hang

STALLED = {"rule": "StalledTrainingRule", "threshold": 1, "stop_training_on_fire": "True"}


def test_a_stalled_training_is_asked_to_stop(out_dir):
    with Hook(out_dir, save_config=EVERY, rules=[STALLED]) as hook:
        hook.begin_step()
        hook.save_scalar("x", 1)
        hook.end_step()
        recorded.wait_until_heard(hook, "stop")
        with pytest.raises(TrainingStopRequested, match="StalledTrainingRule asked at step 0"):
            hook.begin_step()
        assert run_control.is_answered(out_dir)
    assert [hit["severity"] for hit in findings(out_dir)] == ["error"]


def test_without_the_switch_a_stalled_training_is_only_reported(out_dir):
    rule = {**STALLED, "stop_training_on_fire": "no"}
    with Hook(out_dir, save_config=EVERY, rules=[rule]) as hook:
        hook.begin_step()
        hook.save_scalar("x", 1)
        hook.end_step()
        recorded.wait_until(lambda: findings(out_dir))
        hook.begin_step()
    assert not (out_dir / run_control.FOLDER).exists()


def test_a_wrong_prefix_is_refused_before_anything_is_written(out_dir):
    with pytest.raises(SMDebugValueError, match="training_job_prefix"):
        Hook(out_dir, rules=[{**STALLED, "training_job_name_prefix": "a b"}])
    assert not out_dir.exists()


HANGING = """
import sys, time
from smdebug import Hook, SaveConfig, _core
from smdebug.rules.action import StopStalled
stop = StopStalled(grace_s=0.1, kill_s=60)
rule = {"rule": "StalledTrainingRule", "threshold": 1, "actions": [stop]}
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1), rules=[rule])
hook.begin_step()
hook.save_scalar("x", 1)
hook.end_step()
time.sleep(600)  # as if a collective operation never ended
"""


def test_a_training_that_hangs_is_ended_from_inside(out_dir):
    process = recorded.start(HANGING, out_dir)
    try:
        assert process.wait(timeout=recorded.TIMEOUT_SECS) == -signal.SIGTERM
    finally:
        process.kill()
        said, _ = process.communicate()
    assert "does not stop as it was asked to; SIGTERM" in said
    assert run_control.asked(out_dir, "stop")["rule"] == "StalledTrainingRule"


LISTENING = """
import sys, time
from smdebug import Hook, SaveConfig
from smdebug.exceptions import TrainingStopRequested
rules = [{"rule": "VanishingGradient", "actions": '[{"name": "log", "level": "info"}]'}]
hook = Hook(sys.argv[1], save_config=SaveConfig(save_interval=1), rules=rules)
seen_at = None
try:
    while True:
        if seen_at is None and hook._rule_watch._requests._seen:
            seen_at = int(hook.step)
        hook.begin_step()
        hook.save_scalar("x", 1)
        time.sleep(0.005)  # as if it trained
except TrainingStopRequested as stop:
    # Seen before the look above, or between it and the beginning of the step.
    assert seen_at in (None, int(hook.step)), (seen_at, int(hook.step))
    hook.close()
    print(stop.rule, flush=True)
    sys.exit(42)
"""


def test_all_processes_of_a_run_stop_at_the_step_after_they_saw_the_request(out_dir):
    sizes = {"WORLD_SIZE": "3"}
    ranks = [recorded.start(LISTENING, out_dir, RANK=str(rank), **sizes) for rank in range(3)]
    try:
        recorded.wait_until(lambda: len(run_control.records(out_dir)) == 3)
        run_control.ask(out_dir, "stop", rule="Mine", step=1, message="")
        assert [rank.wait(timeout=recorded.TIMEOUT_SECS) for rank in ranks] == [42] * 3
    finally:
        for rank in ranks:
            rank.kill()
    for rank in ranks:
        said, _ = rank.communicate()
        assert said.splitlines()[-1] == "Mine"
