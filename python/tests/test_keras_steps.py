"""The hook for Keras: steps of the program's own, random numbers, scaled losses, mistakes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Messages
from keras_models import (
    BACKEND,
    BATCH,
    GRADIENTS,
    WEIGHTS,
    compiled,
    data,
    fit,
    k1,
    make_hook,
    sequential,
    trained_twice,
    trial_of,
    value,
)
from smdebug.tensorflow import SaveConfig, modes
from smdebug.tensorflow.keras import wrappers

EVERY_STEP = SaveConfig(save_interval=1)


pytestmark = pytest.mark.usefixtures("strict")


# ---- a train_step of the program's own


def giving(keras: Any, as_list: bool) -> Any:
    """A model whose train_step returns values for the hook."""
    kind = list if as_list else tuple

    class Giving(keras.Sequential):
        if BACKEND == "tensorflow":

            def train_step(self, batch: Any) -> Any:
                import tensorflow as tf

                x, y = batch[0], batch[1]
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
                gradients = tape.gradient(loss, self.trainable_variables)
                self.optimizer.apply_gradients(
                    zip(gradients, self.trainable_variables, strict=True)
                )
                doubled = [2.0 * g for g in gradients]
                return {"loss": loss, "smdebug_y": y + 1.0, "smdebug_gradients": kind(doubled)}

        elif BACKEND == "jax":

            def train_step(self, state: Any, batch: Any) -> Any:
                logs, state = super().train_step(state, batch)
                return {**logs, "smdebug_y": batch[1] + 1.0}, state

        else:

            def train_step(self, batch: Any) -> Any:
                logs = super().train_step(batch)
                return {**logs, "smdebug_y": batch[1] + 1.0}

    layers = [keras.layers.Dense(3, "relu", name="d1"), keras.layers.Dense(2, name="d2")]
    first = keras.Input((4,)) if hasattr(keras, "ops") else keras.layers.InputLayer((4,))
    return compiled(keras, Giving([first, *layers], name="seq"), metrics=None)


@pytest.mark.parametrize("as_list", [False, True], ids=["tuple", "list"])
def test_what_train_step_gives_for_us_is_saved_and_nowhere_else(
    keras: Any, out_dir: Path, as_list: bool
) -> None:
    seen: list[set[str]] = []

    class Others(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            seen.append(set(logs))

    hook = make_hook(out_dir, save_all=True)
    model = giving(keras, as_list)
    history = fit(model, None, callbacks=[hook, Others()])
    hook.close()
    assert set(history.history) == {"loss"}
    assert seen == [{"loss"}] * 10
    assert "train_step" not in vars(model)
    _, y = data()
    np.testing.assert_array_equal(value(out_dir, "labels", 3), y[3 * BATCH : 4 * BATCH] + 1)
    names = trial_of(out_dir).tensor_names()
    assert not [name for name in names if name.startswith("smdebug")]
    assert set(GRADIENTS) <= set(names)


@pytest.mark.keras_only(backends=("tensorflow",))  # others have no gradients to give
@pytest.mark.parametrize("as_list", [False, True], ids=["tuple", "list"])
def test_gradients_that_train_step_gives_count_more_than_those_seen(
    keras: Any, out_dir: Path, as_list: bool
) -> None:
    hook = make_hook(out_dir, save_all=True, save_config=EVERY_STEP)
    fit(giving(keras, as_list), hook)
    hook.close()
    moved = value(out_dir, WEIGHTS[0], 0) - value(out_dir, WEIGHTS[0], 1)
    np.testing.assert_allclose(2 * moved, 0.1 * value(out_dir, GRADIENTS[0], 1), atol=1e-6)


def test_batches_by_hand_are_steps(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    model = k1(keras)
    hook.register_model(model)
    x, y = data()
    results = []
    for i in range(4):
        rows = slice(i * BATCH, (i + 1) * BATCH)
        results.append(model.train_on_batch(x[rows], y[rows]))
        model.test_on_batch(x[rows], y[rows])
    shown = model.predict_on_batch(x[:BATCH])
    hook.close()
    assert "train_on_batch" not in vars(model)
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [0, 3]
    assert trial.steps(mode=modes.EVAL) == [0, 3]
    assert trial.steps(mode=modes.PREDICT) == [0]
    np.testing.assert_array_equal(value(out_dir, "inputs", 3), x[3 * BATCH : 4 * BATCH])
    np.testing.assert_allclose(value(out_dir, "loss", 3)[0], results[3][0], rtol=1e-6)
    assert set(GRADIENTS) <= set(trial.tensor_names(step=0))
    np.testing.assert_allclose(
        value(out_dir, "predictions", 0, modes.PREDICT), np.asarray(shown), atol=1e-7
    )


# ---- bits


def test_random_layers_keep_their_random_numbers(keras: Any, out_dir: Path) -> None:
    def make() -> Any:
        layers = keras.layers
        parts = [
            layers.Dense(16, "relu", name="d1"),
            layers.Dropout(0.3),
            layers.GaussianNoise(0.1),
            layers.BatchNormalization(),
            layers.Dense(2, name="d2"),
        ]
        return compiled(keras, sequential(keras, parts))

    config = SaveConfig(save_interval=3, start_step=1)
    hook = make_hook(out_dir, save_all=True, save_config=config)
    trained_twice(keras, make, hook, lambda m, h: fit(m, h, batches=20))
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [3, 6, 9, 12, 15, 18, 19]
    assert trial.tensor(GRADIENTS[0]).steps(mode=modes.TRAIN) == [3, 6, 9, 12, 15, 18]


def test_convolutions_and_lstm_stay_the_same(keras: Any, out_dir: Path) -> None:
    layers = keras.layers

    def make() -> Any:
        first = keras.Input((8, 8, 1))
        x = layers.Conv2D(4, 3, activation="relu", name="conv")(first)
        x = layers.BatchNormalization(name="norm")(x)
        x = layers.MaxPooling2D()(x)
        x = layers.Reshape((9, 4))(x)
        x = layers.LSTM(5, name="lstm")(x)
        return compiled(keras, keras.Model(first, layers.Dense(2, name="top")(x)))

    rng = np.random.default_rng(0)
    x = rng.random((64, 8, 8, 1), dtype=np.float32)
    y = rng.random((64, 2), dtype=np.float32)

    def run(model: Any, callback: Any) -> Any:
        callbacks = [callback] if callback is not None else []
        return model.fit(
            x, y, batch_size=BATCH, epochs=2, shuffle=False, verbose=0, callbacks=callbacks
        )

    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, make, hook, run)
    hook.close()
    names = trial_of(out_dir).tensor_names(step=0)
    assert {"conv/outputs", "lstm/outputs", "norm/weights/norm/moving_mean:0"} <= set(names)


@pytest.mark.keras_only(generations=(3,))  # two runs of Keras 2 under XLA differ by themselves
def test_a_compiled_transformer_stays_the_same(keras: Any, out_dir: Path) -> None:
    layers = keras.layers

    def make() -> Any:
        first = keras.Input((6, 8))
        x = first
        for i in range(2):
            attended = layers.MultiHeadAttention(2, 4, dropout=0.1, name=f"attention_{i}")(x, x)
            x = layers.LayerNormalization(name=f"norm_{i}")(
                layers.Add(name=f"add_{i}")([x, attended])
            )
            x = layers.Dense(8, "gelu", name=f"dense_{i}")(x)
        x = layers.Dense(2, name="top")(layers.GlobalAveragePooling1D()(x))
        jit = BACKEND != "torch"
        return compiled(keras, keras.Model(first, x), jit_compile=jit)

    rng = np.random.default_rng(0)
    x = rng.random((160, 6, 8), dtype=np.float32)
    y = rng.random((160, 2), dtype=np.float32)

    def run(model: Any, callback: Any) -> Any:
        callbacks = [callback] if callback is not None else []
        return model.fit(x, y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=callbacks)

    hook = make_hook(out_dir, include_collections=["layers", "gradients", "outputs"])
    trained_twice(keras, make, hook, run)
    hook.close()
    for step in (0, 3, 18):
        np.testing.assert_allclose(
            value(out_dir, "predictions", step), value(out_dir, "top/outputs", step), atol=1e-6
        )
    assert value(out_dir, "attention_1/outputs", 3).shape == (BATCH, 6, 8)


def test_gradients_of_a_scaled_loss_are_unscaled(keras: Any, out_dir: Path) -> None:
    def make() -> Any:
        dtype = {"dtype": "mixed_float16"}
        parts = [
            keras.layers.Dense(3, "relu", name="d1", **dtype),
            keras.layers.Dense(2, name="d2", dtype="float32"),
        ]
        model = sequential(keras, parts)
        inner = keras.optimizers.SGD(0.1, name="opt")
        kinds: Any = getattr(keras, "mixed_precision", keras.optimizers)
        scaled = getattr(keras.optimizers, "LossScaleOptimizer", None) or kinds.LossScaleOptimizer
        return compiled(keras, model, optimizer=scaled(inner))

    hook = make_hook(out_dir, include_collections=["gradients", "weights"], save_config=EVERY_STEP)
    trained_twice(keras, make, hook)
    hook.close()
    name = GRADIENTS[2]
    assert 1e-4 < float(np.abs(value(out_dir, name, 3)).max()) < 100
    moved = value(out_dir, WEIGHTS[2], 2) - value(out_dir, WEIGHTS[2], 3)
    np.testing.assert_allclose(moved, 0.1 * value(out_dir, name, 3).astype("f4"), atol=2e-4)


# ---- scripts

SCRIPT = """
import numpy as np
import keras
keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.InputLayer((4,)), keras.layers.Dense(3, name="d1")], name="seq")
model.compile(optimizer="sgd", loss="mse")
x, y = np.random.rand(40, 4).astype("float32"), np.random.rand(40, 3).astype("float32")
print(model.fit(x, y, batch_size=8, verbose=0).history)
print([w.sum() for w in model.get_weights()])
"""


def test_a_script_is_recorded_without_a_change_on_every_backend(
    out_dir: Path, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    python = Path(__file__).resolve().parents[1]
    variables = {**os.environ, "PYTHONPATH": str(python), "KERAS_BACKEND": BACKEND}
    options = ["--out", str(out_dir), "--save", "all", "--raw", "--interval", "1"]
    printed = []
    for words in ([], ["-m", "smdebug.run", *options]):
        command = [sys.executable, *words, str(script)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0] == printed[1]
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == trial.steps() == [0, 1, 2, 3, 4]
    names = set(trial.tensor_names())
    assert {"loss", "inputs", "d1/outputs", "gradients/d1/kernelGrad"} <= names
    assert "d1/weights/d1/kernel:0" in names
    assert not [name for name in names if "Sequential" in name]


# ---- mistakes


def test_mistakes_are_one_sentence_and_training_goes_on(
    keras: Any, out_dir: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SMDEBUG_STRICT", "0")
    hook = make_hook(out_dir, include_collections=["mine"], save_config=EVERY_STEP)
    assert hook.wrap_tape(None) is None
    assert hook.wrap_optimizer("adam") == "adam"
    hook.register_model(7)
    stranger = keras.layers.Dense(1, name="stranger")
    hook.get_collection("mine").add_keras_layer(stranger)
    fit(k1(keras), hook)
    hook.close()
    for text in ("needs a tf.GradientTape, not None", "not 'adam'", "needs a model of Keras"):
        assert len(messages.containing(text)) == 1, text
    assert len(messages.containing("'stranger' is no layer of the model 'seq'")) == 1
    assert trial_of(out_dir).steps(mode=modes.TRAIN) == list(range(10))


def test_a_failure_of_ours_does_not_reach_training(
    keras: Any, out_dir: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    from smdebug.tensorflow.keras.record import Record

    def fail(*args: Any) -> None:
        raise RuntimeError("on purpose")

    monkeypatch.setenv("SMDEBUG_STRICT", "0")
    monkeypatch.setattr(Record, "add_layer", fail)
    monkeypatch.setattr(Record, "add_gradients", fail)
    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, lambda: k1(keras), hook)
    hook.close()
    assert len(messages.containing("on purpose")) == 2
    names = set(trial_of(out_dir).tensor_names(step=0))
    assert {"inputs", "loss", *WEIGHTS} <= names
    assert not names & set(GRADIENTS)


@pytest.mark.keras_only(backends=("tensorflow",))  # on others it takes a batch before it is traced
def test_a_function_that_cannot_be_made_costs_a_capture_only(
    keras: Any, out_dir: Path, messages: Messages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> None:
        raise TypeError("on purpose")

    monkeypatch.setenv("SMDEBUG_STRICT", "0")
    monkeypatch.setattr(wrappers, "_with_capture", fail)
    hook = make_hook(out_dir, save_all=True)

    def run(model: Any, callback: Any) -> Any:
        fit(model)
        return fit(model, callback)

    trained_twice(keras, lambda: k1(keras), hook, run)
    hook.close()
    assert len(messages.containing("Capturing a step failed; training goes on")) == 1
    assert {"loss", *WEIGHTS} <= set(trial_of(out_dir).tensor_names(step=0))


def test_a_saved_model_knows_nothing_of_the_hook(keras: Any, out_dir: Path, tmp_path: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    model = k1(keras)
    hook.wrap_optimizer(model.optimizer)
    saved = str(tmp_path / "model.keras")

    class Saving(keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            if batch == 3:
                model.save(saved)

    fit(model, None, callbacks=[hook, Saving()])
    hook.close()
    loaded = keras.models.load_model(saved)
    plain = type(k1(keras).optimizer)
    assert type(loaded.optimizer) is plain
    assert type(model.optimizer) is not plain and isinstance(model.optimizer, plain)
    fit(loaded)
