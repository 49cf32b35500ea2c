"""Rules inside of a monitored session, and what they ask of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import session_training as training
import smdebug.tensorflow as smd
from recorded import wait_until_heard
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested

RULE = {
    "rule": "VanishingGradient",
    "save_interval": 2,
    "actions": '[{"name": "log", "level": "info"}]',
}


def test_gradients_are_saved_for_a_rule_and_a_stop_ends_the_session(out_dir: Path) -> None:
    never = smd.SaveConfig(start_step=10**9)
    hook = smd.SessionHook(str(out_dir), save_config=never, rules=[RULE])
    net = training.one_weight(hook)
    runs: list[int] = []

    def run(session: Any, feed: Any) -> None:
        if len(runs) == 5:
            run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
            wait_until_heard(hook, "stop")
        session.run(net.train, feed)
        runs.append(int(hook.step))

    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        training.train(net, [hook], 10, run)
    assert runs == [1, 2, 3, 4, 5]
    training.train(net, [hook], 2)  # a stop is asked for once
    hook.close()
    trial = smd.create_trial(str(out_dir))
    (name,) = trial.tensor_names(collection="gradients")
    assert trial.tensor(name).steps() == [0, 2, 4, 6]
