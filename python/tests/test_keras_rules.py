"""Rules inside of fit, and what they ask of it, on every backend and generation of Keras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from conftest import Messages
from keras_models import BATCH, GRADIENTS, WEIGHTS, data, fit, k1, make_hook, trial_of
from recorded import wait_until_heard
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
from smdebug.tensorflow import SaveConfig, modes

NEVER = SaveConfig(start_step=10**9)
RULE = {
    "rule": "VanishingGradient",
    "save_interval": 2,
    "actions": '[{"name": "log", "level": "info"}]',
}


@pytest.fixture(autouse=True)
def lenient(clean_process: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a real job: a failure of ours never ends the training, a request does."""
    monkeypatch.setenv("SMDEBUG_STRICT", "0")


def asking(keras: Any, hook: Any, out_dir: Path, request: str, **fields: Any) -> Any:
    """A callback that asks for something after the fourth batch, and notes all batches."""

    class Asking(keras.callbacks.Callback):
        batches: list[int] = []

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches.append(batch)
            if len(self.batches) == 4:
                run_control.ask(out_dir, request, rule="Mine", step=7, **fields)
                wait_until_heard(hook, request)

    return Asking()


@pytest.mark.parametrize("rate", [0.0, 0.3], ids=["plain", "random"])
def test_gradients_are_saved_for_a_rule(keras: Any, out_dir: Path, rate: float) -> None:
    hook = make_hook(out_dir, save_config=NEVER, rules=[RULE])
    fit(k1(keras, rate), hook)
    hook.close()
    trial = trial_of(out_dir)
    for name in GRADIENTS:
        assert trial.tensor(name).steps(mode=modes.TRAIN) == [0, 2, 4, 6, 8]


def test_a_stop_ends_fit_with_its_history(keras: Any, out_dir: Path, messages: Messages) -> None:
    hook = make_hook(out_dir, save_config=SaveConfig(save_interval=1), rules=[RULE])
    asks = asking(keras, hook, out_dir, "stop", message="Enough.")
    history = fit(k1(keras), None, callbacks=[hook, asks], epochs=3)
    hook.close()
    assert asks.batches == [0, 1, 2, 3, 4]
    assert len(history.history["loss"]) == 1
    assert len(messages.containing("Rule Mine asked at step 7 for the training to stop.")) == 1
    assert trial_of(out_dir).steps(mode=modes.TRAIN) == [0, 1, 2, 3, 4]


def test_a_stop_outside_of_fit_is_raised(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, rules=[RULE])
    model = k1(keras)
    fit(model, hook)
    run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
    wait_until_heard(hook, "stop")
    x, y = data()
    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        model.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[hook])
    model.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[hook])  # asked for once
    hook.close()
    assert trial_of(out_dir).steps(mode=modes.EVAL) == [0, 3, 6, 9]


def test_more_is_saved_and_a_checkpoint_written_on_request(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_config=NEVER, rules=[RULE])
    written: list[int] = []
    hook.on_checkpoint(lambda: written.append(int(hook.step)))
    model = k1(keras)
    asks = asking(keras, hook, out_dir, "checkpoint")
    fit(model, None, callbacks=[hook, asks])
    assert written == [3]
    more = asking(keras, hook, out_dir, "save_now", collections=["weights", "layers"], steps=2)
    fit(model, None, callbacks=[hook, more])
    hook.close()
    trial = trial_of(out_dir)
    for name in (WEIGHTS[0], "d1/outputs"):
        assert trial.tensor(name).steps(mode=modes.TRAIN) == [14, 15]
