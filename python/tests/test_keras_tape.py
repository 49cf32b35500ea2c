"""The hook for Keras in loops with GradientTape, eager and inside of tf.function."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import keras_models
import numpy as np
import pytest
import tensorflow as tf
from conftest import Messages
from keras_models import BATCH, data, k1, trial_of, value, weights
from recorded import wait_until, wait_until_heard
from smdebug import run_control
from smdebug.exceptions import TrainingStopRequested
from smdebug.tensorflow import SaveConfig, modes

EVERY_STEP = SaveConfig(save_interval=1)
EVERY_THIRD = SaveConfig(save_interval=3)
NAMES = ["d1/kernel", "d1/bias", "d2/kernel", "d2/bias"]


pytestmark = pytest.mark.usefixtures("strict")
make_hook = functools.partial(keras_models.make_hook, save_config=EVERY_STEP)


def train_step(model: Any, hook: Any, x: Any, y: Any) -> Any:
    tape = tf.GradientTape()
    with hook.wrap_tape(tape) as entered:
        assert entered is tape
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


def batch(i: int) -> tuple[Any, Any]:
    x, y = data()
    return tf.constant(x[i * BATCH : (i + 1) * BATCH]), tf.constant(y[i * BATCH : (i + 1) * BATCH])


def test_a_loop_saves_its_loss_and_what_it_is_given(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir)
    model = k1(keras)
    losses = []
    for i in range(4):
        losses.append(float(train_step(model, hook, *batch(i))))
        hook.save_tensor("accuracy", tf.constant(0.25 * i), "metrics")
    hook.close()
    trial = trial_of(out_dir)
    assert sorted(trial.tensor_names()) == ["accuracy", "loss"]
    assert trial.steps(mode=modes.TRAIN) == [0, 1, 2, 3]
    assert trial.tensor_names(collection="losses") == ["loss"]
    np.testing.assert_allclose([value(out_dir, "loss", i) for i in range(4)], losses)
    assert float(value(out_dir, "accuracy", 3)) == 0.75


def test_a_loop_saves_weights_before_the_update_and_gradients(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["weights", "biases", "gradients"])
    keras.utils.set_random_seed(3)
    plain = k1(keras)

    class NoHook:
        def wrap_tape(self, tape: Any) -> Any:
            return tape

    for i in range(4):
        train_step(plain, NoHook(), *batch(i))
    keras.utils.set_random_seed(3)
    model = k1(keras)
    before = []
    for i in range(4):
        before.append(weights(model))
        train_step(model, hook, *batch(i))
        with tf.GradientTape() as other:  # not wrapped: no step
            y = tf.reduce_sum(model(batch(i)[0]))
        other.gradient(y, model.trainable_variables)
        assert type(other) is tf.GradientTape
    hook.close()
    for ours, theirs in zip(weights(model), weights(plain), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    trial = trial_of(out_dir)
    names = [f"weights/{n}:0" for n in NAMES] + [f"gradients/{n}Grad" for n in NAMES]
    assert sorted(trial.tensor_names()) == sorted([*names, "loss"])
    counts = {c: len(trial.tensor_names(collection=c)) for c in ("weights", "biases", "gradients")}
    assert counts == {"weights": 2, "biases": 2, "gradients": 4}
    assert trial.steps(mode=modes.TRAIN) == [0, 1, 2, 3]
    for i in range(4):
        for name, kept in zip(NAMES, before[i], strict=True):
            np.testing.assert_array_equal(value(out_dir, f"weights/{name}:0", i), kept)
    moved = before[1][0] - before[2][0]
    np.testing.assert_allclose(moved, 0.1 * value(out_dir, "gradients/d1/kernelGrad", 1), atol=1e-6)


def test_a_persistent_tape_is_one_step(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    embedding = keras.layers.Embedding(10, 3, name="words")
    model = keras.Sequential(
        [embedding, keras.layers.GlobalAveragePooling1D(), keras.layers.Dense(2, name="d")]
    )
    words = tf.constant([[1, 2], [2, 7]])
    model(words)
    extra = tf.Variable(1.0, name="unused")
    with hook.wrap_tape(tf.GradientTape(persistent=True)) as tape:
        loss = tf.reduce_sum(model(words) ** 2)
        other = tf.reduce_sum(model(words))
    sources = [*model.trainable_variables, extra]
    first = tape.gradient(loss, sources)
    second = tape.gradient(other, model.trainable_variables)
    assert first[-1] is None and second[0] is not None
    hook.close()
    trial = trial_of(out_dir)
    assert trial.steps() == [0]
    assert {"loss", "loss_1"} <= set(trial.tensor_names())
    name = next(n for n in trial.tensor_names(collection="gradients") if "words" in n)
    shown = trial.tensor(name).value(0, mode=modes.TRAIN)
    assert shown.shape == (10, 3)
    np.testing.assert_array_equal(shown, tf.convert_to_tensor(first[0]).numpy())


def test_a_wrapped_optimizer_is_the_same_object(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["optimizer_variables"])
    model = k1(keras)
    assert hook.wrap_optimizer(model.optimizer) is model.optimizer
    assert type(model.optimizer).__name__ == "SGD"
    for i in range(3):
        train_step(model, hook, *batch(i))
    hook.close()
    names = trial_of(out_dir).tensor_names(collection="optimizer_variables")
    assert any(name.endswith("iteration:0") for name in names)
    assert any(name.endswith("learning_rate:0") for name in names)


def test_layers_of_a_registered_model_are_saved(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["layers"])
    model = k1(keras)
    hook.register_model(model)
    for i in range(2):
        train_step(model, hook, *batch(i))
    hook.close()
    names = sorted(trial_of(out_dir).tensor_names(collection="layers"))
    assert names == sorted(f"{n}/{p}" for n in ("d1", "do", "d2") for p in ("inputs", "outputs"))
    np.testing.assert_array_equal(value(out_dir, "d1/inputs", 1), batch(1)[0].numpy())
    assert "call" not in vars(model.layers[0])


# ---- inside of tf.function


def check_traced(out_dir: Path, losses: list[float], before: list[Any]) -> None:
    trial = trial_of(out_dir)
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6]
    for step in (0, 3, 6):
        np.testing.assert_allclose(value(out_dir, "loss", step), losses[step], rtol=1e-6)
        if before:
            np.testing.assert_array_equal(value(out_dir, "weights/d1/kernel:0", step), before[step])
    assert len(trial.tensor_names(collection="gradients")) == 4


def test_a_traced_tape_saves_the_steps_that_are_due(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["weights", "gradients"], save_config=EVERY_THIRD)
    model = k1(keras)
    step = tf.function(lambda x, y: train_step(model, hook, x, y))
    losses, before = [], []
    for i in range(8):
        before.append(weights(model)[0])
        losses.append(float(step(*batch(i))))
    assert hook.step == 7
    hook.close()
    check_traced(out_dir, losses, before)


def test_a_loop_inside_of_a_function_counts_each_round(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, include_collections=["gradients"], save_config=EVERY_THIRD)
    model = k1(keras)
    x, y = data()
    xs = tf.reshape(tf.constant(x[: 8 * BATCH]), (8, BATCH, 4))
    ys = tf.reshape(tf.constant(y[: 8 * BATCH]), (8, BATCH, 2))
    one = tf.function(lambda a, b: train_step(model, hook, a, b))

    @tf.function
    def loop() -> Any:
        losses = tf.TensorArray(tf.float32, 8)
        for i in tf.range(8):
            losses = losses.write(i, one(xs[i], ys[i]))
        return losses.stack()

    losses = loop().numpy().tolist()
    hook.close()
    check_traced(out_dir, losses, [])


def test_a_tape_under_xla_is_left_alone(keras: Any, out_dir: Path, messages: Messages) -> None:
    hook = make_hook(out_dir, save_all=True, save_config=EVERY_THIRD)
    model = k1(keras)
    model.optimizer.build(model.trainable_variables)
    step = tf.function(lambda x, y: train_step(model, hook, x, y), jit_compile=True)
    losses = [float(step(*batch(i))) for i in range(4)]
    hook.close()
    assert losses[3] < losses[0]
    assert len(messages.containing("jit_compile=True cannot be recorded")) == 1
    assert not (out_dir / "events").exists()


RULE = {"rule": "VanishingGradient", "actions": '[{"name": "log", "level": "info"}]'}


def ask_to_stop(hook: Any, out_dir: Path) -> None:
    run_control.ask(out_dir, "stop", rule="Mine", step=7, message="Enough.")
    wait_until_heard(hook, "stop")


def test_a_stop_ends_a_loop(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, rules=[RULE])
    model = k1(keras)
    train_step(model, hook, *batch(0))
    ask_to_stop(hook, out_dir)
    with pytest.raises(TrainingStopRequested, match="Rule Mine asked at step 7"):
        train_step(model, hook, *batch(1))
    train_step(model, hook, *batch(1))  # the tape that was stopped left nothing behind
    hook.close()
    assert trial_of(out_dir).steps(mode=modes.TRAIN) == [0, 1]


def test_a_stop_ends_a_traced_loop(keras: Any, out_dir: Path) -> None:
    never = SaveConfig(save_steps=[0], start_step=10**9)
    rule = {**RULE, "save_interval": 10**6}
    hook = make_hook(out_dir, save_config=never, rules=[rule])
    model = k1(keras)
    step = tf.function(lambda x, y: train_step(model, hook, x, y))
    for i in range(3):
        step(*batch(i))
    ask_to_stop(hook, out_dir)
    wait_until(lambda: int(hook._traced._next_save) == 0)
    with pytest.raises(tf.errors.OpError, match="Rule Mine asked at step 7"):
        step(*batch(3))
    hook.close()


def test_a_value_of_a_trace_is_left_out_with_a_word(
    keras: Any, out_dir: Path, messages: Messages
) -> None:
    hook = make_hook(out_dir)
    model = k1(keras)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        loss = train_step(model, hook, x, y)
        hook.save_tensor("inside", loss, "metrics")
        return loss

    step(*batch(0))
    hook.close()
    assert len(messages.containing("'inside' has no value while a function is traced")) == 1
    assert trial_of(out_dir).tensor_names() == ["loss"]
