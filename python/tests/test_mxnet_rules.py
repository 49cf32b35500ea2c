"""Rules inside of a training with MXNet."""

from __future__ import annotations

from pathlib import Path

import pytest
from mxnet import gluon
from mxnet_training import only, rows, small, step, trainer_of
from recorded import wait_until_heard
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
from smdebug.mxnet import Hook, create_trial

RULE = {
    "rule": "VanishingGradient",
    "save_interval": 2,
    "actions": '[{"name": "log", "level": "info"}]',
}


def test_gradients_are_saved_for_a_rule_and_a_request_ends_the_training(out_dir: Path) -> None:
    hook = Hook(out_dir, save_config=only(10**9), rules=[RULE])
    net, loss = small(), gluon.loss.SoftmaxCrossEntropyLoss()
    hook.register_block(net)
    trainer = trainer_of(net)
    data = rows(100)
    for _ in range(4):
        step(net, loss, trainer, *next(data))
    begins = hook._capture.roots[0].begins_step
    assert begins.is_fast  # the last step saved nothing
    run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
    wait_until_heard(hook, "stop")
    assert not begins.is_fast
    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        step(net, loss, trainer, *next(data))
    step(net, loss, trainer, *next(data))  # what follows is the end of the training
    hook.close()
    trial = create_trial(str(out_dir))
    assert all(name.startswith("gradient/") for name in trial.tensor_names())
    assert trial.steps() == [0, 2, 4]
