"""The hook for Keras on TensorFlow alone: strategies, old optimizers, loops inside of models."""

from __future__ import annotations

import functools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras_models
import numpy as np
import pytest
import smdebug
import smdebug.tensorflow as smd
import tensorflow as tf
from conftest import Messages
from keras_models import (
    BATCH,
    GRADIENTS,
    LAYERS,
    WEIGHTS,
    compiled,
    data,
    fit,
    k1,
    trained_twice,
    trial_of,
    value,
)
from smdebug.tensorflow import SaveConfig, modes

EVERY_STEP = SaveConfig(save_interval=1)
HERE = Path(__file__).resolve().parent


pytestmark = pytest.mark.usefixtures("strict")
make_hook = functools.partial(keras_models.make_hook, save_config=EVERY_STEP)


# ---- optimizers


@pytest.mark.keras_only(generations=(2,))
def test_a_legacy_optimizer_shows_its_hyperparameters(keras: Any, out_dir: Path) -> None:
    hook = make_hook(out_dir, save_all=True)
    fit(k1(keras, optimizer=keras.optimizers.legacy.Adam()), hook, batches=2)
    hook.close()
    trial = trial_of(out_dir)
    names = trial.tensor_names(collection="optimizer_variables")
    assert sorted(names) == sorted(
        f"Adam/{name}:0" for name in ("iter", "learning_rate", "decay", "beta_1", "beta_2")
    )
    assert set(WEIGHTS) | set(GRADIENTS) | set(LAYERS) <= set(trial.tensor_names(step=0))


def test_a_hook_of_another_kind_is_forgotten(out_dir: Path) -> None:
    hook = make_hook(out_dir)
    assert smd.get_hook("keras") is hook
    assert smd.get_hook("session") is None
    assert smd.get_hook() is None
    other = smd.SessionHook(str(out_dir.with_name("other")))
    assert smd.get_hook("estimator") is smd.get_hook("session") is other
    hook.close()
    other.close()


# ---- texts


def test_texts_are_saved_by_hand(out_dir: Path) -> None:
    hook = make_hook(out_dir)
    hook.begin_step()
    hook.save_tensor("words", tf.constant(["one", "zwölf"]), "mine")
    with pytest.raises(smdebug.exceptions.SMDebugTypeError, match="holds strings"):
        hook.save("words", tf.constant(["one"]))
    hook.close()
    assert trial_of(out_dir).tensor("words").value(0).tolist() == ["one", "zwölf"]


# ---- loops inside of models


def test_tensors_inside_of_a_loop_are_left_out(
    keras: Any, out_dir: Path, messages: Messages
) -> None:
    class Looping(keras.Model):
        def __init__(self) -> None:
            super().__init__(name="looping")
            self.inner = keras.layers.Dense(4, name="inner")
            self.last = keras.layers.Dense(2, name="last")

        def build(self, shape: Any) -> None:
            self.inner.build((None, 4))
            self.last.build((None, 4))
            self.built = True

        def call(self, x: Any) -> Any:
            def body(i: Any, h: Any) -> Any:
                return i + 1, self.inner(h)

            _, x = tf.while_loop(lambda i, h: i < 3, body, [tf.constant(0), x])
            return self.last(x)

    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, lambda: compiled(keras, Looping()), hook)
    hook.close()
    names = set(trial_of(out_dir).tensor_names(step=0))
    assert "inner/outputs" not in names
    assert {"last/inputs", "last/outputs", "predictions", "loss"} <= names
    assert len([n for n in names if n.startswith("gradients/")]) == 4
    assert len(messages.containing("is computed inside a loop")) >= 1


# ---- strategies


def test_two_replicas_give_the_whole_batch(keras: Any, out_dir: Path) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def make() -> Any:
        with strategy.scope():
            return k1(keras)

    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, make, hook)
    hook.close()
    trial = trial_of(out_dir)
    assert trial.workers() == ["worker_0"]
    assert trial.steps(mode=modes.TRAIN) == list(range(10))
    x, y = data()
    for step in (0, 4, 9):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        np.testing.assert_array_equal(value(out_dir, "inputs", step), x[rows])
        np.testing.assert_array_equal(value(out_dir, "labels", step), y[rows])
        assert value(out_dir, "d1/outputs", step).shape == (BATCH, 3)
    for weight, gradient in zip(WEIGHTS, GRADIENTS, strict=True):
        moved = value(out_dir, weight, 3) - value(out_dir, weight, 4)
        np.testing.assert_allclose(moved, 0.1 * value(out_dir, gradient, 4), atol=1e-6)


def named_replicas(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[str]]:
    """Two replicas whose devices are workers, as GPUs are, and the names of these."""
    monkeypatch.setattr("smdebug.tensorflow.keras.worker.KIND", "CPU")
    strategy = tf.distribute.MirroredStrategy(["CPU:1", "CPU:0"])
    return strategy, [f"/replica:0/task:0/device:CPU:{i}" for i in (1, 0)]


def test_devices_with_names_are_workers(
    keras: Any, out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy, (first, second) = named_replicas(monkeypatch)

    def make() -> Any:
        with strategy.scope():
            return k1(keras)

    held = data(2, seed=5)
    hook = make_hook(out_dir, save_all=True, include_workers="all")
    trained_twice(keras, make, hook, lambda m, h: fit(m, h, validation_data=held))
    hook.close()
    trial = trial_of(out_dir)
    assert sorted(trial.workers()) == sorted([first, second])
    assert trial.steps(mode=modes.TRAIN) == list(range(10))

    def at(name: str, worker: str, step: int = 4) -> Any:
        return trial.tensor(name).value(step, mode=modes.TRAIN, worker=worker)

    x, _ = data()
    rows = x[4 * BATCH : 5 * BATCH]
    np.testing.assert_array_equal(at("inputs", first), rows[: BATCH // 2])
    np.testing.assert_array_equal(at("inputs", second), rows[BATCH // 2 :])
    assert at("d1/outputs", first).shape == (BATCH // 2, 3)
    np.testing.assert_array_equal(at("loss", first), at("loss", second))
    for weight, gradient in zip(WEIGHTS, GRADIENTS, strict=True):
        np.testing.assert_array_equal(at(weight, first), at(weight, second))
        moved = at(weight, first, 3) - at(weight, first)
        given = at(gradient, first) + at(gradient, second)
        np.testing.assert_allclose(moved, 0.1 * given, atol=1e-6)
    for worker in (first, second):
        loss = trial.tensor("val_loss")
        assert loss.value(1, mode=modes.EVAL, worker=worker).size == 1


def test_the_first_device_by_name_saves_if_only_one_does(
    keras: Any, out_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strategy, (_, chief) = named_replicas(monkeypatch)
    with strategy.scope():
        model = k1(keras)
    hook = make_hook(out_dir, save_all=True)
    fit(model, hook)
    hook.close()
    trial = trial_of(out_dir)
    assert trial.workers() == [chief]
    assert (
        out_dir / "collections/000000000/_replica-0_task-0_device-CPU-0_collections.json"
    ).exists()
    x, _ = data()
    np.testing.assert_array_equal(value(out_dir, "inputs", 4), x[4 * BATCH : 5 * BATCH])


def test_one_device_is_like_none(keras: Any, out_dir: Path) -> None:
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")

    def make() -> Any:
        with strategy.scope():
            return k1(keras)

    hook = make_hook(out_dir, save_all=True)
    trained_twice(keras, make, hook)
    hook.close()
    x, _ = data()
    np.testing.assert_array_equal(value(out_dir, "inputs", 2), x[2 * BATCH : 3 * BATCH])


@pytest.mark.keras_only(generations=(2,))  # Keras 3 does not run under it
def test_an_unknown_strategy_is_left_alone(keras: Any, out_dir: Path, messages: Messages) -> None:
    strategy = tf.distribute.experimental.CentralStorageStrategy(["CPU:0"])
    with strategy.scope():
        model = k1(keras)
    hook = make_hook(out_dir, save_all=True)
    fit(model, hook)
    fit(model, hook)
    hook.close()
    assert len(messages.containing("CentralStorageStrategy cannot be recorded")) == 1
    assert not (out_dir / "events").exists()


WORKER = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
import {keras} as keras
sys.path.insert(0, {tests!r})
strategy = tf.distribute.MultiWorkerMirroredStrategy()
from keras_models import BATCH, data, k1
keras.utils.set_random_seed(3)
with strategy.scope():
    model = k1(keras)
x, y = data()
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
source = tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH).with_options(options)
callbacks = []
if {hook!r}:
    import smdebug.tensorflow as smd
    hook = smd.KerasHook({out_dir!r}, save_all=True, include_workers={workers!r},
                         save_config=smd.SaveConfig(save_interval=3))
    callbacks.append(hook)
history = model.fit(source, epochs=1, verbose=0, callbacks=callbacks)
if callbacks:
    hook.close()
print("RESULT", history.history["loss"], [float(np.sum(w)) for w in model.get_weights()])
"""


def run_workers(out_dir: Path, hook: bool, workers: str) -> list[str]:
    """Two processes on this machine; what each of them says at the end."""
    ports = []
    for _ in range(2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            ports.append(free.getsockname()[1])
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports]}
    # Keras 3 does not run under this strategy.
    keras = next(name for name, number in keras_models.GENERATIONS.items() if number == 2)
    values = {
        "tests": str(HERE),
        "hook": hook,
        "out_dir": str(out_dir),
        "workers": workers,
        "keras": keras,
    }
    processes = []
    for index in range(2):
        task = {"cluster": cluster, "task": {"type": "worker", "index": index}}
        variables = {"TF_CONFIG": json.dumps(task), "PYTHONPATH": str(HERE.parent)}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", WORKER.format(**values)],
                env={**os.environ, **variables, "SMDEBUG_STRICT": "1"},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    results = []
    for process in processes:
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-3000:]
        results.append(next(line for line in out.splitlines() if line.startswith("RESULT")))
    return results


def test_workers_save_their_own_rows(out_dir: Path) -> None:
    plain = run_workers(out_dir, False, "all")
    assert run_workers(out_dir, True, "all") == plain
    trial = trial_of(out_dir)
    assert sorted(trial.workers()) == ["worker_0", "worker_1"]
    assert trial.steps(mode=modes.TRAIN) == [0, 3, 6, 9]
    x, _ = data()
    parts = [
        trial.tensor("inputs").value(3, mode=modes.TRAIN, worker=f"worker_{i}") for i in range(2)
    ]
    assert [part.shape for part in parts] == [(BATCH // 2, 4)] * 2
    np.testing.assert_array_equal(np.concatenate(parts), x[3 * BATCH : 4 * BATCH])


def test_the_chief_alone_may_save(out_dir: Path) -> None:
    run_workers(out_dir, True, "one")
    trial = trial_of(out_dir)
    assert trial.workers() == ["worker_0"]
    assert trial.tensor("inputs").steps(mode=modes.TRAIN) == [0, 3, 6, 9]


def test_weights_of_all_layers_have_names_of_their_own(keras: Any, out_dir: Path) -> None:
    first = keras.Input((4,))
    inner = keras.Sequential([keras.layers.Dense(3, name="same")], name="inner")
    other = keras.Sequential([keras.layers.Dense(3, name="same")], name="other")
    out = keras.layers.Dense(2, name="top")(other(inner(first)))
    model = compiled(keras, keras.Model(first, out))
    hook = make_hook(out_dir, include_collections=["weights", "biases", "gradients"])
    fit(model, hook)
    hook.close()
    trial = trial_of(out_dir)
    stored = trial.tensor_names(collection="weights") + trial.tensor_names(collection="biases")
    assert len(stored) == 6
    assert len(trial.tensor_names(collection="gradients")) == 6


def events_in(folder: Path) -> Iterator[Any]:
    """Everything that TensorBoard would read."""
    for path in sorted(p for p in folder.rglob("*") if "tfevents" in p.name):
        yield from tf.compat.v1.train.summary_iterator(str(path))


def test_tensorboard_shows_a_graph_of_each_mode(keras: Any, out_dir: Path) -> None:
    board = out_dir.with_name("board")
    hook = make_hook(out_dir, export_tensorboard=True, tensorboard_dir=str(board))
    x, y = data(2)
    model = k1(keras)
    fit(model, hook, batches=2)
    model.evaluate(x, y, batch_size=BATCH, verbose=0, callbacks=[hook])
    model.predict(x, batch_size=BATCH, verbose=0, callbacks=[hook])
    hook.close()
    nodes = {}
    for mode in ("TRAIN", "EVAL", "PREDICT"):
        for event in events_in(board / mode):
            if event.graph_def:
                graph = tf.compat.v1.GraphDef.FromString(event.graph_def)
                nodes[mode] = {node.op for node in graph.node}
    assert set(nodes) == {"TRAIN", "EVAL", "PREDICT"}
    assert "MatMul" in nodes["TRAIN"] & nodes["EVAL"] & nodes["PREDICT"]
    assert "BiasAddGrad" in nodes["TRAIN"] - nodes["EVAL"] - nodes["PREDICT"]


def test_tensorboard_shows_curves_and_histograms(keras: Any, out_dir: Path) -> None:
    board = out_dir.with_name("board")
    hook = make_hook(
        out_dir,
        export_tensorboard=True,
        tensorboard_dir=str(board),
        include_collections=["weights", "gradients"],
    )
    for name in ("weights", "gradients"):
        hook.get_collection(name).save_histogram = True
    fit(k1(keras), hook, batches=2)
    hook.close()
    numbers: dict[str, list[float]] = {}
    histograms: set[str] = set()
    for event in events_in(board):
        for shown in event.summary.value:
            if shown.metadata.plugin_data.plugin_name == "histograms" or shown.HasField("histo"):
                histograms.add(shown.tag)
            else:
                numbers.setdefault(shown.tag, []).append(event.step)
    assert any(tag.endswith("loss") for tag in numbers)
    assert any(WEIGHTS[0].partition(":")[0] in tag for tag in histograms)
    assert any(GRADIENTS[0] in tag for tag in histograms)
