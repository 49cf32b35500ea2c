"""Estimators, recorded with the last TensorFlow that has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import session_training as training
import smdebug.tensorflow as smd
import tensorflow as tf
import test_tensorflow_session_run as run
from markdown_examples import ROOT, check_examples
from session_training import tf1

pytestmark = pytest.mark.usefixtures("strict")


def data() -> Any:
    random = np.random.RandomState(0)
    x = random.randn(40, 3).astype(np.float32)
    y = x.sum(1, keepdims=True)
    return tf.data.Dataset.from_tensor_slices(({"x": x}, y)).batch(4)


def estimator(folder: Path, hook: Any = None, strategy: Any = None) -> Any:
    """A small regression with dropout."""

    def model(features: Any, labels: Any, mode: str) -> Any:
        with tf1.variable_scope("dense"):
            kernel = tf1.get_variable("kernel", (3, 4))
            bias = tf1.get_variable("bias", (4,))
        flow = tf.nn.relu(tf.matmul(features["x"], kernel) + bias)
        if mode == tf.estimator.ModeKeys.TRAIN:
            flow = tf.nn.dropout(flow, rate=0.2)
        output = tf.matmul(flow, tf1.get_variable("last", (4, 1)))
        if mode == tf.estimator.ModeKeys.PREDICT:
            return tf.estimator.EstimatorSpec(mode, predictions={"output": output})
        loss = tf1.losses.mean_squared_error(labels, output)
        optimizer = tf1.train.AdamOptimizer(0.01)
        if hook is not None:
            optimizer = hook.wrap_optimizer(optimizer)
        train = optimizer.minimize(loss, tf1.train.get_or_create_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)

    config = tf.estimator.RunConfig(
        str(folder),
        tf_random_seed=5,
        session_config=training.ONE_THREAD,
        save_checkpoints_steps=1000,
        save_summary_steps=None,
        log_step_count_steps=None,
        train_distribute=strategy,
    )
    return tf.estimator.Estimator(model, config=config)


def variables_of(made: Any) -> dict[str, bytes]:
    return {name: made.get_variable_value(name).tobytes() for name in made.get_variable_names()}


def test_training_and_evaluation_are_told_apart(out_dir: Path, tmp_path: Path) -> None:
    hook = smd.EstimatorHook(str(out_dir))
    made = estimator(tmp_path / "model", hook)
    hook.set_mode(smd.modes.TRAIN)
    made.train(data, hooks=[hook])
    hook.set_mode(smd.modes.EVAL)
    made.evaluate(data, hooks=[hook])
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.tensor_names() == ["mean_squared_error/value:0"]
    assert trial.steps(mode=smd.modes.TRAIN) == [0]
    assert trial.steps(mode=smd.modes.EVAL) == [0]
    assert trial.steps() == [0, 10], "the run that found no more data was no step"


def test_all_three_modes_and_everything_in_them(out_dir: Path, tmp_path: Path) -> None:
    kinds = ["weights", "biases", "gradients", "optimizer_variables"]
    config = smd.SaveConfig(save_interval=5)
    hook = smd.EstimatorHook(str(out_dir), include_collections=kinds, save_config=config)
    made = estimator(tmp_path / "model", hook)
    for _ in range(2):
        hook.set_mode(smd.modes.TRAIN)
        made.train(data, hooks=[hook])
        hook.set_mode(smd.modes.EVAL)
        losses = made.evaluate(data, hooks=[hook])
        hook.set_mode(smd.modes.PREDICT)
        outputs = list(made.predict(data, hooks=[hook]))
    hook.close()
    assert len(outputs) == 40
    assert losses["loss"] > 0
    trial = smd.create_trial(str(out_dir))
    for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT):
        assert trial.tensor("dense/kernel:0").steps(mode=mode) == [0, 5, 10, 15]
        assert trial.tensor("dense/bias:0").steps(mode=mode) == [0, 5, 10, 15]
    [loss] = trial.tensor_names(collection="losses")
    assert trial.tensor(loss).steps(mode=smd.modes.EVAL) == [0, 5, 10, 15]
    assert trial.tensor(loss).steps(mode=smd.modes.PREDICT) == []
    for name in trial.tensor_names(collection="gradients"):
        assert trial.tensor(name).steps(mode=smd.modes.TRAIN) == [0, 5, 10, 15]
        assert trial.tensor(name).steps(mode=smd.modes.EVAL) == []
    assert len(trial.tensor_names(collection="gradients")) == 3
    assert len(trial.tensor_names(collection="optimizer_variables")) == 8


def test_estimators_learn_the_same_to_the_last_bit(out_dir: Path, tmp_path: Path) -> None:
    plain = estimator(tmp_path / "plain")
    plain.train(data)
    hook = smd.EstimatorHook(
        str(out_dir), save_all=True, save_config=smd.SaveConfig(save_interval=3)
    )
    recorded = estimator(tmp_path / "recorded", hook)
    recorded.train(data, hooks=[hook])
    hook.close()
    assert variables_of(plain) == variables_of(recorded)
    trial = smd.create_trial(str(out_dir))
    assert trial.steps() == [0, 3, 6, 9]
    assert trial.tensor("Relu:0").value(9).shape == (4, 4)


def test_the_two_hooks_are_one_class() -> None:
    assert smd.EstimatorHook is smd.SessionHook


def test_evaluation_between_steps_of_training_is_no_mix_of_graphs(
    out_dir: Path, tmp_path: Path, messages: Any
) -> None:
    hook = smd.EstimatorHook(str(out_dir), save_config=smd.SaveConfig(save_interval=1))
    hook.set_mode(smd.modes.TRAIN)
    made = estimator(tmp_path / "model", hook)

    class Evaluates(tf1.train.SessionRunHook):
        def after_run(self, run_context: Any, run_values: Any) -> None:
            hook.set_mode(smd.modes.EVAL)
            other.evaluate(data, hooks=[hook], steps=1)
            hook.set_mode(smd.modes.TRAIN)

    other = estimator(tmp_path / "other", hook)
    other.train(data, steps=1)
    made.train(data, hooks=[hook, Evaluates()], steps=3)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert not messages.containing("two graphs")
    assert trial.steps(mode=smd.modes.TRAIN) == [0, 1, 2]
    assert trial.steps(mode=smd.modes.EVAL) == [0, 1, 2]


def test_replicas_on_one_machine_are_one_worker(out_dir: Path, tmp_path: Path) -> None:
    hook = smd.EstimatorHook(
        str(out_dir),
        include_collections=["weights", "gradients"],
        save_config=smd.SaveConfig(save_interval=2),
    )
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    made = estimator(tmp_path / "model", hook, strategy)
    made.train(data, hooks=[hook], steps=4)
    hook.close()
    trial = smd.create_trial(str(out_dir))
    assert trial.workers() == ["worker_0"]
    assert trial.steps() == [0, 2]
    assert "dense/kernel:0" in trial.tensor_names(collection="weights")
    assert trial.tensor_names(collection="losses")


def test_strategies_of_several_machines_are_not_recorded(
    out_dir: Path, tmp_path: Path, messages: Any
) -> None:
    hook = smd.EstimatorHook(str(out_dir))
    strategy = tf.distribute.experimental.CentralStorageStrategy(["/cpu:0"])
    made = estimator(tmp_path / "model", hook, strategy)
    made.train(data, hooks=[hook], steps=2)
    hook.close()
    assert len(messages.containing("Nothing is recorded: sessions under CentralStorage")) == 1


def test_a_script_with_estimators_is_recorded_without_a_change(
    out_dir: Path, tmp_path: Path
) -> None:
    words = ("--save", "weights,gradients", "--interval", "2")
    script = run.SCRIPTS / "estimates.py"
    plain = run.start(script, tmp_path / "plain")
    done = run.start("-m", "smdebug.run", "--out", out_dir, *words, script, tmp_path / "model")
    assert done.returncode == plain.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    trial = smd.create_trial(str(out_dir))
    for mode in (smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT):
        assert trial.tensor("linear/linear_model/x/weights:0").steps(mode=mode) == [0, 2, 4]
    assert set(trial.modes()) == {smd.modes.TRAIN, smd.modes.EVAL, smd.modes.PREDICT}
    for name in trial.tensor_names(collection="gradients"):
        assert trial.tensor(name).steps(mode=smd.modes.TRAIN) == [0, 2, 4]


def test_the_quick_start_prints_what_is_shown(tmp_path: Path) -> None:
    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, "Estimators")
