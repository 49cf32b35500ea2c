"""Scripts for Keras: the first example of the documentation, and scripts recorded without a change."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_models import PACKAGES
from smdebug import modes
from smdebug.open_trial import create_trial

ROOT = Path(__file__).resolve().parents[2]
Done = subprocess.CompletedProcess[str]

HEAD = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.keras.utils.set_random_seed(3)
rng = np.random.default_rng(0)
x_train, y_train = rng.random((80, 4), dtype=np.float32), rng.integers(0, 3, 80)
x_test, y_test = rng.random((32, 4), dtype=np.float32), rng.integers(0, 3, 32)
def layers():
    return [tf.keras.layers.Dense(5, "relu", name="d1"), tf.keras.layers.Dense(3, "softmax", name="d2")]
"""

EXAMPLE = (
    HEAD
    + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--out_dir")
parser.add_argument("--epochs", type=int, default=2)
args = parser.parse_args()

import smdebug.tensorflow as smd
hook = smd.KerasHook(out_dir=args.out_dir)

model = tf.keras.models.Sequential(layers())
model.compile(
    optimizer='adam',
    loss='sparse_categorical_crossentropy',
)
model.fit(x_train, y_train, epochs=args.epochs, callbacks=[hook])
model.evaluate(x_test, y_test, callbacks=[hook])

trial = smd.create_trial(out_dir=args.out_dir)
print(f"Saved tensor values for {trial.tensors()}")
"""
)

FIT = (
    HEAD
    + """
model = tf.keras.Sequential(layers(), name="seq")
model.compile(optimizer="sgd", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(x_train, y_train, batch_size=8, shuffle=False, verbose=0, validation_data=(x_test, y_test))
print(history.history)
print(model.evaluate(x_test, y_test, batch_size=8, verbose=0))
print(model.predict(x_test, batch_size=8, verbose=0).sum())
print([float(w.sum()) for w in model.get_weights()])
"""
)

TAPE = (
    HEAD
    + """
model = tf.keras.Sequential([tf.keras.Input((4,)), *layers()], name="seq")
optimizer = tf.keras.optimizers.SGD(0.1)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
for i in range(5):
    rows = slice(8 * i, 8 * i + 8)
    with tf.GradientTape() as tape:
        loss = loss_of(y_train[rows], model(x_train[rows], training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print(repr(float(loss)))
"""
)

OWN = FIT.replace(
    "history = model.fit(",
    'import smdebug.tensorflow as smd\nhook = smd.KerasHook(os.environ["OWN"])\nhistory = model.fit(callbacks=[hook], x=',
).replace("x=x_train, y_train", "x=x_train, y=y_train")


def start(script: Path, *words: object, legacy: bool = False, **variables: str) -> Done:
    kept = {k: v for k, v in os.environ.items() if k != "SMDEBUG_LOG_LEVEL"}
    more = {"PYTHONPATH": str(ROOT / "python"), "SMDEBUG_STRICT": "1", **variables}
    if legacy:
        more["TF_USE_LEGACY_KERAS"] = "1"
    return subprocess.run(
        [sys.executable, *map(str, words), str(script)],
        env={**kept, **more},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "train.py"
    path.write_text(text)
    return path


# The Keras of TensorFlow, and the one that takes its place if asked to.
BOTH = pytest.mark.parametrize("legacy", [name == "tf_keras" for name in PACKAGES], ids=PACKAGES)


@BOTH
def test_the_first_example_runs_as_it_stands(tmp_path: Path, out_dir: Path, legacy: bool) -> None:
    path = write(tmp_path, EXAMPLE)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "SMDEBUG_STRICT": "1"}
    if legacy:
        environment["TF_USE_LEGACY_KERAS"] = "1"
    done = subprocess.run(
        [sys.executable, str(path), "--out_dir", str(out_dir)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    last = [line for line in done.stdout.splitlines() if line.startswith("Saved tensor")]
    assert last == ["Saved tensor values for ['batch', 'loss']"]
    trial = create_trial(str(out_dir))
    assert len(trial.tensor("loss").steps(mode=modes.TRAIN)) == 3
    assert trial.tensor("loss").steps(mode=modes.EVAL) == [0]


def recorded(tmp_path: Path, out_dir: Path, text: str, legacy: bool = False) -> Any:
    path = write(tmp_path, text)
    plain = start(path, legacy=legacy)
    words = ("-m", "smdebug.run", "--out", out_dir, "--save", "all", "--raw", "--interval", "1")
    done = start(path, *words, legacy=legacy)
    assert plain.returncode == done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout, done.stderr
    return create_trial(str(out_dir)), plain.stdout


@BOTH
def test_fit_of_a_script_is_recorded_without_a_change(
    tmp_path: Path, out_dir: Path, legacy: bool
) -> None:
    trial, _ = recorded(tmp_path, out_dir, FIT, legacy)
    assert trial.steps(mode=modes.TRAIN) == list(range(10))
    assert len(trial.steps(mode=modes.EVAL)) == 8  # four of fit, four of evaluate
    assert trial.steps(mode=modes.PREDICT) == list(range(4))
    names = set(trial.tensor_names())
    assert {"loss", "val_loss", "accuracy", "inputs", "labels", "predictions"} <= names
    assert {"d1/outputs", "gradients/d1/kernelGrad", "d1/weights/d1/kernel:0"} <= names


@BOTH
def test_a_loop_of_a_script_is_recorded_without_a_change(
    tmp_path: Path, out_dir: Path, legacy: bool
) -> None:
    trial, printed = recorded(tmp_path, out_dir, TAPE, legacy)
    assert trial.steps(mode=modes.TRAIN) == list(range(5))
    losses = [float(trial.tensor("loss").value(i, mode=modes.TRAIN)) for i in range(5)]
    np.testing.assert_allclose(losses, [float(line) for line in printed.splitlines()], rtol=1e-6)
    names = set(trial.tensor_names())
    assert {"weights/d1/kernel:0", "gradients/d2/biasGrad"} <= names


def test_a_script_with_a_hook_of_its_own_keeps_it(tmp_path: Path, out_dir: Path) -> None:
    path = write(tmp_path, OWN)
    own = tmp_path / "own"
    done = start(path, "-m", "smdebug.run", "--out", out_dir, OWN=str(own))
    assert done.returncode == 0, done.stderr
    assert create_trial(str(own)).tensor("loss").steps(mode=modes.TRAIN)
    assert not (out_dir / "events").exists()


def test_importing_needs_no_tensorflow() -> None:
    code = (
        "import sys; import smdebug.tensorflow as smd; "
        "assert smd.SaveConfig and smd.get_hook() is None; "
        "assert not {'tensorflow', 'keras', 'tf_keras', 'jax', 'torch'} & set(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0


@pytest.mark.keras_only(generations=(3,))
def test_the_guide_is_true(tmp_path: Path) -> None:
    from markdown_examples import check_examples

    check_examples(ROOT / "docs/guide/keras.md", tmp_path)


@pytest.mark.keras_only(generations=(3,))
def test_the_quick_start_prints_what_is_shown(tmp_path: Path) -> None:
    from markdown_examples import check_examples

    check_examples(ROOT / "docs/guide/quick-start.md", tmp_path, "Keras")
